"""Gram matrices of concrete data, at full speed.

A tile is one fused loop over its pairs (`pairs.quick`); the few delicate pairs in it,
nearly parallel or antipodal, are then computed once more with all care. Memory is the
output and one tile. A symmetric matrix costs half of its pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from lnkernel.calculus.state import Kernels
from lnkernel.gram import pairs
from lnkernel.gram.structure import Structure, assemble, centres_input

Array = Any
Out = tuple[Array, ...]
TILE = 256  # rows and columns of a tile: it stays in the cache


@partial(jax.jit, static_argnames=("structure", "which", "all_live"))
def symmetric(
    structure: Structure, varying: list[Any], x: Array, which: tuple[str, ...], all_live: bool
) -> tuple[Out, Out]:
    """The kernels named in `which` of all pairs of x; and their diagonals."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    n, size = len(x), _tile_size(len(x))
    starts = [min(i, n - size) for i in range(0, n, size)]
    tiles = _Tiles(points, points, [(i, j) for i in starts for j in starts if i <= j], size, size)
    ends = _named(pairs.diagonal(arch, points, all_live), which)

    def put(out: Out, tile: Out, i: Array, j: Array) -> Out:
        return _put(_put(out, tile, i, j), tuple(t.T for t in tile), j, i)

    out = _filled(arch, tiles, which, all_live, put)
    index = jnp.arange(n)
    return tuple(o.at[index, index].set(e) for o, e in zip(out, ends, strict=True)), ends


@partial(jax.jit, static_argnames=("structure", "which", "all_live"))
def rectangular(
    structure: Structure,
    varying: list[Any],
    x: Array,
    x2: Array,
    which: tuple[str, ...],
    all_live: bool,
) -> tuple[Out, Out, Out]:
    """The kernels named in `which` of all pairs of x and x2; and the diagonals of both."""
    arch = assemble(structure, varying)
    centre = centres_input(arch)
    n, m = len(x), len(x2)
    height, width = _tile_size(n), _tile_size(m)
    rows = [min(i, n - height) for i in range(0, n, height)]
    columns = [min(j, m - width) for j in range(0, m, width)]
    places = [(i, j) for i in rows for j in columns]
    tiles = _Tiles(pairs.prepare(x, centre), pairs.prepare(x2, centre), places, height, width)
    ends, ends2 = (
        _named(pairs.diagonal(arch, points, all_live), which)
        for points in (tiles.points, tiles.points2)
    )
    return _filled(arch, tiles, which, all_live, _put), ends, ends2


@partial(jax.jit, static_argnames=("structure", "which", "all_live"))
def diagonal(
    structure: Structure, varying: list[Any], x: Array, which: tuple[str, ...], all_live: bool
) -> tuple[Array, ...]:
    """The kernels named in `which` of every point with itself."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    return _named(pairs.diagonal(arch, points, all_live), which)


class _Tiles(NamedTuple):
    """A matrix of pairs, cut into tiles of one shape that may overlap at the ends."""

    points: pairs.Points
    points2: pairs.Points
    places: list[tuple[int, int]]  # of the upper left corners
    height: int
    width: int


def _filled(
    arch: Any,
    tiles: _Tiles,
    which: tuple[str, ...],
    all_live: bool,
    put: Callable[[Out, Out, Array, Array], Out],
) -> Out:
    """The whole matrix, tile by tile.

    The points of the next tile are carried from step to step: a slice that is taken
    where it is used would be fused into the tile's loop, which then does not vectorise.
    """
    rows, columns = (jnp.asarray(side) for side in zip(*tiles.places, strict=True))
    light, light2 = (pairs.for_quick(arch, p) for p in (tiles.points, tiles.points2))

    def cut(k: Array) -> tuple[pairs.Points, pairs.Points]:
        return pairs.cut(light, rows[k], tiles.height), pairs.cut(light2, columns[k], tiles.width)

    def step(k: Array, carry: tuple[Any, Out]) -> tuple[Any, Out]:
        (one, two), out = carry
        i, j = rows[k], columns[k]
        quick = _named(pairs.quick(arch, one, two, all_live), which)
        tile = tuple(jnp.broadcast_to(t, (tiles.height, tiles.width)) for t in quick)
        dimension = one.raw.rough.shape[1]
        if dimension > 1:  # directions on a line are exact
            cosines = pairs.cosines(one, two)
            # on the diagonal of a symmetric matrix every point meets itself: that is no reason
            needed = lax.cond(
                (i == j) & (tiles.points is tiles.points2),
                lambda: pairs.any_delicate(cosines, dimension, ~jnp.eye(*tile[0].shape, dtype=bool)),
                lambda: pairs.any_delicate(cosines, dimension, None),
            )
            patch = partial(_patched, arch, tiles, i, j, which, all_live)
            tile = _only_if(needed, patch, tile)
        return cut(jnp.minimum(k + 1, len(tiles.places) - 1)), put(out, tile, rows[k], columns[k])

    n, m = len(tiles.points.raw.square), len(tiles.points2.raw.square)
    # zeros, written by all threads: the pages of a fresh matrix cost more than its numbers
    blank = tuple(jnp.zeros((n, m)) for _ in which)
    return lax.fori_loop(0, len(tiles.places), step, (cut(jnp.asarray(0)), blank))[1]


def _patched(
    arch: Any,
    tiles: _Tiles,
    i: Array,
    j: Array,
    which: tuple[str, ...],
    all_live: bool,
    tile: Out,
) -> Out:
    """The tile at (i, j) with its delicate pairs computed once more, with all care."""
    row, column = i + jnp.arange(tiles.height), j + jnp.arange(tiles.width)
    rows, columns = pairs.take(tiles.points, row), pairs.take(tiles.points2, column)
    left = pairs.delicate(rows, columns, all_live)
    if tiles.points is tiles.points2:  # the diagonal comes from elsewhere
        left = left & (row[:, None] != column[None, :])

    def some_left(carry: tuple[Array, Out]) -> Array:
        return jnp.any(carry[0])

    def patch(carry: tuple[Array, Out]) -> tuple[Array, Out]:
        left, tile = carry
        # beyond the last delicate pair the indices point outside, where scatters are dropped
        a, b = jnp.nonzero(left, size=max(1, left.size // 256), fill_value=max(left.shape))
        values = pairs.careful(arch, pairs.take(rows, a), pairs.take(columns, b), all_live)
        tile = tuple(
            t.at[a, b].set(v, mode="drop") for t, v in zip(tile, _named(values, which), strict=True)
        )
        return left.at[a, b].set(False, mode="drop"), tile

    return lax.while_loop(some_left, patch, (left, tile))[1]


def _only_if(needed: Array, change: Callable[[Out], Out], tile: Out) -> Out:
    """`if`, as a loop that turns at most once: unlike lax.cond it does not copy the tile."""
    turn = lambda carry: (jnp.asarray(False), change(carry[1]))  # noqa: E731 (one expression)
    return lax.while_loop(lambda carry: carry[0], turn, (needed, tile))[1]


def _put(out: Out, tile: Out, i: Array, j: Array) -> Out:
    return tuple(lax.dynamic_update_slice(o, t, (i, j)) for o, t in zip(out, tile, strict=True))


def _named(kernels: Kernels, which: tuple[str, ...]) -> tuple[Array, ...]:
    return tuple(getattr(kernels, name) for name in which)


def _tile_size(n: int) -> int:
    """At most TILE, and such that the tiles cover n with little overlap."""
    return -(-n // -(-n // TILE))
