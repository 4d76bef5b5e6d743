"""The ways in which the oracle computes Gaussian expectations, against each other: they share no formula."""

from __future__ import annotations

from typing import Any

import closed_oracle
import conditional_oracle
import kinked_oracle
import long_oracle
import mpmath
import pytest
import smooth_oracle
from mpmath import mp, mpf

import lnkernel as lnk

# variances and the correlation
PAIRS = [
    (mpf(1), mpf(2), mpf(0.3)),
    (mpf(2), mpf(0.5), mpf(-0.8)),
    (mpf(1), mpf(1), mpf(1)),
    (mpf(3), mpf(0.25), mpf(-1)),
]
NEAR = mpf(10) ** -20


def slow(act: lnk.Elementwise) -> Any:
    return pytest.param(act, marks=pytest.mark.slow)


def distance(one: smooth_oracle.Expectations, two: smooth_oracle.Expectations) -> mpf:
    return max(abs(a - b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    "act",
    [slow(lnk.Erf()), slow(lnk.Gelu()), lnk.Sin(1.3, -0.4), slow(lnk.Cos(0.7)), lnk.Gaussian()],
    ids=repr,
)
def test_closed_forms_are_the_quadrature(act: lnk.Smooth) -> None:
    with mp.workdps(60):
        for q1, q2, rho in PAIRS:
            closed = closed_oracle.expectations(act, q1, q2, rho * mpmath.sqrt(q1 * q2))
            assert distance(closed, smooth_oracle.expectations(act, q1, q2, rho)) < 1e-36


@pytest.mark.parametrize("act", [slow(lnk.Elu(0.7)), slow(lnk.Selu())], ids=repr)
def test_conditional_expectations_are_the_closed_forms(act: lnk.Piecewise) -> None:
    with mp.workdps(60):
        for q1, q2, rho in [*PAIRS, (mpf(1), mpf(1), 1 - NEAR)]:
            one, two = (
                m.expectations(act, q1, q2, rho) for m in (conditional_oracle, kinked_oracle)
            )
            assert distance(one, two) < 1e-38


@pytest.mark.parametrize(
    "act",
    [
        lnk.Tanh(),
        *map(slow, (lnk.Sigmoid(), lnk.Silu(1.5), lnk.Softplus(0.5), lnk.Gelu(approximate=True))),
    ],
    ids=repr,
)
def test_long_doubles_are_the_balls(act: lnk.Smooth) -> None:
    """At lengths that both can do; and finer nodes change nothing at others."""
    with mp.workdps(60):
        for q1, q2, rho in [*PAIRS, (mpf(1), mpf(1), 1 - NEAR)]:
            one, two = (m.expectations(act, q1, q2, rho) for m in (long_oracle, smooth_oracle))
            assert distance(one, two) < 1e-17
        for rho in (mpf(-0.7), 1 - NEAR):
            long = mpf(100), mpf(64), rho
            one, two = (long_oracle.expectations(act, *long, fineness) for fineness in (1.0, 1.3))
            assert distance(one, two) < 1e-17 * 100
