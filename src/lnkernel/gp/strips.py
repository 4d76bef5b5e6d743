r"""Half of a Gram matrix over many devices, as strips of rows: the layout in which Cholesky's method keeps all busy.

The points stand in L groups of P·b, for P devices. Strip m holds the rows of group m, and their columns up to the end
of the group; each device has b rows of every strip. So the blocks of b rows go round the devices (a block-cyclic
layout, in which no device runs out of work early), half of the matrix is stored, and every strip is an ordinary kernel
matrix between two sets of points, laid out by rows.

If n is not L·P·b, points are added at the end that have nothing to do with the others: rows of the identity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lnkernel.gp.packed import GramRows
from lnkernel.gram.sharded import Layout, as_sharding
from lnkernel.types import Array

AXIS = "rows"
GROUPS = 12  # at most, unless blocks became too large: each takes a program of its own
GROUP = 1500  # points of a group, at least: to compile for fewer takes longer than it saves
BLOCK = 1024  # rows, at most, of a device's part of a strip


@dataclass(frozen=True)
class StripLayout:
    """How n points are dealt out to the devices of a mesh of one axis."""

    mesh: Mesh
    n: int
    block: int
    groups: int

    @property
    def devices(self) -> int:
        return int(self.mesh.devices.size)

    @property
    def height(self) -> int:
        """Rows of a strip."""
        return self.devices * self.block

    @property
    def padded(self) -> int:
        """Points, with those that were added."""
        return self.groups * self.height

    @property
    def by_rows(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(AXIS))

    @property
    def everywhere(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())

    def bytes_of_device(self) -> int:
        """Memory of one device: its part of the strips, and work space for the largest of them, three times over."""
        rows = self.block * self.height * self.groups * (self.groups + 1) // 2
        return 8 * (rows + 3 * self.block * self.padded)

    def pad(self, values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        """Values (n, ...) for all points, with `fill` for those that were added."""
        out = np.full((self.padded, *values.shape[1:]), fill)
        out[: self.n] = values
        return out


def deal_out(n: int, layout: Layout) -> StripLayout:
    """The layout of n points over all devices that are named, in whatever shape they stand.

    >>> import jax
    >>> made = deal_out(1000, jax.make_mesh((1,), ("i",)))
    >>> made.groups, made.block, made.padded
    (1, 1000, 1000)
    """
    sharding = as_sharding(layout)
    devices: list[Any] = (
        list(sharding.mesh.devices.flat)
        if isinstance(sharding, NamedSharding)
        else sorted(sharding.device_set, key=lambda device: device.id)
    )
    mesh, count = Mesh(np.array(devices), (AXIS,)), len(devices)
    few = max(1, min(GROUPS, n // GROUP, math.isqrt(n // count)))
    groups = max(few, -(-n // (count * BLOCK)))
    return StripLayout(mesh, n, -(-n // (count * groups)), groups)


@dataclass(frozen=True)
class GramStrips:
    """A = S (kernel(x, x) + noise) S + shift, strip by strip; the description of A is that of `GramRows`."""

    rows: GramRows
    layout: StripLayout
    shift: float = 0.0

    def diagonal(self) -> np.ndarray:
        """The diagonal of A, (n,)."""
        rows = self.rows
        made = np.asarray(rows.kernel.diagonal(rows.x)) + rows.noise
        return made * (1.0 if rows.scale is None else np.square(rows.scale)) + self.shift

    def __iter__(self) -> Iterator[jax.Array]:
        """The strips, (P b, (m + 1) P b), float64."""
        ends = self.layout.pad(self.diagonal(), 1.0)
        return (self.strip(m, ends) for m in range(self.layout.groups))

    def strip(self, m: int, ends: np.ndarray) -> jax.Array:
        """Strip m. `ends` is the diagonal of the padded matrix. Every device's part is computed by itself."""
        layout, rows = self.layout, self.rows
        start, stop = m * layout.height, (m + 1) * layout.height
        points = np.resize(rows.x, (layout.padded, rows.x.shape[1]))  # those added are copies
        points[layout.n :] = rows.x[0]
        made = rows.kernel(points[start:stop], points[:stop], sharding=layout.by_rows)
        scale = np.ones(layout.n) if rows.scale is None else rows.scale
        with jax.enable_x64(True):
            return _finish(made, layout.pad(scale)[:stop], ends[start:stop], start, layout.by_rows)


@partial(jax.jit, static_argnames=("sharding",), donate_argnums=0)
def _finish(
    strip: Array, scale: Array, ends: Array, start: Array, sharding: NamedSharding
) -> jax.Array:
    """Scaled, with these numbers on the diagonal. The scale of points that were added is 0."""
    row = start + jnp.arange(strip.shape[0])
    column = jnp.arange(strip.shape[1])
    full = strip * jax.lax.dynamic_slice_in_dim(scale, start, strip.shape[0])[:, None] * scale
    made = jnp.where(row[:, None] == column, ends[:, None], full)
    return jax.lax.with_sharding_constraint(made, sharding)
