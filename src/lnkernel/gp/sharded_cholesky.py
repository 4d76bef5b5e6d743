r"""Cholesky's method over many devices and hosts, on half of the matrix.

In round l the P blocks of rows of strip l are eliminated one after the other: the owner of a block gives its corner
to all, each device solves for its own rows below, all gather these b columns of L, and each updates what is left of
its own strips. What is left shrinks from round to round, so the operations are $n^3/3$ and little more. A device sends
and receives $n^2/2$ numbers in all.

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
from jax.scipy.linalg import solve_triangular
from jax.sharding import Mesh, PartitionSpec

from lnkernel.errors import NotEnoughMemoryError
from lnkernel.gp.factor import Factor
from lnkernel.gp.packed import GramRows
from lnkernel.gp.rounds import Progress, Rounds
from lnkernel.gp.strips import AXIS, GramStrips, StripLayout, deal_out
from lnkernel.gram import memory
from lnkernel.gram.hosts import watch_processes
from lnkernel.gram.sharded import HOSTS, Layout
from lnkernel.progress import Bar
from lnkernel.types import Array

Tiles = tuple[tuple[jax.Array, ...], ...]  # [l][m - l]: rows of group m and columns of group l of L
BY_ROWS, EVERYWHERE = PartitionSpec(AXIS), PartitionSpec()
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
                    solve = _backward if transposed else _forward
                    part = np.asarray(solve(self.tiles, part, self.layout.mesh))
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
        tiles = _factorise(found or Progress([], tuple(_with_bar(strips))), layout, rounds)
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
    del begun  # the strips that it holds are worked on in place
    work, height = layout.padded**3 // 3, layout.height
    done = work - (len(active) * height) ** 3 // 3
    with Bar(None, work, "operations", "Cholesky", done) as bar:
        while active:
            left = len(active) * height
            column, active = _split(_eliminate(active, layout.mesh), height)
            if not np.isfinite(np.asarray(_diagonal(column[:1], layout.mesh))).all():
                return None
            tiles.append(column)
            bar.update((left**3 - (left - height) ** 3) // 3)
            if rounds is not None and active:
                rounds.offer(Progress(tiles, active))
    return tuple(tiles)


@partial(jax.jit, static_argnames="mesh", donate_argnums=0)
def _eliminate(active: tuple[Array, ...], mesh: Mesh) -> tuple[jax.Array, ...]:
    """One round, in place: the columns of L of the first group, and what is left to do in the others."""
    devices = mesh.devices.size

    def step(i: Array, mine: tuple[Array, ...]) -> tuple[Array, ...]:
        me, block = jax.lax.axis_index(AXIS), mine[0].shape[0]
        panel = [jax.lax.dynamic_slice_in_dim(s, i * block, block, axis=1) for s in mine]
        corner = jax.lax.psum(jnp.where(me == i, panel[0], 0.0), AXIS)
        # of a block that is not positive definite it is NaN, which is seen after the round
        lower = jnp.linalg.cholesky(corner, symmetrize_input=False)
        solved = solve_triangular(lower, jnp.concatenate(panel).T, lower=True).T
        below = solved.at[:block].set(jnp.where(me > i, solved[:block], 0.0))
        first = jnp.where(me > i, solved[:block], jnp.where(me == i, jnp.tril(lower), panel[0]))
        # (devices, strips, block, block) as the rows stand in the matrix
        parts = jax.lax.all_gather(below, AXIS).reshape(devices, len(mine), block, block)
        column = parts.transpose(1, 0, 2, 3).reshape(-1, block)
        out = []
        for m, strip in enumerate(mine):
            some = below[m * block : (m + 1) * block]
            here = jax.lax.dynamic_update_slice_in_dim(
                strip, some if m else first, i * block, axis=1
            )
            # the column is 0 for rows that are done, so that what is done stays
            out.append(here - some @ column[: strip.shape[1]].T)
        return tuple(out)

    def whole(mine: tuple[Array, ...]) -> tuple[Array, ...]:
        return jax.lax.fori_loop(0, devices, step, mine)

    return _over(mesh, whole, (BY_ROWS,), BY_ROWS)(active)


Parts = tuple[jax.Array, ...]


def _split(strips: Parts, height: int) -> tuple[Parts, Parts]:
    """The first columns of all strips, and the others of all but the first, strip by strip to save memory."""
    left, done, rest = list(reversed(strips)), [], []
    del strips
    while left:
        strip = left.pop()
        done.append(strip[:, :height])
        if strip.shape[1] > height:
            rest.append(strip[:, height:])
    return tuple(done), tuple(rest)


@partial(jax.jit, static_argnames="mesh")
def _forward(tiles: Tiles, b: Array, mesh: Mesh) -> jax.Array:
    """L⁻¹ b, on every device."""

    def whole(mine: Tiles, b: Array) -> Array:
        block, height = mine[0][0].shape
        me = jax.lax.axis_index(AXIS)
        done: list[Array] = []
        for m in range(len(mine)):
            right = jax.lax.dynamic_slice_in_dim(b, m * height + me * block, block)
            for earlier, known in enumerate(done):
                right = right - mine[earlier][m - earlier] @ known
            right, corner = (jax.lax.all_gather(a, AXIS, tiled=True) for a in (right, mine[m][0]))
            done.append(solve_triangular(corner, right, lower=True))
        return jnp.concatenate(done)

    return _over(mesh, whole, (BY_ROWS, EVERYWHERE), EVERYWHERE)(tiles, b)


@partial(jax.jit, static_argnames="mesh")
def _backward(tiles: Tiles, b: Array, mesh: Mesh) -> jax.Array:
    """L⁻ᵀ b, on every device."""

    def whole(mine: Tiles, b: Array) -> Array:
        block, height = mine[0][0].shape
        me = jax.lax.axis_index(AXIS)
        done: list[Array] = []  # from the last group to the first
        for m in reversed(range(len(mine))):
            right = b[m * height : (m + 1) * height]
            own = jnp.zeros_like(right)
            for tile, known in zip(mine[m][1:], reversed(done), strict=True):
                some = jax.lax.dynamic_slice_in_dim(known, me * block, block)
                own = own + (some.T @ tile).T
            corner = jax.lax.all_gather(mine[m][0], AXIS, tiled=True)
            right = right - jax.lax.psum(own, AXIS)
            done.append(solve_triangular(corner, right, lower=True, trans=1))
        return jnp.concatenate(done[::-1])

    return _over(mesh, whole, (BY_ROWS, EVERYWHERE), EVERYWHERE)(tiles, b)


@partial(jax.jit, static_argnames="mesh")
def _diagonal(corners: tuple[Array, ...], mesh: Mesh) -> jax.Array:
    """The diagonal of L in these groups, on every device."""

    def whole(mine: tuple[Array, ...]) -> Array:
        me, block = jax.lax.axis_index(AXIS), mine[0].shape[0]
        own = [
            jnp.diagonal(jax.lax.dynamic_slice_in_dim(c, me * block, block, axis=1)) for c in mine
        ]
        return jax.lax.all_gather(jnp.concatenate(own), AXIS, tiled=True)

    return _over(mesh, whole, (BY_ROWS,), EVERYWHERE)(corners)


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

    return _over(mesh, whole, (BY_ROWS, EVERYWHERE), EVERYWHERE)(strip, b)


@jax.jit
def _square(strip: Array) -> jax.Array:
    """The sum of the squares below the diagonal."""
    rows, columns = strip.shape
    below = jnp.arange(columns) < (columns - rows + jnp.arange(rows))[:, None]
    return jnp.square(jnp.where(below, strip, 0.0)).sum()


def _over(mesh: Mesh, call, takes, gives):  # type: ignore[no-untyped-def]  # of any arrays
    """The function on each device's own part. What it gives everywhere is the same by construction."""
    return jax.shard_map(call, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)
