"""Targets whose squares, or whose coefficients, are beyond the range of float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnkernel.errors import InputError

LARGE = 300  # binary digits from which on numbers are divided before they are squared


class Scaled(NamedTuple):
    """Numbers times 2^-power."""

    numbers: np.ndarray
    power: int


def scale_down(numbers: np.ndarray) -> Scaled:
    """Numbers up to 1 where some are so large that a square may overflow; others stay as they are.

    A power of two loses no digits but of what is below 1e-308 beside the largest.

    >>> scale_down(np.array([2.0**1000, 2.0**999])), scale_down(np.array([3.0])).power
    (Scaled(numbers=array([0.5 , 0.25]), power=1001), 0)
    """
    power = int(np.frexp(np.abs(numbers).max(initial=0.0))[1])
    if power <= LARGE:
        return Scaled(numbers, 0)
    return Scaled(np.ldexp(numbers, -power), power)


def scale_up(numbers: np.ndarray | float, power: int) -> np.ndarray:
    """The numbers times 2^power; infinite where that is beyond float64."""
    if not power:
        return np.asarray(numbers)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(numbers, power))


def longest(columns: np.ndarray) -> float:
    """The largest Euclidean norm of a column, without squares that overflow."""
    numbers, power = scale_down(columns)
    return float(scale_up(np.linalg.norm(numbers, axis=0).max(), power))


def demand_finite(predictions: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The predictions, or an error where they are beyond float64 because the targets y are nearly."""
    if scale_down(y).power and not np.isfinite(predictions).all():
        raise targets_too_large(y, "the predictions")
    return predictions


def targets_too_large(y: np.ndarray, what: str) -> InputError:
    """The error for targets of which something is beyond the range of float64."""
    return InputError(
        "y",
        f"targets of which float64 holds {what}",
        f"targets up to {np.abs(y).max():.3g}, of which that overflows",
        "Divide the targets by their largest absolute value, and multiply what comes out by it; "
        "a variance of their noise is divided by its square",
    )
