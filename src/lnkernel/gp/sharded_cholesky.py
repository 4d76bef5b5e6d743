r"""Cholesky's method over many devices and hosts, on half of the matrix.

The groups of points are eliminated one after the other (`tiles`). What is left shrinks from round to round, so the
operations are $n^3/3$ and little more. A device sends and receives $n^2/2$ numbers in all.

The elementary operations are those of the unblocked method in another order, so the classical bound of its rounding
errors holds as it stands (Higham, theorem 10.3; Rump 2006), as long as the device multiplies matrices the classical
way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from lnkernel.errors import NotEnoughMemoryError
from lnkernel.gp.factor import Factor
from lnkernel.gp.packed import GramRows
from lnkernel.gp.rounds import Progress, Rounds
from lnkernel.gp.strips import GramStrips, StripLayout, deal_out
from lnkernel.gp.tiles import (
    AXIS,
    BY_ROWS,
    EVERYWHERE,
    Column,
    backward,
    eliminate,
    forward,
    over,
)
from lnkernel.gram import memory
from lnkernel.gram.hosts import watch_processes
from lnkernel.gram.sharded import HOSTS, Layout
from lnkernel.progress import Bar
from lnkernel.types import Array

Tiles = tuple[Column, ...]  # [l][m - l]: rows of group m and columns of group l of L
COLUMNS = 256  # of right-hand sides, at a time


@dataclass(frozen=True)
class ShardedCholesky(Factor):
    """The factor of A, each device holding rows of it, and how A is computed again."""

    tiles: Tiles
    strips: GramStrips
    diagonal: np.ndarray  # of A

    @property
    def layout(self) -> StripLayout:
        return self.strips.layout

    @property
    def stored(self) -> np.ndarray:
        return np.empty((0, 0))  # nothing of it is in one place

    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k), by computing A once more."""
        return strips_times(self.strips, self.layout, b) + self.diagonal[:, None] * b

    def half_solve(self, b: np.ndarray) -> np.ndarray:
        return self._by_columns(b, (False,))

    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        return self._by_columns(b, (False, True))

    def _by_columns(self, b: np.ndarray, ways: tuple[bool, ...]) -> np.ndarray:
        done = []
        for start in range(0, b.shape[1], COLUMNS):
            some = b[:, start : start + COLUMNS]
            width = 1 << (some.shape[1] - 1).bit_length()  # a few widths, each compiled once
            part = np.zeros((self.layout.padded, width))
            part[: len(b), : some.shape[1]] = some
            with jax.enable_x64(True), watch_processes():
                for transposed in ways:
                    solve = backward if transposed else forward
                    part = solve(self.tiles, part, self.layout.mesh)
            done.append(part[: len(b), : some.shape[1]])
        return np.concatenate(done, axis=1)

    def log_determinant(self) -> float:
        with jax.enable_x64(True):
            corners = tuple(column[0] for column in self.tiles)
            return 2 * float(np.log(np.asarray(_diagonal(corners, self.layout.mesh))).sum())

    def frobenius(self) -> float:
        return self._frobenius

    @cached_property
    def _frobenius(self) -> float:
        return math.sqrt(2 * sum_of_squares(self.strips) + float(np.square(self.diagonal).sum()))

    def again(self, rows: GramRows, shift: float = 0.0) -> ShardedCholesky | None:
        """The factor of a matrix of as many points, over the same devices, with the same files."""
        demand_room(self.layout)
        return _cholesky_of(GramStrips(rows, self.layout, shift, self.strips.files))

    def with_diagonal(self, diagonal: np.ndarray) -> ShardedCholesky:
        return replace(self, diagonal=diagonal)


def sharded_cholesky(
    rows: GramRows, sharding: Layout, shift: float = 0.0, folder: str | Path | None = None
) -> ShardedCholesky | None:
    """The factor of A + shift I over these devices; None where there is none. Every process calls it alike.

    With a folder the entries are kept there, and read again by a run that goes on.
    """
    layout = deal_out(len(rows.x), sharding)
    demand_room(layout)
    return _cholesky_of(GramStrips.of(rows, layout, shift, folder))


def _cholesky_of(strips: GramStrips) -> ShardedCholesky | None:
    diagonal = strips.diagonal()
    if not (diagonal > 0).all():
        return None
    layout, files = strips.layout, strips.files
    rounds = None if files is None else Rounds.of(files, layout, diagonal)
    with jax.enable_x64(True), watch_processes():
        found = None if rounds is None else rounds.find()
        tiles = _factorise(
            found or Progress([], _in_tiles(_with_bar(strips), layout.height)), layout, rounds
        )
    return None if tiles is None else ShardedCholesky(tiles, strips, diagonal)


def strips_times(strips: Iterable[jax.Array], layout: StripLayout, b: np.ndarray) -> np.ndarray:
    """A b but for the diagonal of A, for b of shape (n, k)."""
    product, right = np.zeros((layout.padded, b.shape[1])), layout.pad(b)
    with jax.enable_x64(True), watch_processes():
        for strip in strips:
            product += np.asarray(_times_strip(strip, right, layout.mesh))
    return product[: len(b)]


def sum_of_squares(strips: Iterable[jax.Array]) -> float:
    """The sum over all that stands below the diagonal."""
    with jax.enable_x64(True):
        return sum(float(_square(strip)) for strip in strips)


def demand_room(layout: StripLayout) -> None:
    """Memory for the devices of this host, if they are its processors; accelerators say so themselves."""
    here = [d for d in layout.mesh.devices.flat if d.process_index == jax.process_index()]
    if here and here[0].platform in HOSTS:
        needed, available = len(here) * layout.bytes_of_device(), memory.available_memory()
        if needed > available:
            part = f"This host's part ({len(here)} of {layout.devices} devices)"
            raise NotEnoughMemoryError(
                f"{part} of half of the Gram matrix", layout.n, needed, available
            )


def _with_bar(strips: GramStrips) -> Iterator[jax.Array]:
    height = strips.layout.height
    with Bar(None, strips.layout.padded**2 // 2, "entries", "Gram matrix") as bar:
        for strip in strips:
            yield strip
            bar.update(height * (strip.shape[1] - height // 2))


def _factorise(begun: Progress, layout: StripLayout, rounds: Rounds | None) -> Tiles | None:
    """The tiles of L. The strips are gone afterwards."""
    tiles, active = list(begun.tiles), begun.active
    del begun  # what it holds is worked on in place
    work, height = layout.padded**3 // 3, layout.height
    done = work - (len(active) * height) ** 3 // 3
    with Bar(None, work, "operations", "Cholesky", done) as bar:
        while active:
            left = len(active) * height
            column = eliminate(active, layout.mesh)
            if column is None:
                return None
            tiles.append(column)
            bar.update((left**3 - (left - height) ** 3) // 3)
            if rounds is not None and active:
                rounds.offer(Progress(tiles, active))
    return tuple(tiles)


def _in_tiles(strips: Iterable[jax.Array], height: int) -> list[list[jax.Array]]:
    """The columns of each group of each strip."""
    return [
        [_columns(strip, start, height) for start in range(0, strip.shape[1], height)]
        for strip in strips
    ]


@partial(jax.jit, static_argnames="width")
def _columns(strip: Array, start: Array, width: int) -> jax.Array:
    """Some columns of a strip; compiled once for all places."""
    return jax.lax.dynamic_slice_in_dim(strip, start, width, axis=1)


@partial(jax.jit, static_argnames="mesh")
def _diagonal(corners: tuple[Array, ...], mesh: Mesh) -> jax.Array:
    """The diagonal of L in these groups, on every device."""

    def whole(mine: tuple[Array, ...]) -> Array:
        me, block = jax.lax.axis_index(AXIS), mine[0].shape[0]
        own = [
            jnp.diagonal(jax.lax.dynamic_slice_in_dim(c, me * block, block, axis=1)) for c in mine
        ]
        return jax.lax.all_gather(jnp.concatenate(own), AXIS, tiled=True)

    return over(mesh, whole, (BY_ROWS,), EVERYWHERE)(corners)


@partial(jax.jit, static_argnames="mesh")
def _times_strip(strip: Array, b: Array, mesh: Mesh) -> jax.Array:
    """What the rows of a strip, and by symmetry its columns, add to A b, but for the diagonal."""

    def whole(mine: Array, b: Array) -> Array:
        me = jax.lax.axis_index(AXIS)
        block, stop = mine.shape
        group = stop - block * mesh.devices.size  # the first row of the strip
        start = group + me * block
        column = group + jnp.arange(stop - group)
        corner = jnp.where(column < (start + jnp.arange(block))[:, None], mine[:, group:], 0.0)
        some = jax.lax.dynamic_slice_in_dim(b, start, block)
        # of few columns XLA multiplies (bᵀ A)ᵀ much faster than Aᵀ b
        out = jnp.zeros_like(b).at[:group].set((some.T @ mine[:, :group]).T)
        out = out.at[group:stop].set((some.T @ corner).T)
        rows = mine[:, :group] @ b[:group] + corner @ b[group:stop]
        rows = rows + jax.lax.dynamic_slice_in_dim(out, start, block)
        out = jax.lax.dynamic_update_slice_in_dim(out, rows, start, axis=0)
        return jax.lax.psum(out, AXIS)

    return over(mesh, whole, (BY_ROWS, EVERYWHERE), EVERYWHERE)(strip, b)


@jax.jit
def _square(strip: Array) -> jax.Array:
    """The sum of the squares below the diagonal."""
    rows, columns = strip.shape
    below = jnp.arange(columns) < (columns - rows + jnp.arange(rows))[:, None]
    return jnp.square(jnp.where(below, strip, 0.0)).sum()
