r"""The tangent kernel $K = J J^T$ in tiles: the Jacobians at two tiles of inputs, multiplied.

One tile of a Jacobian takes at most half a GB, and about four of its size exist at a time, so that
the memory is that of the result and four tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lnkernel.errors import InputError
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents.function import Function, Piece
from lnkernel.tangents.inputs import demand_finite
from lnkernel.tangents.structured import structured_jacobian

METHODS = ("auto", "structured", "jacobian", "vector")
OUTPUTS = ("mean", "full")
MANY_OUTPUTS = 4
TILE_BYTES = 2**29  # of one tile's Jacobian; at most about four of its size exist at a time


class Way(NamedTuple):
    """How the kernel is computed."""

    structured: bool  # whether the Jacobian is kept in factors
    vector: bool  # whether the network is differentiated along its rows, instead of multiplying it
    full: bool  # whether all pairs of outputs are wanted
    blocks: tuple[int, ...] | None = None  # the block of each piece of the Jacobian; None is one

    def jacobian(self, function: Function, x: Array) -> list[Piece]:
        return structured_jacobian(function, x) if self.structured else function.jacobian(x)


def choose_way(structured: bool, function: Function, method: str, outputs: str) -> Way:
    """The way that `method` names, or the cheapest."""
    one_of("method", method, METHODS)
    one_of("outputs", outputs, OUTPUTS)
    if method == "structured" and not structured:
        raise InputError(
            "method",
            '"jacobian" or "vector" for this network',
            '"structured", which is for twins and for sequences (flax.nnx.Sequential) of different '
            "layers",
            'Leave it to method="auto"',
        )
    many = outputs == "full" and function.outputs > MANY_OUTPUTS
    vector = method == "vector" or (method == "auto" and many and not structured)
    return Way(structured and method in ("auto", "structured"), vector, outputs == "full")


class Tile(NamedTuple):
    """Some rows and columns of K, or of the matrix of each block."""

    rows: slice
    columns: slice
    matrices: list[np.ndarray]  # (rows, columns) or (rows, k, columns, k) each


def tiles(
    function: Function, way: Way, x: np.ndarray, x2: np.ndarray, symmetric: bool
) -> Iterator[Tile]:
    """All tiles; of a symmetric matrix those on the diagonal and to the right of it."""
    size, size2 = _tile_size(function, way, x), _tile_size(function, way, x2)
    block = _along_rows if way.vector else _product
    for row in range(0, len(x), size):
        jacobian = _jacobian(function, way, _tile(x, row, size))
        rows = slice(row, min(row + size, len(x)))
        for column in range(row if symmetric else 0, len(x2), size2):
            columns = slice(column, min(column + size2, len(x2)))
            height, width = rows.stop - row, columns.stop - column
            made = block(function, way, jacobian, _tile(x2, column, size2))
            cut = (slice(height), *(slice(None),) * way.full, slice(width))
            yield Tile(rows, columns, [np.asarray(part)[cut] for part in made])


def gram(
    function: Function, way: Way, x: np.ndarray, x2: np.ndarray, symmetric: bool
) -> list[np.ndarray]:
    """The matrix of every block, (n, m) or (n, k, m, k)."""
    entries, itemsize = function.outputs**2 if way.full else 1, x.dtype.itemsize
    entries *= 1 if way.blocks is None else max(way.blocks) + 1
    demand_memory(len(x), entries, "The tangent kernel", None if symmetric else len(x2), itemsize)
    out: list[np.ndarray] = []
    for tile in tiles(function, way, x, x2, symmetric):
        if not out:
            k = (function.outputs,) if way.full else ()
            shape = (len(x), *k, len(x2), *k)
            out = [np.empty(shape, part.dtype) for part in tile.matrices]
        here, there = (
            (a, *(slice(None),) * way.full, b)
            for a, b in ((tile.rows, tile.columns), (tile.columns, tile.rows))
        )
        for whole, part in zip(out, tile.matrices, strict=True):
            whole[here] = demand_finite(part, "slopes")
            if symmetric:
                whole[there] = part.transpose(2, 3, 0, 1) if way.full else part.T
    return out


def diagonal(
    function: Function, way: Way, x: np.ndarray
) -> Float[np.ndarray, " n"] | Float[np.ndarray, "n k k"]:
    """The kernel of every input with itself."""
    demand_memory(
        len(x),
        2,  # the parts and what they are put together to
        f"The diagonal of the tangent kernel of {len(x)} inputs",
        m=function.outputs**2 if way.full else 1,
        itemsize=x.dtype.itemsize,
        remedy="Take fewer inputs at a time",
    )
    size = _tile_size(function, way, x)
    made = [
        np.asarray(_own(function, way, _tile(x, start, size))) for start in range(0, len(x), size)
    ]
    return demand_finite(np.concatenate(made)[: len(x)], "slopes")


def frobenius(function: Function, way: Way, x: np.ndarray) -> float:
    """The Frobenius norm of K, of which one tile exists at a time."""
    total = 0.0
    for tile in tiles(function, way, x, x, symmetric=True):
        square = float(np.square(tile.matrices[0], dtype=np.float64).sum())
        total += square if tile.rows == tile.columns else 2 * square
    return float(np.sqrt(total))


def _tile_size(function: Function, way: Way, x: np.ndarray) -> int:
    """Inputs per tile, so that all tiles are about equally large."""
    leaves = jax.tree.leaves(_jacobian.eval_shape(function, way, x[:1]))
    of_one = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    demand_memory(
        4 * of_one,
        1,
        "The Jacobian at a single input, which is held four times at once,",
        m=1,
        itemsize=1,
        remedy="Take a network of fewer parameters, or choose some of them by wrt=",
    )
    most = max(1, TILE_BYTES // of_one)
    return -(-len(x) // -(-len(x) // most))


def _tile(x: np.ndarray, start: int, size: int) -> np.ndarray:
    """`size` inputs from `start` on. Where there are fewer, the last one is repeated: one program serves all."""
    return x[np.minimum(np.arange(start, start + size), len(x) - 1)]


@partial(jax.jit, static_argnames="way")
def _jacobian(function: Function, way: Way, x: Array) -> list[Piece]:
    return way.jacobian(function, x)


@partial(jax.jit, static_argnames="way")
def _product(function: Function, way: Way, jacobian: list[Piece], x2: Array) -> list[Array]:
    """The Jacobian at some inputs times that at others, for every block: (n, m) or (n, k, m, k)."""
    return multiply(way, function.outputs, jacobian, way.jacobian(function, x2))


def multiply(way: Way, outputs: int, jacobian: list[Piece], others: list[Piece]) -> list[Array]:
    """Two Jacobians, one of so many outputs, multiplied for every block: (n, m) or (n, k, m, k)."""
    axes = 2 if way.full else 1
    owners = (0,) * len(jacobian) if way.blocks is None else way.blocks
    sums: dict[int, Array] = {}
    for owner, one, other in zip(owners, jacobian, others, strict=True):
        part = _dot(one.slopes, other.slopes, axes)
        if one.features is not None and other.features is not None:
            shared = _dot(one.features, other.features, 1)
            part = part * (shared[:, None, :, None] if way.full else shared)
        sums[owner] = sums[owner] + part if owner in sums else part
    return [sums[owner] if way.full else sums[owner] / outputs for owner in sorted(sums)]


def _dot(a: Array, b: Array, axes: int) -> Array:
    """The product over all but the first axes, in float32 at least."""
    flat, flat2 = (leaf.reshape(*leaf.shape[:axes], -1) for leaf in (a, b))
    return jax.lax.dot_general(
        flat,
        flat2,
        (((axes,), (axes,)), ((), ())),
        precision=jax.lax.Precision.HIGHEST,
        preferred_element_type=jnp.promote_types(a.dtype, jnp.float32),
    )


@partial(jax.jit, static_argnames="way")
def _along_rows(function: Function, way: Way, jacobian: list[Piece], x2: Array) -> list[Array]:
    """The change of f(x2) along every row of the Jacobian: (n, m) or (n, k, m, k)."""
    tree = jax.tree.structure(function.params)
    _, change = jax.linearize(lambda params: function.on(params, x2), function.params)
    rows = jax.vmap(jax.vmap(lambda *leaves: change(jax.tree.unflatten(tree, leaves))))
    products = rows(*(piece.slopes for piece in jacobian))  # (n, k, m, k)
    if way.full:
        return [products]
    return [jnp.einsum("aobo->ab", products) / function.outputs]


@partial(jax.jit, static_argnames="way")
def _own(function: Function, way: Way, x: Array) -> Array:
    """The kernel of every input with itself: (n,) or (n, k, k)."""

    def one(point: Array) -> Array:
        made = _product(function, way, _jacobian(function, way, point[None]), point[None])[0]
        return made[0, :, 0] if way.full else made[0, 0]

    return jax.vmap(one)(x)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """An error unless the value is one of the words."""
    if value not in allowed:
        names = " or ".join(f'"{word}"' for word in allowed)
        raise InputError(name, names, repr(value), f'The default is "{allowed[0]}"')
