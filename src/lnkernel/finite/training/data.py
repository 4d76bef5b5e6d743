"""Where training data enters: checked as for a posterior, then in the network's precision."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from lnkernel.errors import DataScaleWarning, InputError
from lnkernel.gp.data import as_data

LARGE = 1e4  # a network starts with outputs and gradients of order 1 for data of order 1
LOST = 1e-3  # of a column's spread, lost by rounding


class TrainingData(NamedTuple):
    """Inputs and targets in the precision of the network."""

    x: np.ndarray  # (n, ...)
    y: np.ndarray  # (n, k)
    one_output: bool  # whether y came as (n,)


def as_training_data(X: Any, y: Any, dtype: Any) -> TrainingData:
    """The data, checked and converted, with a warning if its scale makes training hopeless."""
    shape = np.shape(X)
    flat = np.reshape(X, (shape[0], -1)) if len(shape) > 2 and 0 not in shape else X
    data = as_data(flat, y)
    inputs, targets = converted("X", data.x, dtype), converted("y", data.y, dtype)
    _warn_of_scale("X", data.x, dtype)
    _warn_of_scale("y", data.y, dtype)
    return TrainingData(inputs.reshape(shape), targets, data.one_output)


def converted(name: str, values: np.ndarray, dtype: Any) -> np.ndarray:
    """float64 numbers in another precision, if they are in its range."""
    with np.errstate(over="ignore"):
        made = values.astype(dtype)
    if not np.isfinite(made).all():
        raise InputError(
            name,
            f"numbers in the range of the network's {np.dtype(dtype)}",
            f"{np.abs(values).max():.3g}",
            "Rescale the data, or train in float64",
        )
    return made


def _warn_of_scale(name: str, values: np.ndarray, dtype: Any) -> None:
    largest, spread = np.abs(values).max(axis=0), values.std(axis=0)
    lost = np.finfo(dtype).eps * largest > LOST * spread
    blurred = np.flatnonzero(lost & (spread > 0))
    remedy = f"Standardise it: ({name} - {name}.mean(0)) / {name}.std(0)."
    if blurred.size:
        column = int(blurred[0])
        warnings.warn(
            f"{name}: column {column} has numbers up to {largest[column]:.3g} that differ by about "
            f"{spread[column]:.3g}, and {np.dtype(dtype)} tells them apart only roughly. {remedy}",
            DataScaleWarning,
            stacklevel=4,
        )
    elif largest.max() > LARGE:
        warnings.warn(
            f"{name}: its numbers reach {largest.max():.3g}, and networks start with outputs of "
            "order 1 for inputs of order 1, so that learning rates and numbers of steps that are "
            f"usual will not do. {remedy}",
            DataScaleWarning,
            stacklevel=4,
        )
