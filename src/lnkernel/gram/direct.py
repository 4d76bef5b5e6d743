"""Gram matrices of concrete data, tile by tile, at full speed.

A tile is one fused loop over its pairs (`pairs.quick`); if some of them are delicate, nearly
parallel or antipodal, those are computed once more with all care. A symmetric matrix costs
half of its tiles. Memory is the output and two rows of tiles.

The matrix itself is NumPy's: the pages of a large fresh matrix cost as much time as its
numbers, unless the system hands them out in large pieces, as it does to NumPy. A row of
tiles is copied into it while the next one is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.calculus.state import Kernels
from lnkernel.evaluate.float64 import geometry
from lnkernel.gram import pairs
from lnkernel.gram.structure import Structure, assemble, centres_input

Array = Any
Out = tuple[Array, ...]
TILE = 256  # rows and columns of a tile: it stays in the cache
CHUNKS = 64  # in which the delicate pairs of a tile are computed, if all of them are


class Program(NamedTuple):
    """What all tiles of a matrix have in common."""

    structure: Structure
    varying: Array  # its hyperparameters, in one array
    which: tuple[str, ...]  # of the kernels, in the order wanted
    all_live: bool  # whether no point is the zero vector


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    points, ends = _prepared(*program, x)
    n, size = len(x), _tile_size(len(x))
    starts = _starts(n, size)
    out = tuple(np.empty((n, n)) for _ in program.which)
    upper = np.triu(np.ones((size, size), dtype=bool))
    panels = (
        (i, _panel(*program, points, None, i, number, starts, (size, size)))
        for number, i in enumerate(starts)
    )
    for i, (panel, mirror) in _one_ahead(panels):
        for matrix, rows, columns in zip(out, panel, mirror, strict=True):
            matrix[i : i + size, i:] = np.asarray(rows)[:, i:]
            matrix[i:, i : i + size] = np.asarray(columns)[i:]
            corner = matrix[i : i + size, i : i + size]  # both halves of it were computed
            corner[:] = np.where(upper, corner, corner.T)
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, np.asarray(end))
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    points, ends = _prepared(*program, x)
    points2, ends2 = _prepared(*program, x2)
    n, m = len(x), len(x2)
    height, width = _tile_size(n), _tile_size(m)
    out = tuple(np.empty((n, m)) for _ in program.which)
    panels = (
        (i, _panel(*program, points, points2, i, 0, _starts(m, width), (height, width)))
        for i in _starts(n, height)
    )
    for i, (panel, _) in _one_ahead(panels):
        for matrix, rows in zip(out, panel, strict=True):
            matrix[i : i + height] = np.asarray(rows)
    return out, ends, ends2


@partial(jax.jit, static_argnums=(0, 2, 3))
def diagonal(
    structure: Structure, varying: Array, which: tuple[str, ...], all_live: bool, x: Array
) -> Out:
    """The kernels of every point with itself."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    return _named(pairs.diagonal(arch, points, all_live), which)


@partial(jax.jit, static_argnums=(0, 2, 3))
def _prepared(
    structure: Structure, varying: Array, which: tuple[str, ...], all_live: bool, x: Array
) -> tuple[pairs.Points, Out]:
    """The points, ready for comparison, and the diagonals."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    return points, _named(pairs.diagonal(arch, points, all_live), which)


@partial(jax.jit, static_argnums=(0, 2, 3, 8, 9))
def _panel(
    structure: Structure,
    varying: Array,
    which: tuple[str, ...],
    all_live: bool,
    points: pairs.Points,
    points2: pairs.Points | None,
    i: Array,
    first: Array,
    columns: tuple[int, ...],
    shape: tuple[int, int],
) -> tuple[Out, Out]:
    """The row of tiles at row `i`, from the tile with number `first` on.

    Without `points2` the matrix is symmetric, and the mirror image of the row comes too. The
    points of the next tile are carried from step to step: a slice that is taken where it
    is used would be fused into the tile's loop, which then does not vectorise.
    """
    arch = assemble(structure, varying)
    same = points2 is None
    both = points, points if points2 is None else points2
    light, light2 = (pairs.for_quick(arch, p) for p in both)
    starts = jnp.asarray(columns)

    def step(k: Array, carry: tuple[Any, Any, Out, Out]) -> tuple[Any, Any, Out, Out]:
        one, two, panel, mirror = carry
        j = starts[k]
        tile, delicate = _tile(arch, which, all_live, one, two, (i == j) & same)
        tile = _only_if(delicate, partial(_patched, arch, which, all_live, both, same, i, j), tile)
        panel = _put(panel, tile, j, 1)
        mirror = _put(mirror, tuple(t.T for t in tile), j, 0) if same else ()
        following = pairs.cut(light2, starts[jnp.minimum(k + 1, len(columns) - 1)], shape[1])
        return one, following, panel, mirror

    m = len(both[1].raw.square)
    panel = tuple(jnp.zeros((shape[0], m)) for _ in which)
    mirror = tuple(jnp.zeros((m, shape[0])) for _ in which) if same else ()
    one, two = pairs.cut(light, i, shape[0]), pairs.cut(light2, starts[first], shape[1])
    return lax.fori_loop(first, len(columns), step, (one, two, panel, mirror))[2:]


def _tile(
    arch: Any,
    which: tuple[str, ...],
    all_live: bool,
    one: pairs.Points,
    two: pairs.Points,
    on_diagonal: Array,
) -> tuple[Out, Array]:
    """All pairs quickly; and whether some of them need more care."""
    shape = len(one.raw.square), len(two.raw.square)
    quick = _named(pairs.quick(arch, one, two, all_live), which)
    tile = tuple(jnp.broadcast_to(t, shape) for t in quick)
    dimension = geometry.dimensions(one.raw)
    if dimension == 1:  # directions on a line are exact
        return tile, jnp.asarray(False)
    # on the diagonal of a symmetric matrix every point meets itself: that is no reason
    wanted = ~(jnp.eye(*shape, dtype=bool) & on_diagonal)
    return tile, pairs.any_delicate(pairs.cosines(one, two), dimension, wanted)


def _patched(
    arch: Any,
    which: tuple[str, ...],
    all_live: bool,
    points: tuple[pairs.Points, pairs.Points],
    same: bool,
    i: Array,
    j: Array,
    tile: Out,
) -> Out:
    """The tile at (i, j) with its delicate pairs computed once more, with all care."""
    row, column = (k + jnp.arange(size) for k, size in zip((i, j), tile[0].shape, strict=True))
    rows, columns = pairs.take(points[0], row), pairs.take(points[1], column)
    left = pairs.delicate(rows, columns, all_live)
    if same:  # the diagonal of a symmetric matrix comes from elsewhere
        left = left & (row[:, None] != column[None, :])

    def some_left(carry: tuple[Array, Out]) -> Array:
        return jnp.any(carry[0])

    def patch(carry: tuple[Array, Out]) -> tuple[Array, Out]:
        left, tile = carry
        # beyond the last delicate pair the indices point outside, where scatters are dropped
        a, b = jnp.nonzero(left, size=max(1, left.size // CHUNKS), fill_value=max(left.shape))
        values = pairs.careful(arch, pairs.take(rows, a), pairs.take(columns, b), all_live)
        tile = tuple(
            t.at[a, b].set(v, mode="drop") for t, v in zip(tile, _named(values, which), strict=True)
        )
        return left.at[a, b].set(False, mode="drop"), tile

    return lax.while_loop(some_left, patch, (left, tile))[1]


def _only_if(needed: Array, change: Callable[[Out], Out], tile: Out) -> Out:
    """`if`, as a loop that turns at most once: unlike lax.cond it does not copy the tile."""

    def turn(carry: tuple[Array, Out]) -> tuple[Array, Out]:
        return jnp.asarray(False), change(carry[1])

    return lax.while_loop(lambda carry: carry[0], turn, (needed, tile))[1]


def _put(whole: Out, parts: Out, start: Array, axis: int) -> Out:
    return tuple(
        lax.dynamic_update_slice_in_dim(w, p, start, axis)
        for w, p in zip(whole, parts, strict=True)
    )


def _one_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Each item only after the next one has been started, so that JAX is never idle."""
    waiting = next(items)
    for item in items:
        yield waiting
        waiting = item
    yield waiting


def _named(kernels: Kernels, which: tuple[str, ...]) -> Out:
    return tuple(getattr(kernels, name) for name in which)


def _starts(n: int, size: int) -> tuple[int, ...]:
    """Where tiles of this size begin; the last one ends with the matrix, and may overlap."""
    return tuple(min(i, n - size) for i in range(0, n, size))


def _tile_size(n: int) -> int:
    """At most TILE, and such that the tiles cover n with little overlap."""
    return -(-n // -(-n // TILE))
