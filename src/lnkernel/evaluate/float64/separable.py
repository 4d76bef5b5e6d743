r"""Hermite series at pairs of different lengths, as short sums of products of numbers of single inputs.

A series $\sum_n v_n(r_1)\,v_n(r_2)\,\rho^n$ has an even and an odd part, each a Chebyshev series in $y = 2\rho^2 - 1$,

    sum_j C_j(r1, r2) T_j(y),   C_j(r1, r2) = sum_n B_jn v_n(r1) v_n(r2),   all B_jn >= 0.

Each $C_j$ is a positive kernel of two lengths, smooth, and so of low rank: Cholesky's factors with pivots, at some
nodes, give $f_j$ with $C_j(r_1, r_2) = f_j(r_1)\cdot f_j(r_2)$, and these are polynomials in r. For tanh of vectors of
length up to 2 some 200 products replace 1,024 Hermite polynomials.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.alone import ALONE, multiply_alone
from lnkernel.evaluate.float64.elementary import chain_products
from lnkernel.evaluate.float64.hermite_tables import MOST, bases
from lnkernel.evaluate.float64.length_curves import NODES, Curves, curves_through

LARGEST = 600  # products; above, a loop over the Hermite polynomials is compiled sooner
# LLVM vectorises a loop over pairs as long as it reads fewer than some 250 numbers of an input. Of an activation with
# more than so many the first kernels C_j, which have the highest ranks, become matrix products.
IN_LOOP = 120
# What may be left out of a kernel C_j, of values up to 1, and of its share in the slope:
NEGLIGIBLE, NEGLIGIBLE_IN_SLOPE = 2.0**-51, 2.0**-48
ROUNDING = 2.0**-52  # of a kernel, relatively
AT_ONCE = ALONE // NODES**2  # Hermite polynomials, of which one thread makes the products

Orders = tuple[tuple[Any, ...], ...]  # for each Chebyshev polynomial the factors of its coefficient


class Factors(NamedTuple):
    """The factors of one input, for the even and the odd part of a series."""

    even: Orders
    odd: Orders


class Table(NamedTuple):
    """Numbers of an input as functions of its length: some that were given, and `Factors`."""

    curves: Curves
    given: int  # how many
    ranks: tuple[tuple[int, ...], tuple[int, ...]]

    def at(self, length: np.ndarray, unit: bool = False) -> tuple[list[np.ndarray], Factors]:
        """NaN for vectors that are too long. With `unit`, factors of unit vectors: the polynomials that they come
        from round, for all pairs of an input alike."""
        numbers = self.curves.at(length)
        if unit:
            numbers[self.given :] /= np.sqrt(np.square(numbers[self.given :]).sum(axis=0))
        rows = iter(numbers)
        given = [next(rows) for _ in range(self.given)]
        even, odd = (
            tuple(tuple(next(rows) for _ in range(rank)) for rank in ranks) for ranks in self.ranks
        )
        return given, Factors(even, odd)


def table_of(longest: float, given: list[np.ndarray], features: np.ndarray) -> Table:
    """From numbers (NODES,) and the features v_n (terms, NODES) at `lengths_of_nodes`, which `is_told` allows."""
    even, odd = (_factors(features, parity) for parity in (0, 1))
    ranks = tuple(f.shape[1] for f in even), tuple(f.shape[1] for f in odd)
    curves = curves_through(longest, np.column_stack([*given, *even, *odd]))
    return Table(curves, len(given), ranks)


def is_told(features: np.ndarray) -> bool:
    """Whether MOST Chebyshev polynomials tell the series of these features: some C_j is negligible."""
    return None not in (_count_orders(features, parity) for parity in (0, 1))


def _count_orders(features: np.ndarray, parity: int) -> int | None:
    """How many C_j there are before the first that is negligible at all nodes."""
    weights = bases(len(features), parity, MOST).value
    diagonals = multiply_alone(weights, np.square(features[parity::2])).max(axis=1)
    least = [_least(order, parity) for order in range(len(weights))]
    found = np.flatnonzero(diagonals <= least)
    return int(found[0]) if found.size else None


def _least(order: int, parity: int) -> float:
    """What may be left out of C_j."""
    return min(NEGLIGIBLE, NEGLIGIBLE_IN_SLOPE / max(1, 2 * order + parity) ** 2)


def _factors(features: np.ndarray, parity: int) -> list[np.ndarray]:
    """Those of C_0, C_1, ... at the nodes, (NODES, rank) each."""
    part, count = features[parity::2], _count_orders(features, parity)
    weights = bases(len(features), parity, MOST).value[:count]
    return [
        _pivoted_cholesky(_weighted_products(part, each), _least(order, parity))
        for order, each in enumerate(weights)
    ]


def _weighted_products(part: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum of weights_n part_n part_n^T, some at a time, by one thread."""
    total = np.zeros((part.shape[1], part.shape[1]))
    for start in range(0, len(part), AT_ONCE):
        some = part[start : start + AT_ONCE]
        total += (some.T * weights[start : start + AT_ONCE]) @ some
    return total


def _pivoted_cholesky(kernel: np.ndarray, least: float) -> np.ndarray:
    """F with F F^T = kernel, up to `least` on the diagonal; its entries are all as exact as those of the kernel."""
    rest = kernel.copy()
    columns: list[np.ndarray] = []
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
    if not np.size(c):  # single inputs, without pairs: see `per_input`
        return c, c
    (even, even_slope), (odd, odd_slope) = (
        _clenshaw(_products(first, second), y) for first, second in zip(one, two, strict=True)
    )
    return even + c * odd, odd + 4 * (c * (even_slope + c * odd_slope))


def _products(one: Orders, two: Orders) -> list[Any]:
    """The C_j of all pairs."""
    if not one:
        return []
    listed = np.ndim(one[0][0]) < 2  # pairs side by side, not rows and columns
    xp = namespace.of(one[0][0], two[0][0])
    excess = 0 if listed else sum(map(len, one)) - (IN_LOOP if xp is jnp else 0)
    found: list[Any] = []
    for first, second in zip(one, two, strict=True):
        if excess > 0:
            sides = xp.concatenate(first, axis=-1), xp.concatenate(second, axis=-2)
            multiply = multiply_alone if xp is np and sides[0].ndim == 2 else xp.matmul
            found.append(multiply(*sides))
            excess -= len(first)
        else:
            found.append(chain_products(list(zip(first, second, strict=True))))
    return found


def _clenshaw(coefficients: list[Any], y: Array) -> tuple[Any, Any]:
    """The Chebyshev series in y, and its derivative; each step waits for one fused multiplication and addition."""
    if not coefficients:
        return 0.0, 0.0
    twice = 2 * y
    value: Any = 0.0
    above, slope, slope_above = value, value, value
    for coefficient in coefficients[:0:-1]:
        slope, slope_above = twice * slope + (2 * value - slope_above), slope
        value, above = twice * value + (coefficient - above), value
    return y * value + (coefficients[0] - above), y * slope + (value - slope_above)
