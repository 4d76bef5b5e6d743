"""Kernel matrices laid out over devices: each part is computed for its own device, and none waits for another.

A part on a CPU is computed as a matrix of its own, by the quick way for plain numbers. On other devices it is computed
there, by the program for traced numbers, and nothing of it is copied to the host.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from lnkernel.errors import InputError
from lnkernel.types import Array

Layout = Sharding | Mesh
Parts = tuple[Array, ...]  # one matrix for each kernel
OnHost = Callable[[Array, Array | None], Parts]  # of x and x2; None stands for x itself
OnDevice = Callable[[Array, Array], Parts]

HOSTS = ("cpu",)  # platforms whose devices share their memory with NumPy


def as_sharding(layout: object) -> Sharding:
    """The layout of a matrix: as it is given, or its rows, and columns, along the axes of a mesh."""
    if isinstance(layout, Sharding):
        return layout
    if not isinstance(layout, Mesh):
        raise InputError(
            "sharding",
            "a jax.sharding.Sharding or Mesh",
            type(layout).__name__,
            "Write e.g. jax.make_mesh((jax.device_count(),), ('rows',))",
        )
    if len(layout.axis_names) > 2:
        raise InputError(
            "sharding",
            "a mesh with one axis or two, for rows and columns",
            f"one with the axes {layout.axis_names}",
            "Give a jax.sharding.NamedSharding, which says what each axis is for",
        )
    return NamedSharding(layout, PartitionSpec(*layout.axis_names))


def sharded(
    x: np.ndarray, x2: np.ndarray | None, layout: object, on_host: OnHost, on_device: OnDevice
) -> tuple[jax.Array, ...]:
    """The matrices of all pairs, each laid out so; of several hosts each computes the parts of its own devices."""
    sharding = as_sharding(layout)
    shape = len(x), len(x if x2 is None else x2)
    _demand_equal_parts(sharding, shape)
    kept: dict[tuple[int, ...], Parts] = {}  # parts that several devices hold
    placed: list[Parts] = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        assert index is not None  # only devices of other hosts have none
        rows, columns = (
            slice(*part.indices(size)) for part, size in zip(index, shape, strict=True)
        )
        place = rows.start, rows.stop, columns.start, columns.stop
        one = x[rows]
        two = None if x2 is None and rows == columns else (x if x2 is None else x2)[columns]
        if _platform(device) not in HOSTS:
            first, second = (jax.device_put(s, device) for s in (one, one if two is None else two))
            placed.append(on_device(first, second))
            continue
        if place not in kept:
            kept[place] = on_host(one, two)
        placed.append(tuple(jax.device_put(part, device) for part in kept[place]))
    return tuple(
        jax.make_array_from_single_device_arrays(shape, sharding, list(parts))
        for parts in zip(*placed, strict=True)
    )


def _platform(device: jax.Device) -> str:
    name: str = device.platform
    return name


def _demand_equal_parts(sharding: Sharding, shape: tuple[int, int]) -> None:
    try:
        sharding.shard_shape(shape)
    except ValueError as problem:
        raise InputError(
            "sharding",
            "a layout that divides the rows and columns of the matrix into equal parts",
            f"{sharding} for a matrix of shape {shape}",
            "Leave out some points, or take a mesh whose sizes divide their number",
        ) from problem
