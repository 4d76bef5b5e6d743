"""A mean over independent networks, or their outputs, with its standard error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

MATRICES = 5  # of the size of one sample, in memory at once


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean with its standard error, entry by entry, in float64.

    Attributes:
        mean: the mean of the samples.
        standard_error: their standard deviation over √samples.
        samples: how many there were.

    >>> import lnkernel as lnk
    >>> lnk.finite.empirical_ntk_over_seeds(lnk.mlp(hidden=1), [[1.0]], width=64, seeds=5)
    Estimate(shape=(1, 1), samples=5)
    """

    mean: Float64[np.ndarray, "*shape"]
    standard_error: Float64[np.ndarray, "*shape"]
    samples: int

    def __repr__(self) -> str:
        return f"Estimate(shape={self.mean.shape}, samples={self.samples})"


def estimate(samples: Iterable[ArrayLike]) -> Estimate:
    """The estimate from at least two arrays, one after the other: none is kept (Welford 1962)."""
    count, mean, squares = 0, np.zeros(()), np.zeros(())
    for sample in samples:
        count += 1
        value = np.asarray(sample, np.float64)
        change = value - mean
        mean = mean + change / count
        squares = squares + change * (value - mean)
    error = np.sqrt(squares / (count - 1) / count)
    return Estimate(np.asarray(mean), np.asarray(error), count)


def weighted_slope(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """The slope of the straight line through points with these errors in y, and its own error.

    >>> slope, error = weighted_slope(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> round(slope, 12), round(error, 12) == round(0.5**0.5, 12)
    (2.0, True)
    """
    (slope, _), covariance = np.polyfit(x, y, deg=1, w=1 / errors, cov="unscaled")
    return float(slope), float(np.sqrt(covariance[0, 0]))
