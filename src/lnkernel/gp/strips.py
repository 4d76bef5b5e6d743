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
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lnkernel.gp.packed import GramRows
from lnkernel.gp.tiles import AXIS, COLUMNS
from lnkernel.gram.hosts import watch_processes
from lnkernel.gram.sharded import Layout, as_sharding
from lnkernel.gram.tile_files import TileFiles, tile_files
from lnkernel.types import Array
from lnkernel.version import __version__

GROUPS = 16  # at most, unless blocks became too large: with each the programs that make a strip are compiled anew
GROUP = 1000  # points of a group, at least: to compile for fewer takes longer than it saves
ROUNDS = 3  # times the strips, on disk: what is done of the factorisation, and two of its rounds
BLOCK = 4096  # rows, at most, of a device's part of a strip


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

    def bytes_of_strips(self) -> int:
        """The memory of one device's part of all strips."""
        return 8 * self.block * self.height * self.groups * (self.groups + 1) // 2

    def bytes_of_device(self) -> int:
        """Memory of one device: its part of the strips, work space for the largest of them, three times over, and what
        every device has of the columns that are worked on, and of a tile on the diagonal."""
        columns = min(COLUMNS, self.height) * self.padded
        work = 3 * self.block * self.padded + columns + 4 * self.height**2
        return self.bytes_of_strips() + 8 * work

    def in_words(self) -> str:
        """What is planned, in numbers.

        >>> import jax
        >>> deal_out(100_000, jax.make_mesh((1,), ("i",))).in_words()
        '100000 points over 1 device of 1 process: 25 strips, 48.5 GiB for each device'
        """
        owners = len({device.process_index for device in self.mesh.devices.flat})
        count = "1 device" if self.devices == 1 else f"{self.devices} devices"
        of = "1 process" if owners == 1 else f"{owners} processes"
        strips = "1 strip" if self.groups == 1 else f"{self.groups} strips"
        size = self.bytes_of_device() / 2**30
        return f"{self.n} points over {count} of {of}: {strips}, {size:.3g} GiB for each device"

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
    most = max(
        GROUPS, 3 * math.isqrt(count)
    )  # so that tiles on the diagonal stay a ninth of the work
    few = max(1, min(most, n // GROUP, math.isqrt(n // count)))
    groups = max(few, -(-n // (count * BLOCK)))
    return StripLayout(mesh, n, -(-n // (count * groups)), groups)


@dataclass(frozen=True)
class GramStrips:
    """A = S (kernel(x, x) + noise) S + shift, strip by strip; the description of A is that of `GramRows`."""

    rows: GramRows
    layout: StripLayout
    shift: float = 0.0
    files: TileFiles | None = None  # where the kernel's numbers are kept

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
        points = np.resize(rows.x, (layout.padded, rows.x.shape[1]))
        points[layout.n :] = rows.x[0]  # those added are copies
        sides = points[start:stop], points[:stop]
        made = (
            rows.kernel(*sides, sharding=layout.by_rows)
            if self.files is None
            else self._from_files(self.files, m, *sides)
        )
        scale = np.ones(layout.n) if rows.scale is None else rows.scale
        with jax.enable_x64(True), watch_processes():
            return _finish(made, layout.pad(scale)[:stop], ends[start:stop], start, layout.by_rows)

    def _from_files(self, files: TileFiles, m: int, one: np.ndarray, two: np.ndarray) -> jax.Array:
        """The strip, each device's part from the disk or written there."""
        kernel, shape, placed = self.rows.kernel, (len(one), len(two)), []
        for device, index in self.layout.by_rows.addressable_devices_indices_map(shape).items():
            assert index is not None  # only devices of other hosts have none
            some = slice(*index[0].indices(shape[0]))
            compute = partial(kernel, one[some], two)
            part = files.part(f"{m}", shape, some.start, some.stop - some.start, compute)
            with jax.enable_x64(True):
                placed.append(jax.device_put(part, device))
        return jax.make_array_from_single_device_arrays(shape, self.layout.by_rows, placed)

    @classmethod
    def of(
        cls, rows: GramRows, layout: StripLayout, shift: float, folder: str | Path | None
    ) -> GramStrips:
        """The strips, with files below a folder if there is one."""
        if folder is None:
            return cls(rows, layout, shift)
        files = files_of(rows, layout, folder)
        here = sum(d.process_index == jax.process_index() for d in layout.mesh.devices.flat)
        files.demand_room(here * ROUNDS * layout.bytes_of_strips())
        return cls(rows, layout, shift, files)


def files_of(rows: GramRows, layout: StripLayout, folder: str | Path) -> TileFiles:
    """Where this problem's files are, below a folder."""
    known = {
        "network": repr(rows.kernel.arch),
        "kernel": rows.kernel.which,
        "block": layout.block,
        "devices": layout.devices,
        "version": __version__,
    }
    return tile_files(folder, known, rows.x)


@partial(jax.jit, static_argnames=("sharding",), donate_argnums=0)
def _finish(
    strip: Array, scale: Array, ends: Array, start: Array, sharding: NamedSharding
) -> jax.Array:
    """Scaled, with these numbers on the diagonal. The scale of points that were added is 0."""

    def own(mine: Array, scale: Array, ends: Array, start: Array) -> Array:
        here = jax.lax.axis_index(AXIS) * len(mine)
        row, column = start + here + jnp.arange(len(mine)), jnp.arange(mine.shape[1])
        full = mine * jax.lax.dynamic_slice_in_dim(scale, start + here, len(mine))[:, None] * scale
        on = jax.lax.dynamic_slice_in_dim(ends, here, len(mine))
        return jnp.where(row[:, None] == column, on[:, None], full)

    by_rows, whole = PartitionSpec(AXIS), PartitionSpec()
    takes = (by_rows, whole, whole, whole)
    spread: Any = jax.shard_map(own, mesh=sharding.mesh, in_specs=takes, out_specs=by_rows)
    made: jax.Array = spread(strip, scale, ends, start)
    return made
