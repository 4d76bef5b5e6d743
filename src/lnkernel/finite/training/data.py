"""Where training data enters: checked as for a posterior, then in the network's precision."""

from __future__ import annotations

import warnings
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lnkernel.check.arrays import as_data, shape_of
from lnkernel.errors import DataScaleWarning, InputError
from lnkernel.tangents.inputs import convert

LARGE = 1e4  # a network starts with outputs and gradients of order 1 for data of order 1
LOST = 1e-3  # share of a column's spread that is lost by rounding


class TrainingData(NamedTuple):
    """Inputs and targets in the precision of the network, for all networks or each its own."""

    x: Float[np.ndarray, "n ..."] | Float[np.ndarray, "networks n ..."]
    y: Float[np.ndarray, "n k"] | Float[np.ndarray, "networks n k"]
    one_output: bool  # whether y came as (n,), or as that for each
    own: bool = False

    @property
    def points(self) -> int:
        """How many a network is trained on."""
        return self.y.shape[-2]


def as_training_data(X: Any, y: Any, dtype: Any, stacklevel: int = 3) -> TrainingData:
    """The data, checked and converted, with a warning if its scale makes training hopeless.

    The warning points `stacklevel` calls above: at the line of the user that called the caller of this one.
    """
    shape = shape_of("X", X)
    flat = np.reshape(X, (shape[0], -1)) if len(shape) > 2 and 0 not in shape else X
    data = as_data(flat, y)
    inputs, targets = convert("X", data.x, dtype), convert("y", data.y, dtype)
    _warn_of_scale("X", data.x, dtype, stacklevel + 1)
    _warn_of_scale("y", data.y, dtype, stacklevel + 1)
    return TrainingData(inputs.reshape(shape), targets, data.one_output)


def is_of_each(X: Any) -> bool:
    """Whether these are inputs (networks, n, d), for each network its own, perhaps in a list."""
    try:
        if isinstance(X, list | tuple):  # large ones are not copied to find it out
            return len(X) > 0 and np.ndim(X[0]) == 2
        return np.ndim(X) == 3
    except ValueError:  # rows of different lengths: whoever checks the numbers says so
        return False


def as_ensemble_data(X: Any, y: Any, networks: int, dtype: Any) -> TrainingData:
    """The data for many networks, for all alike or (networks, n, d) and (networks, n), (…, k)."""
    if not is_of_each(X):
        return as_training_data(X, y, dtype, stacklevel=4)
    for data in X:
        shape_of("X", data)
    if len(X) != networks or np.ndim(y[0]) == 0 or len(y) != networks:
        raise InputError(
            "X and y",
            f"data for each of the {networks} networks, along the first axis of both",
            f"{len(X)} times {np.shape(X[0])} and {len(y)} times {np.shape(y[0])}",
            "Give (n, d) and (n,) for all networks alike, or as many data sets as seeds",
        )
    each = map(as_training_data, X, y, repeat(dtype), repeat(4))
    inputs, targets, one_output, _ = zip(*each, strict=True)
    sizes = [len(x) for x in inputs]
    if len(set(sizes)) > 1:
        raise InputError(
            "X", "as many points for each network", str(sizes), "Train such networks one by one"
        )
    return TrainingData(np.stack(inputs), np.stack(targets), one_output[0], own=True)


def _warn_of_scale(name: str, values: np.ndarray, dtype: Any, stacklevel: int) -> None:
    largest, spread = np.abs(values).max(axis=0), values.std(axis=0)
    lost = np.finfo(dtype).eps * largest > LOST * spread
    blurred = np.flatnonzero(lost & (np.ptp(values, axis=0) > 0))  # equal numbers have std > 0
    remedy = f"Standardise it: ({name} - {name}.mean(0)) / {name}.std(0)."
    if blurred.size:
        column = int(blurred[0])
        warnings.warn(
            f"{name}: column {column} has numbers up to {largest[column]:.3g} that differ by about "
            f"{spread[column]:.3g}, and {np.dtype(dtype)} tells them apart only roughly. {remedy}",
            DataScaleWarning,
            stacklevel=stacklevel,
        )
    elif largest.max() > LARGE:
        warnings.warn(
            f"{name}: its numbers reach {largest.max():.3g}, and networks start with outputs of "
            "order 1 for inputs of order 1, so that learning rates and numbers of steps that are "
            f"usual are likely to fail. {remedy}",
            DataScaleWarning,
            stacklevel=stacklevel,
        )
