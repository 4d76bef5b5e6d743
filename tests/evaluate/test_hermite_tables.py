"""Weights of Hermite features and coefficients of powers, against other ways to compute them."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from lnkernel.evaluate.float64.hermite_features import KNOWN, nodes_and_weights
from lnkernel.evaluate.float64.hermite_tables import MOST, bases


@pytest.mark.parametrize("n", [0, 1, 5, 1025, 1026, 2049, 2050])  # around the ends of the tables
def test_weights_are_those_of_hermite_polynomials(n: int) -> None:
    """h_n(x) times the density and the spacing, by mpmath's Hermite polynomials."""
    x, weights = nodes_and_weights(KNOWN[-1])
    with mpmath.workdps(60):
        for node in (0, 100, 259, 260, 300, 400):
            at = mpmath.mpf(float(x[node]))
            root = mpmath.sqrt(mpmath.mpf(2) ** n * mpmath.factorial(n))
            value = mpmath.hermite(n, at / mpmath.sqrt(2)) / root
            density = mpmath.exp(-at * at / 2) / mpmath.sqrt(2 * mpmath.pi)
            exact = float(value * density * mpmath.mpf("0.05"))
            assert weights[node, n] == pytest.approx(exact, rel=1e-12, abs=1e-19)


def test_fewer_weights_are_the_first_of_more() -> None:
    x, weights = nodes_and_weights(KNOWN[-1])
    for terms in (1, 2, 3, 700, KNOWN[1], KNOWN[1] + 1):
        nodes, some = nodes_and_weights(terms)
        np.testing.assert_array_equal(nodes, x)
        np.testing.assert_array_equal(some, weights[:, :terms])


@pytest.mark.parametrize("k", [0, 1, 2, 7, 60, 200])
def test_powers_as_chebyshev_series(k: int) -> None:
    """x^k with x = (1 + y)/2, multiplied out: y T_0 = T_1, y T_j = (T_(j-1) + T_(j+1))/2."""
    row = [Fraction(1)] + [Fraction(0)] * (k + 1)
    for _ in range(k):
        new = [part / 2 for part in row]
        for j, part in enumerate(row[:-1]):
            new[j + 1] += part / 4 if j else part / 2
            if j:
                new[j - 1] += part / 4
        row = new
    found = bases(1024, 0, MOST).value[:, k]
    exact = [float(part) for part in (row + [Fraction(0)] * (MOST + 1))[: MOST + 1]]
    np.testing.assert_allclose(found, exact, rtol=3e-16)
