"""Where training data enters: X of shape (n, d), y of shape (n,) or (n, k), and room for n²."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lnkernel.errors import InputError, NotEnoughMemoryError
from lnkernel.gram.boundary import as_points

MEMINFO = Path("/proc/meminfo")


class Data(NamedTuple):
    """Inputs and targets as float64 arrays of our own that nobody writes to."""

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n, k)
    one_output: bool  # whether y came as (n,)


def as_data(X: Any, y: Any) -> Data:
    """The data, checked: shapes, finite numbers, as many targets as inputs."""
    x = np.array(as_points("X", X))
    targets = as_targets(y, len(x))
    one_output = targets.ndim == 1
    columns = targets[:, None] if one_output else targets
    for array in (x, columns):
        array.flags.writeable = False
    return Data(x, columns, one_output)


def as_targets(y: Any, n: int) -> np.ndarray:
    """y as a new float64 array of shape (n,) or (n, k)."""
    try:
        given = np.asarray(y)
    except (TypeError, ValueError) as problem:
        raise InputError(
            "y",
            "an array of numbers",
            f"{type(y).__name__} ({problem})",
            "Give every point the same number of outputs",
        ) from None
    shape = tuple(given.shape)
    if given.ndim not in (1, 2) or shape[0] != n or 0 in shape:
        transposed = given.ndim == 2 and shape[1] == n
        raise InputError(
            "y",
            f"one target per point of X, shape ({n},) or ({n}, k)",
            f"shape {shape}",
            "Write y.T" if transposed else "Check that X and y were loaded and filtered alike",
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
        raise InputError(
            "y",
            "finite numbers",
            f"{given[where]} for point {where[0]}",
            "Drop such points from X and y alike",
        )
    return np.array(as_points("y", given.reshape(n, -1))).reshape(shape)


def as_inputs(x: Any, dimension: int, name: str = "x") -> np.ndarray:
    """Inputs to predict at, of the dimension of the training inputs."""
    points = np.asarray(as_points(name, x))
    if points.shape[1] != dimension:
        raise InputError(
            name,
            f"the dimension of the training inputs, {dimension}",
            f"shape {tuple(points.shape)}",
            f"Give {name} the columns that X has",
        )
    return points


def demand_memory(n: int, matrices: int, purpose: str) -> None:
    """An error that says how much memory n points need, before it is asked for."""
    needed, available = 8 * matrices * n * n, available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemoryError(purpose, n, needed, available)


def available_memory() -> int | None:
    """Bytes that can be had without swapping, where the system tells."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass  # not Linux: the size of the whole memory has to do
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
