r"""Hermite series at pairs of different lengths, as short sums of products of numbers of single inputs.

A series $\sum_n v_n(r_1)\,v_n(r_2)\,\rho^n$ has an even and an odd part, and each is a Chebyshev series in $y = 2\rho^2 - 1$,

    sum_j C_j(r1, r2) T_j(y),   C_j(r1, r2) = sum_n B_jn v_n(r1) v_n(r2),   all B_jn >= 0.

Each $C_j$ is a positive kernel of two lengths, smooth, and so of low rank: its eigenvectors at some nodes give factors $f_j$
with $C_j(r_1, r_2) = f_j(r_1)\cdot f_j(r_2)$, and these are polynomials in r. For tanh of vectors of length up to 1.7 some 200
products replace 1,024 Hermite polynomials.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import chebvander

from lnkernel.evaluate.float64.hermite_tables import MOST, bases

NODES = 64  # lengths at which the factors are known
LARGEST = 600  # products; above, a loop over the Hermite polynomials is compiled sooner
# What may be left out of a kernel C_j, of values up to 1, and of its share in the slope:
NEGLIGIBLE, NEGLIGIBLE_IN_SLOPE = 2.0**-53, 2.0**-46
ROUNDING = 2.0**-52

Orders = tuple[tuple[Any, ...], ...]  # for each Chebyshev polynomial the factors of its coefficient


class Factors(NamedTuple):
    """Of one input; the even and the odd part of a series."""

    even: Orders
    odd: Orders


class Table(NamedTuple):
    """Numbers of an input as functions of its length in [0, longest]: some that were given, and `Factors`."""

    longest: float
    coefficients: np.ndarray  # of Chebyshev polynomials, (NODES, numbers)
    given: int  # how many
    ranks: tuple[tuple[int, ...], tuple[int, ...]]

    def at(self, length: np.ndarray) -> tuple[list[np.ndarray], Factors]:
        """NaN for longer vectors."""
        place = np.where(length <= self.longest, 2 * (length / self.longest) - 1, np.nan)
        rows = (chebvander(place.ravel(), NODES - 1) @ self.coefficients).T
        numbers = iter(rows.reshape(len(rows), *length.shape))
        given = [next(numbers) for _ in range(self.given)]
        even, odd = (
            tuple(tuple(next(numbers) for _ in range(rank)) for rank in ranks)
            for ranks in self.ranks
        )
        return given, Factors(even, odd)


def lengths_of_nodes(longest: float) -> np.ndarray:
    """The lengths at which a table wants to know its functions."""
    return 0.5 * longest * (1 + np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES))


def table_of(longest: float, given: list[np.ndarray], features: np.ndarray) -> Table | None:
    """From numbers (NODES,) and the features v_n (terms, NODES) at these lengths; None where it would be too large."""
    parts = [_factors(features, parity) for parity in (0, 1)]
    if parts[0] is None or parts[1] is None:
        return None
    ranks = tuple(tuple(f.shape[1] for f in part) for part in parts)
    if sum(map(sum, ranks)) > LARGEST:
        return None
    columns = np.column_stack([*given, *parts[0], *parts[1]])
    # in long numbers, and angles below a full turn: rounding errors of all nodes would add up at the shortest length
    turns = np.outer(np.arange(NODES), 2 * np.arange(NODES) + 1) % (4 * NODES)
    waves = np.cos(np.arccos(np.longdouble(-1)) / (2 * NODES) * turns)
    coefficients = np.asarray((2 / NODES) * (waves @ columns.astype(np.longdouble)), np.float64)
    coefficients[0] /= 2
    return Table(longest, coefficients, len(given), (ranks[0], ranks[1]))


def _factors(features: np.ndarray, parity: int) -> list[np.ndarray] | None:
    """Those of C_0, C_1, ... at the nodes, (NODES, rank) each; None where MOST are too few."""
    part = features[parity::2]
    found: list[np.ndarray] = []
    for order, weights in enumerate(bases(len(features), parity, MOST).value):
        least = min(NEGLIGIBLE, NEGLIGIBLE_IN_SLOPE / max(1, 2 * order + parity) ** 2)
        factor = _pivoted_cholesky((part.T * weights) @ part, least)
        if not factor.shape[1]:
            return found
        found.append(factor)
    return None


def _pivoted_cholesky(kernel: np.ndarray, least: float) -> np.ndarray:
    """F with F F^T = kernel, up to `least` on the diagonal; its entries are all as exact as those of the kernel."""
    rest, columns = kernel.copy(), []
    while len(columns) < NODES:
        diagonal = np.diagonal(rest)
        pivot = int(np.argmax(diagonal))
        if diagonal[pivot] <= max(least, ROUNDING * kernel[pivot, pivot]):
            break
        column = rest[pivot] / np.sqrt(diagonal[pivot])
        columns.append(column)
        rest = rest - np.outer(column, column)
    return np.array(columns).reshape(-1, NODES).T


def sum_products(one: Factors, two: Factors, c: Array, y: Array) -> tuple[Any, Any]:
    """The series at the cosine c, with y = 2c² - 1, and its derivative in c."""
    (even, even_slope), (odd, odd_slope) = (
        _clenshaw(first, second, y) for first, second in zip(one, two, strict=True)
    )
    return even + c * odd, odd + 4 * (c * (even_slope + c * odd_slope))


def _clenshaw(one: Orders, two: Orders, y: Array) -> tuple[Any, Any]:
    """The Chebyshev series in y, and its derivative."""
    if not one:
        return 0.0, 0.0
    twice = 2 * y
    value, above, slope, slope_above = 0.0, 0.0, 0.0, 0.0
    for first, second in zip(one[:0:-1], two[:0:-1], strict=True):
        slope, slope_above = 2 * value + (twice * slope - slope_above), slope
        value, above = _product(first, second) + (twice * value - above), value
    return (
        _product(one[0], two[0]) + (y * value - above),
        value + (y * slope - slope_above),
    )


def _product(one: tuple[Any, ...], two: tuple[Any, ...]) -> Any:
    total = one[0] * two[0]
    for first, second in zip(one[1:], two[1:], strict=True):
        total = total + first * second
    return total
