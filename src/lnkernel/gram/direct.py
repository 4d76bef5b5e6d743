"""Gram matrices of concrete data, at full speed.

A tile is one fused loop over its pairs (`pairs.quick`); the few delicate pairs in it,
nearly parallel or antipodal, are then computed once more with all care. Memory is the
output and one tile. A symmetric matrix costs half of its pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
) -> tuple[Array, ...]:
    """The kernels named in `which` of all pairs of x."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    n, size = len(x), _tile_size(len(x))
    starts = [min(i, n - size) for i in range(0, n, size)]
    tiles = [(i, j) for i in starts for j in starts if i <= j]

    def fill(i: Array, j: Array, one: pairs.Points, two: pairs.Points, out: Out) -> Out:
        apart = (i + jnp.arange(size))[:, None] != (j + jnp.arange(size))[None, :]
        tile = _tile(arch, one, two, which, all_live, apart)
        out = _put(out, tile, i, j)
        return _put(out, tuple(t.T for t in tile), j, i)

    out = _over_tiles(tiles, points, points, (size, size), fill, _blank(n, n, which))
    ends = _named(pairs.diagonal(arch, points, all_live), which)
    index = jnp.arange(n)
    return tuple(o.at[index, index].set(e) for o, e in zip(out, ends, strict=True))


@partial(jax.jit, static_argnames=("structure", "which", "all_live"))
def rectangular(
    structure: Structure,
    varying: list[Any],
    x: Array,
    x2: Array,
    which: tuple[str, ...],
    all_live: bool,
) -> tuple[Array, ...]:
    """The kernels named in `which` of all pairs of x and x2."""
    arch = assemble(structure, varying)
    centre = centres_input(arch)
    points, points2 = pairs.prepare(x, centre), pairs.prepare(x2, centre)
    n, m = len(x), len(x2)
    height, width = _tile_size(n), _tile_size(m)
    tiles = [
        (min(i, n - height), min(j, m - width))
        for i in range(0, n, height)
        for j in range(0, m, width)
    ]

    def fill(i: Array, j: Array, one: pairs.Points, two: pairs.Points, out: Out) -> Out:
        return _put(out, _tile(arch, one, two, which, all_live, True), i, j)

    return _over_tiles(tiles, points, points2, (height, width), fill, _blank(n, m, which))


def _over_tiles(
    tiles: list[tuple[int, int]],
    points: pairs.Points,
    points2: pairs.Points,
    shape: tuple[int, int],
    fill: Callable[..., Out],
    out: Out,
) -> Out:
    """Fill `out` tile by tile.

    The points of the next tile are carried from step to step: a slice that is taken
    where it is used would be fused into the tile's loop, which then does not vectorise.
    """
    rows, columns = (jnp.asarray(side) for side in zip(*tiles, strict=True))

    def cut(k: Array) -> tuple[pairs.Points, pairs.Points]:
        return _slice(points, rows[k], shape[0]), _slice(points2, columns[k], shape[1])

    def step(k: Array, carry: tuple[Any, Out]) -> tuple[Any, Out]:
        (one, two), out = carry
        out = fill(rows[k], columns[k], one, two, out)
        return cut(jnp.minimum(k + 1, len(tiles) - 1)), out

    return lax.fori_loop(0, len(tiles), step, (cut(jnp.asarray(0)), out))[1]


def _blank(n: int, m: int, which: tuple[str, ...]) -> Out:
    return tuple(jnp.zeros((n, m)) for _ in which)


def _put(out: Out, tile: Out, i: Array, j: Array) -> Out:
    return tuple(lax.dynamic_update_slice(o, t, (i, j)) for o, t in zip(out, tile, strict=True))


@partial(jax.jit, static_argnames=("structure", "which", "all_live"))
def diagonal(
    structure: Structure, varying: list[Any], x: Array, which: tuple[str, ...], all_live: bool
) -> tuple[Array, ...]:
    """The kernels named in `which` of every point with itself."""
    arch = assemble(structure, varying)
    points = pairs.prepare(x, centres_input(arch))
    return _named(pairs.diagonal(arch, points, all_live), which)


def _tile(
    arch: Any,
    one: pairs.Points,
    two: pairs.Points,
    which: tuple[str, ...],
    all_live: bool,
    wanted: Array,
) -> tuple[Array, ...]:
    """One tile: every pair quickly, then the delicate ones among the wanted with care."""
    shape = (len(one.raw.length), len(two.raw.length))
    quick = _named(pairs.quick(arch, one, two, all_live), which)
    tile = tuple(jnp.broadcast_to(t, shape) for t in quick)
    if one.raw.unit.shape[1] == 1:
        return tile
    left = pairs.delicate(one, two, all_live) & wanted
    chunk = max(1, left.size // 16)

    def some_left(carry: tuple[Array, tuple[Array, ...]]) -> Array:
        return jnp.any(carry[0])

    def patch(carry: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        left, tile = carry
        # beyond the last delicate pair the indices point outside, where scatters are dropped
        i, j = jnp.nonzero(left, size=chunk, fill_value=max(shape))
        values = pairs.careful(arch, pairs.take(one, i), pairs.take(two, j), all_live)
        tile = tuple(
            t.at[i, j].set(v, mode="drop") for t, v in zip(tile, _named(values, which), strict=True)
        )
        return left.at[i, j].set(False, mode="drop"), tile

    return lax.while_loop(some_left, patch, (left, tile))[1]


def _named(kernels: Kernels, which: tuple[str, ...]) -> tuple[Array, ...]:
    return tuple(getattr(kernels, name) for name in which)


def _slice(points: pairs.Points, start: Array, size: int) -> pairs.Points:
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, start, size), points)


def _tile_size(n: int) -> int:
    """At most TILE, and such that the tiles cover n with little overlap."""
    return -(-n // -(-n // TILE))
