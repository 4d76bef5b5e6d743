r"""Cholesky's method on tiles over devices, and what its factor solves: a few small programs for tiles of any place.

The matrix stands in groups of P·b points; a tile has the rows of one group and the columns of another, and each of the
P devices has b of its rows. To eliminate a group, all devices gather its tile on the diagonal and factorise it, each
the whole of it; then each solves for its own rows of the tiles below, and all gather some columns of these at a time
and update their own rows of what is left. The tile on the diagonal costs every device $(Pb)^3/3$ operations, which with
L groups is a share of $P/L^2$ of its work.

All tiles have one shape, so the number of programs to compile does not grow with the number of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.sharding import Mesh, PartitionSpec

from lnkernel.types import Array

AXIS = "rows"
BY_ROWS, EVERYWHERE = PartitionSpec(AXIS), PartitionSpec()
COLUMNS = 512  # of L that every device has at a time

Column = tuple[jax.Array, ...]  # tiles, from the diagonal down


def eliminate(active: list[list[jax.Array]], mesh: Mesh) -> Column | None:
    """The columns of L of the first group; None where there are none. `active[m][g]` has the rows of group m and the
    columns of group g; it is updated in place, and loses its first group."""
    lower, first = _corner(active[0][0], mesh)
    if not np.isfinite(np.asarray(jnp.diagonal(lower.addressable_data(0)))).all():
        return None
    rest = active[1:]
    below = [_solve(lower, strip.pop(0), mesh) for strip in rest]
    del lower
    del active[0]
    height = first.shape[1]
    for start in range(0, height, COLUMNS):
        width = min(COLUMNS, height - start)
        # one at a time: a device waits for the others in a thread, and there may be few of them
        known = [jax.block_until_ready(_share(tile, start, width, mesh)) for tile in below]
        for m, strip in enumerate(rest):
            for g in range(m + 1):
                strip[g] = _update(strip[g], below[m], known[g], start, width, mesh)
        jax.block_until_ready(rest)  # else the columns of several steps were in memory at once
    return first, *below


def forward(tiles: Sequence[Column], b: np.ndarray, mesh: Mesh) -> np.ndarray:
    """L⁻¹ b."""
    height = tiles[0][0].shape[1]
    done: list[jax.Array] = []
    for m in range(len(tiles)):
        right = _own(b[m * height : (m + 1) * height], mesh)
        for earlier, known in enumerate(done):
            right = _less(right, tiles[earlier][m - earlier], known, mesh)
        done.append(jax.block_until_ready(_solve_corner(tiles[m][0], right, mesh)))
    return np.concatenate([np.asarray(part) for part in done])


def backward(tiles: Sequence[Column], b: np.ndarray, mesh: Mesh) -> np.ndarray:
    """L⁻ᵀ b."""
    height = tiles[0][0].shape[1]
    done: list[jax.Array] = []  # from the last group to the first
    for m in reversed(range(len(tiles))):
        right = b[m * height : (m + 1) * height]
        less = _zeros(right, mesh)
        for tile, known in zip(tiles[m][1:], reversed(done), strict=True):
            less = _add_transposed(less, tile, known, mesh)
        made = _solve_corner_transposed(tiles[m][0], right, less, mesh)
        done.append(jax.block_until_ready(made))
    return np.concatenate([np.asarray(part) for part in done[::-1]])


def over(mesh: Mesh, call, takes, gives):  # type: ignore[no-untyped-def]  # of any arrays
    """The function on each device's own part. What it gives everywhere is the same by construction."""
    return jax.shard_map(call, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)


@partial(jax.jit, static_argnames="mesh")
def _corner(tile: Array, mesh: Mesh) -> tuple[jax.Array, jax.Array]:
    """The factor of a tile on the diagonal, on every device and by rows; NaN where there is none."""

    def own(mine: Array) -> tuple[Array, Array]:
        whole = jax.lax.all_gather(mine, AXIS, tiled=True)
        lower = jnp.tril(jnp.linalg.cholesky(whole, symmetrize_input=False))
        return lower, _rows_of(lower, len(mine))

    return over(mesh, own, (BY_ROWS,), (EVERYWHERE, BY_ROWS))(tile)


@partial(jax.jit, static_argnames="mesh", donate_argnums=1)
def _solve(lower: Array, tile: Array, mesh: Mesh) -> jax.Array:
    """The tile of L below this corner: X with X Lᵀ = tile."""

    def own(lower: Array, mine: Array) -> Array:
        return solve_triangular(lower, mine.T, lower=True).T

    return over(mesh, own, (EVERYWHERE, BY_ROWS), BY_ROWS)(lower, tile)


@partial(jax.jit, static_argnames=("width", "mesh"))
def _share(tile: Array, start: Array, width: int, mesh: Mesh) -> jax.Array:
    """Some columns of a tile, on every device."""

    def own(mine: Array, start: Array) -> Array:
        some = jax.lax.dynamic_slice_in_dim(mine, start, width, axis=1)
        return jax.lax.all_gather(some, AXIS, tiled=True)

    return over(mesh, own, (BY_ROWS, EVERYWHERE), EVERYWHERE)(tile, start)


@partial(jax.jit, static_argnames=("width", "mesh"), donate_argnums=0)
def _update(
    tile: Array, left: Array, column: Array, start: Array, width: int, mesh: Mesh
) -> jax.Array:
    """tile - left columnᵀ, by some columns of both."""

    def own(mine: Array, left: Array, column: Array, start: Array) -> Array:
        some = jax.lax.dynamic_slice_in_dim(left, start, width, axis=1)
        return mine - some @ column.T

    takes = (BY_ROWS, BY_ROWS, EVERYWHERE, EVERYWHERE)
    return over(mesh, own, takes, BY_ROWS)(tile, left, column, start)


@partial(jax.jit, static_argnames="mesh")
def _own(b: Array, mesh: Mesh) -> jax.Array:
    """b by rows."""
    devices = mesh.devices.size

    def own(b: Array) -> Array:
        return _rows_of(b, len(b) // devices)

    return over(mesh, own, (EVERYWHERE,), BY_ROWS)(b)


@partial(jax.jit, static_argnames="mesh", donate_argnums=0)
def _less(right: Array, tile: Array, known: Array, mesh: Mesh) -> jax.Array:
    """right - tile known, by rows."""

    def own(right: Array, mine: Array, known: Array) -> Array:
        return right - mine @ known

    return over(mesh, own, (BY_ROWS, BY_ROWS, EVERYWHERE), BY_ROWS)(right, tile, known)


@partial(jax.jit, static_argnames="mesh")
def _solve_corner(corner: Array, right: Array, mesh: Mesh) -> jax.Array:
    """L⁻¹ right for a tile on the diagonal, on every device."""

    def own(corner: Array, right: Array) -> Array:
        whole, b = (jax.lax.all_gather(a, AXIS, tiled=True) for a in (corner, right))
        return solve_triangular(whole, b, lower=True)

    return over(mesh, own, (BY_ROWS, BY_ROWS), EVERYWHERE)(corner, right)


@partial(jax.jit, static_argnames="mesh")
def _zeros(right: Array, mesh: Mesh) -> jax.Array:
    """As many zeros as `right` has numbers, for each device."""
    return over(mesh, jnp.zeros_like, (EVERYWHERE,), BY_ROWS)(right)


@partial(jax.jit, static_argnames="mesh", donate_argnums=0)
def _add_transposed(less: Array, tile: Array, known: Array, mesh: Mesh) -> jax.Array:
    """less + tileᵀ known, what each device's rows add to it."""

    def own(less: Array, mine: Array, known: Array) -> Array:
        return less + (_rows_of(known, len(mine)).T @ mine).T

    return over(mesh, own, (BY_ROWS, BY_ROWS, EVERYWHERE), BY_ROWS)(less, tile, known)


@partial(jax.jit, static_argnames="mesh")
def _solve_corner_transposed(corner: Array, right: Array, less: Array, mesh: Mesh) -> jax.Array:
    """L⁻ᵀ (right - less) for a tile on the diagonal, on every device; the devices' parts of `less` are added up."""

    def own(corner: Array, right: Array, less: Array) -> Array:
        whole = jax.lax.all_gather(corner, AXIS, tiled=True)
        return solve_triangular(whole, right - jax.lax.psum(less, AXIS), lower=True, trans=1)

    return over(mesh, own, (BY_ROWS, EVERYWHERE, BY_ROWS), EVERYWHERE)(corner, right, less)


def _rows_of(whole: Array, block: int) -> Array:
    """The rows of this device, of an array that every device has."""
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index(AXIS) * block, block)
