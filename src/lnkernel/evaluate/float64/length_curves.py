"""Numbers of single inputs as functions of their lengths: Chebyshev interpolants on [shortest, longest].

What takes hundreds of nodes of quadrature for every input then takes fewer than 64 products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander

NODES = 64  # lengths at which a function has to be known
NEGLIGIBLE = 2.0**-56  # of a coefficient, relative to the largest
ALONE = 1 << 18  # multiplications, up to which OpenBLAS takes one thread


class Curves(NamedTuple):
    """Some functions of the length."""

    longest: float
    coefficients: np.ndarray  # of Chebyshev polynomials, (degrees, functions)
    shortest: float = 0.0

    def at(self, length: np.ndarray) -> np.ndarray:
        """Their values, (functions, ...); NaN for longer vectors."""
        width = self.longest - self.shortest
        inside = 2 * ((length - self.shortest) / width) - 1
        place = np.where(length <= self.longest, inside, np.nan)
        polynomials = chebvander(place.ravel(), len(self.coefficients) - 1)
        rows = _multiply_alone(polynomials, self.coefficients)
        return rows.reshape(len(rows), *length.shape)


def _multiply_alone(polynomials: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The product's transpose, by this thread alone. OpenBLAS takes threads for a large product, and they go on waiting
    for the next one on the cores where pairs are computed; so it is handed small pieces."""
    degrees, functions = coefficients.shape
    made = np.empty((functions, len(polynomials)))  # each function's values side by side in memory
    step = max(1, ALONE // (degrees * functions))
    # the highest degrees, which contribute least, come first: then only the last additions round much
    numbers, powers = coefficients[::-1].copy(), polynomials[:, ::-1].copy()
    for start in range(0, len(polynomials), step):
        some = slice(start, start + step)
        np.matmul(numbers.T, powers[some].T, out=made[:, some])
    return made


def lengths_of_nodes(longest: float, shortest: float = 0.0) -> np.ndarray:
    """The lengths at which the functions are asked for, (NODES,)."""
    share = 0.5 * (1 + np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES))
    return shortest + (longest - shortest) * share


def curves_through(longest: float, values: np.ndarray, shortest: float = 0.0) -> Curves:
    """The functions with these values there, (NODES, functions)."""
    # in long numbers, and angles below a full turn: rounding errors of all nodes would add up at the shortest length
    turns = np.outer(np.arange(NODES), 2 * np.arange(NODES) + 1) % (4 * NODES)
    waves = np.cos(np.arccos(np.longdouble(-1)) / (2 * NODES) * turns)
    coefficients = np.asarray((2 / NODES) * (waves @ values.astype(np.longdouble)), np.float64)
    coefficients[0] /= 2
    needed = np.flatnonzero((np.abs(coefficients) > NEGLIGIBLE * np.abs(values).max()).any(axis=1))
    count = needed[-1] + 1 if needed.size else 1
    return Curves(longest, coefficients[:count], shortest)
