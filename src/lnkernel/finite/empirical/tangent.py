r"""The tangent kernel of a network as it stands: $\hat\Theta(x, x') = \sum_\theta
\partial_\theta f(x)\,\partial_\theta f(x')$."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from lnkernel.errors import InputError
from lnkernel.finite.empirical.function import Function, Piece, open_function
from lnkernel.finite.empirical.structured import is_structured, structured_jacobian
from lnkernel.gram.memory import demand_memory
from lnkernel.types import Inputs, MoreInputs

METHODS = ("auto", "structured", "jacobian", "vector")
OUTPUTS = ("mean", "full")
MANY_OUTPUTS = 4
TILE_BYTES = 2**29  # of one tile's Jacobian; at most about four of its size exist at a time


def empirical_ntk(
    network: nnx.Module,
    x: Inputs,
    x2: MoreInputs | None = None,
    method: str = "auto",
    *,
    outputs: str = "mean",
) -> Float[np.ndarray, "n m"] | Float[np.ndarray, "n m k k"]:
    r"""The tangent kernel of a network with the parameters that it has now,

        Θ̂(x, x') = Σ_θ ∂f(x)/∂θ · ∂f(x')/∂θ,   summed over every `nnx.Param`.

    For the twin of an architecture in NTK parametrisation it tends to `lnkernel.ntk(arch)` as the
    width grows; one draw deviates from it by about $1/\sqrt{\mathrm{width}}$.

    Args:
        network: any `flax.nnx.Module` that maps inputs (n, ...) to outputs (n, k) or (n,), each
            input on its own. Dropout and BatchNorm are to be set by `network.eval()` first.
        x: inputs, (n, d), or (n, ...) if the network takes such.
        x2: other inputs. Without them the matrix is symmetric, and half of it is computed.
        method: "jacobian" multiplies the Jacobians at two tiles of inputs. "vector" takes the
            Jacobian at one tile and differentiates the network along its rows at the other, which
            is cheaper for the full matrix of many outputs. "structured" multiplies Jacobians
            whose linear layers are kept in factors, which is cheaper by the order of the width,
            for twins and for every `nnx.Sequential`. "auto" chooses "structured" where it can,
            otherwise "vector" for the full matrix of more than 4 outputs, otherwise "jacobian".
        outputs: of a network with k of them. "mean" is the mean of $\hat\Theta_{oo}$ over the outputs
            o, (n, m), which has the limit $\Theta$; "full" is (n, m, k, k), with the limit
            $\Theta\,\delta_{oo'}$.

    Returns:
        A NumPy array in the precision of the network's parameters, in which all is computed: x is
        rounded to float32 for a float32 network. Beyond it, memory is needed for four tiles of
        half a GB at most, or for four Jacobians at a single input where these are larger.

    >>> import lnkernel as lnk
    >>> arch, x = lnk.mlp(hidden=1), [[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]]
    >>> f = lnk.finite.network(arch, in_dim=2, width=512, rngs=0)
    >>> theta = lnk.finite.empirical_ntk(f, x)
    >>> theta.shape, theta.dtype, bool(abs(theta / lnk.ntk(arch)(x) - 1).max() < 0.2)
    ((3, 3), dtype('float32'), True)
    """
    _one_of("method", method, METHODS)
    _one_of("outputs", outputs, OUTPUTS)
    symmetric = x2 is None or x2 is x
    given = [("x", x)] if x2 is None or symmetric else [("x", x), ("x2", x2)]
    with open_function(network, *given) as (function, inputs):
        way = _choose_way(network, function, method, full=outputs == "full")
        return _in_tiles(function, way, inputs[0], inputs[-1], symmetric)


def empirical_ntk_diagonal(
    network: nnx.Module, x: Inputs, *, outputs: str = "mean"
) -> Float[np.ndarray, " n"] | Float[np.ndarray, "n k k"]:
    r"""$\hat\Theta(x, x)$ of every input on its own: (n,), or (n, k, k) with `outputs="full"`.

    As `empirical_ntk`, in the network's precision.

    >>> import numpy as np, lnkernel as lnk
    >>> f = lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=64, rngs=0)
    >>> x = np.linspace(-1, 1, 5)[:, None]
    >>> np.allclose(lnk.finite.empirical_ntk_diagonal(f, x), np.diag(lnk.finite.empirical_ntk(f, x)))
    True
    """
    _one_of("outputs", outputs, OUTPUTS)
    with open_function(network, ("x", x)) as (function, (points,)):
        way = _choose_way(network, function, "auto", full=outputs == "full")
        size = _tile_size(function, way, points)
        tiles = [
            np.asarray(_own(function, way, _tile(points, start, size)))
            for start in range(0, len(points), size)
        ]
        return np.concatenate(tiles)[: len(points)]


class Way(NamedTuple):
    """How the kernel is computed."""

    structured: bool  # whether the Jacobian is kept in factors
    vector: bool  # whether the network is differentiated along its rows, instead of multiplying it
    full: bool  # whether all pairs of outputs are wanted

    def jacobian(self, function: Function, x: Array) -> list[Piece]:
        return structured_jacobian(function, x) if self.structured else function.jacobian(x)


def _choose_way(network: nnx.Module, function: Function, method: str, *, full: bool) -> Way:
    structured = is_structured(network)
    if method == "structured" and not structured:
        raise InputError(
            "method",
            '"jacobian" or "vector" for this network',
            '"structured", which is for twins and for sequences (flax.nnx.Sequential) of different '
            "layers",
            'Leave it to method="auto"',
        )
    many = full and function.outputs > MANY_OUTPUTS
    vector = method == "vector" or (method == "auto" and many and not structured)
    return Way(structured and method in ("auto", "structured"), vector, full)


def _in_tiles(
    function: Function, way: Way, x: np.ndarray, x2: np.ndarray, symmetric: bool
) -> Float[np.ndarray, "n m *outputs"]:
    """All blocks, those below the diagonal mirrored where the matrix is symmetric."""
    entries, itemsize = function.outputs**2 if way.full else 1, x.dtype.itemsize
    demand_memory(len(x), entries, "The tangent kernel", None if symmetric else len(x2), itemsize)
    size, size2 = _tile_size(function, way, x), _tile_size(function, way, x2)
    block = _along_rows if way.vector else _product
    out: np.ndarray | None = None
    for row in range(0, len(x), size):
        jacobian = _jacobian(function, way, _tile(x, row, size))
        for column in range(row if symmetric else 0, len(x2), size2):
            tile = np.asarray(block(function, way, jacobian, _tile(x2, column, size2)))
            if out is None:
                out = np.empty((len(x), len(x2), *tile.shape[2:]), tile.dtype)
            here = out[row : row + size, column : column + size2]
            here[...] = tile[: len(here), : here.shape[1]]
            if symmetric:
                there = out[column : column + size2, row : row + size]
                there[...] = here.transpose(1, 0, 3, 2) if way.full else here.T
    assert out is not None  # there is at least one input
    return out


def _tile_size(function: Function, way: Way, x: np.ndarray) -> int:
    """Inputs per tile, so that all tiles are about equally large."""
    leaves = jax.tree.leaves(_jacobian.eval_shape(function, way, x[:1]))
    most = max(1, TILE_BYTES // sum(leaf.size * leaf.dtype.itemsize for leaf in leaves))
    return -(-len(x) // -(-len(x) // most))


def _tile(x: np.ndarray, start: int, size: int) -> np.ndarray:
    """So many inputs from `start` on; the last one again where they end: one program for all."""
    return x[np.minimum(np.arange(start, start + size), len(x) - 1)]


@partial(jax.jit, static_argnames="way")
def _jacobian(function: Function, way: Way, x: Array) -> list[Piece]:
    return way.jacobian(function, x)


@partial(jax.jit, static_argnames="way")
def _product(function: Function, way: Way, jacobian: list[Piece], x2: Array) -> Array:
    """The Jacobian at some inputs times that at others: (n, m) or (n, m, k, k)."""
    axes = 2 if way.full else 1
    parts: list[Array] = []
    for one, other in zip(jacobian, way.jacobian(function, x2), strict=True):
        part = _dot(one.slopes, other.slopes, axes)
        if one.features is not None and other.features is not None:
            shared = _dot(one.features, other.features, 1)
            part = part * (shared[:, None, :, None] if way.full else shared)
        parts.append(part)
    total = sum(parts[1:], start=parts[0])
    return jnp.swapaxes(total, 1, 2) if way.full else total / function.outputs


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
def _along_rows(function: Function, way: Way, jacobian: list[Piece], x2: Array) -> Array:
    """The change of f(x2) along every row of the Jacobian: (n, m) or (n, m, k, k)."""
    tree = jax.tree.structure(function.params)
    _, change = jax.linearize(lambda params: function.on(params, x2), function.params)
    rows = jax.vmap(jax.vmap(lambda *leaves: change(jax.tree.unflatten(tree, leaves))))
    products = rows(*(piece.slopes for piece in jacobian))  # (n, k, m, k)
    if way.full:
        return products.swapaxes(1, 2)
    return jnp.einsum("aobo->ab", products) / function.outputs


@partial(jax.jit, static_argnames="way")
def _own(function: Function, way: Way, x: Array) -> Array:
    """Every input with itself: (n,) or (n, k, k)."""

    def one(point: Array) -> Array:
        return _product(function, way, _jacobian(function, way, point[None]), point[None])[0, 0]

    return jax.vmap(one)(x)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        names = " or ".join(f'"{word}"' for word in allowed)
        raise InputError(name, names, repr(value), f'The default is "{allowed[0]}"')
