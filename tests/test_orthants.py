"""Orthant probabilities of two Gaussians, and their moments, against 25 digits."""

from __future__ import annotations

import kinked_oracle
import numpy as np
import pytest
from mpmath import mp, mpf

from lnkernel.evaluate.float64.orthants import Corner, moments, orthants

RNG = np.random.default_rng(5)
# angles from right ones down to the least, on both sides; corners near, far, equal, at 0
SMALL = np.concatenate([2.0 ** -RNG.uniform(1, 8, size=22), [2.0**-8, 0.5]])
W = np.where(np.arange(24) % 2, SMALL, 1 - SMALL)
H, L = RNG.choice([0.3, 1.0, 2.0, 4.0], size=(2, 24)) * RNG.normal(size=(2, 24))
L[:6], H[6:9] = H[:6], 0.0


def test_probabilities_and_moments() -> None:
    for sign in (1.0, -1.0):
        found = moments(W, 1 - W, [Corner(H, L, sign)])[0]
        with mp.workdps(25):
            for k in range(24):
                rho = sign * (1 - 2 * mpf(W[k]))
                exact = kinked_oracle.moments(mpf(H[k]), mpf(L[k]), rho)
                size = 1 + abs(H[k] * L[k])
                assert found.one[k] == pytest.approx(float(exact.one), rel=0, abs=6e-16)
                assert abs(found.ramps[k] - exact.ramps) < 6e-16 * size
                assert abs(found.product[k] - exact.product) < 6e-16 * size


def test_of_right_and_equal_corners() -> None:
    """P(x > 0, y > 0) is a quarter and arcsin(rho)/(2 pi); far out there is nothing, or all."""
    inside, none, all_of_them = orthants(
        W, 1 - W, [Corner(0.0, 0.0), Corner(40.0, 0.0), Corner(-40.0, -40.0)]
    )
    np.testing.assert_allclose(
        inside, 0.25 + np.arcsin(1 - 2 * W) / (2 * np.pi), rtol=0, atol=6e-16
    )
    np.testing.assert_allclose(none, 0.0, atol=1e-16)
    np.testing.assert_allclose(all_of_them, 1.0, atol=1e-16)
