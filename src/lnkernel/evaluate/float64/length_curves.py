"""Numbers of single inputs as functions of their lengths: Chebyshev interpolants on [shortest, longest].

What takes hundreds of nodes of quadrature for every input then takes fewer than 64 products.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from lnkernel.evaluate.float64.alone import multiply_alone

HALF = 8.0  # the length at half of the range of `shares`
NODES = 64  # lengths at which a function has to be known
NEGLIGIBLE = 2.0**-56  # of a coefficient, relative to the largest


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
        # the highest degrees, which contribute least, come first: then only the last additions round much
        numbers, powers = self.coefficients[::-1].T.copy(), polynomials[:, ::-1].T.copy()
        rows = multiply_alone(numbers, powers)  # each function's values side by side in memory
        return rows.reshape(len(rows), *length.shape)


def shares(r: np.ndarray) -> np.ndarray:
    """Lengths on a scale from 0 to 1, on which functions of 1/r are as simple as those of r."""
    return r / (r + HALF)


def lengths_at(longest: float, places: np.ndarray) -> np.ndarray:
    """The lengths at these places of that scale, of which 1 is the longest."""
    found = places * shares(np.asarray(longest))
    return HALF * found / (1 - found)


def lengths_of_nodes(longest: float, shortest: float = 0.0) -> np.ndarray:
    """The lengths at which the functions are asked for, (NODES,)."""
    share = 0.5 * (1 + np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES))
    return shortest + (longest - shortest) * share


def curves_through(longest: float, values: np.ndarray, shortest: float = 0.0) -> Curves:
    """The functions with these values there, (NODES, functions)."""
    # in long numbers: rounding errors of all nodes would add up at the shortest length
    coefficients = np.asarray((2 / NODES) * (_waves() @ values.astype(np.longdouble)), np.float64)
    coefficients[0] /= 2
    needed = np.flatnonzero((np.abs(coefficients) > NEGLIGIBLE * np.abs(values).max()).any(axis=1))
    count = needed[-1] + 1 if needed.size else 1
    return Curves(longest, coefficients[:count], shortest)


@lru_cache(maxsize=1)
def _waves() -> np.ndarray:
    """The Chebyshev polynomials at the nodes, from angles below a full turn."""
    turns = np.outer(np.arange(NODES), 2 * np.arange(NODES) + 1) % (4 * NODES)
    waves: np.ndarray = np.cos(np.arccos(np.longdouble(-1)) / (2 * NODES) * turns)
    return waves
