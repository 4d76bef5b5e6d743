"""Numbers of single inputs as functions of their lengths: Chebyshev interpolants on [shortest, longest].

What takes hundreds of nodes of quadrature for every input then takes fewer than 64 products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.chebyshev_points import points, series_through

NODES = 64  # lengths at which a function has to be known
LAST = 3  # coefficients, which tell what is left out
NEGLIGIBLE = 2.0**-56  # of a coefficient, relative to the largest


class Curves(NamedTuple):
    """Some functions of the length."""

    longest: float
    coefficients: np.ndarray  # of Chebyshev polynomials, (degrees, functions)
    shortest: float = 0.0
    left: float = 0.0  # size of the last coefficients, beside the largest

    def at(self, length: np.ndarray) -> np.ndarray:
        """Their values, (functions, ...); NaN for longer vectors."""
        width = self.longest - self.shortest
        inside = 2 * ((length - self.shortest) / width) - 1
        place = np.where(length <= self.longest, inside, np.nan)
        polynomials = chebvander(place.ravel(), len(self.coefficients) - 1)
        # the highest degrees, which contribute least, come first: then only the last additions round much
        numbers, powers = self.coefficients[::-1].T.copy(), polynomials[:, ::-1].T.copy()
        rows = multiply_alone(numbers, powers)  # each function's values side by side in memory
        return rows.reshape(len(rows), *length.shape)


def lengths_of_nodes(longest: float, shortest: float = 0.0, count: int = NODES) -> np.ndarray:
    """The lengths at which the functions are asked for, (count,)."""
    return shortest + points(count, longest - shortest)


def curves_through(longest: float, values: np.ndarray, shortest: float = 0.0) -> Curves:
    """The functions with these values there, (count, functions)."""
    # in long numbers: rounding errors of all nodes would add up at the shortest length
    coefficients = series_through(values.T).T
    size = np.abs(coefficients)
    left = float(size[-LAST:].max() / size.max())
    needed = np.flatnonzero((size > NEGLIGIBLE * np.abs(values).max()).any(axis=1))
    count = needed[-1] + 1 if needed.size else 1
    return Curves(longest, coefficients[:count], shortest, left)
