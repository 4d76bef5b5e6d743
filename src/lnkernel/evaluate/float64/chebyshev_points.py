"""Chebyshev series on (0, end) through values at Chebyshev points, along the last axis; and their means."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import chebval

from lnkernel.evaluate.float64.alone import multiply_alone


def points(count: int, end: float) -> np.ndarray:
    """The Chebyshev points of (0, end)."""
    return 0.5 * end * (1 + np.cos((np.arange(count) + 0.5) * np.pi / count))


def series_through(values: np.ndarray) -> np.ndarray:
    """The coefficients of the series with these values at the points."""
    waves = _waves(values.shape[-1])
    coefficients = np.asarray(values.astype(np.longdouble) @ waves, np.float64)
    coefficients[..., 0] /= 2
    return coefficients


def rounded_series(values: np.ndarray) -> np.ndarray:
    """The same of very many values, of which long numbers would take long: errors are roundings of the largest."""
    count = values.shape[-1]
    waves = np.asarray(_waves(count), np.float64)
    coefficients = multiply_alone(values.reshape(-1, count), waves).reshape(values.shape)
    coefficients[..., 0] /= 2
    return coefficients


@lru_cache(maxsize=32)
def _waves(count: int) -> np.ndarray:
    """Takes the values to the coefficients; from angles below a full turn."""
    turns = np.outer(2 * np.arange(count) + 1, np.arange(count)) % (4 * count)
    waves = np.cos(np.arccos(np.longdouble(-1)) / (2 * count) * turns)
    return np.asarray(waves * (2 / np.longdouble(count)))


def means_below(values: np.ndarray, root: np.ndarray, end: float) -> np.ndarray:
    """1/m ∫ S dm from 0 to m, where m = root², of the functions S with these values at the points, (functions, count),
    which are polynomials in the root."""
    x, weights = _gauss(values.shape[-1] // 2 + 1)
    inside = root[:, None] * (x + 0.5)
    series = chebval(inside * (2 / end) - 1, series_through(values).T)
    means: np.ndarray = (series * (2 * (x + 0.5) * weights)).sum(axis=-1)
    return means


@lru_cache(maxsize=32)
def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre's nodes, less a half, and weights for (0, 1)."""
    x, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * x, 0.5 * weights
