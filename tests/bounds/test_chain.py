"""The chain |mean(x)| ≤ at(x) ≤ rkhs ≤ sharp ≤ paper ≤ norms, on random data sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lnkernel as lnk
from lnkernel.errors import SingularGramError, UnresolvedEigenvalueError

POINTS, DIMENSION = 6, 10
BLOCK = lnk.residual(lnk.LayerNorm(), lnk.Dense(8, b_std=0.3), lnk.Relu(), lnk.Dense(8))
ARCHITECTURES = {
    "first": lnk.mlp(hidden=2, norm="first"),
    "last": lnk.mlp(hidden=2, norm="last"),
    "last, degree 3/4": lnk.mlp(hidden=2, norm="last", activation=lnk.RectifiedPower(0.75)),
    "pre-LN": lnk.serial(lnk.Dense(8, b_std=0.1), BLOCK, lnk.LayerNorm(), lnk.Dense(1)),
}


@st.composite
def data_sets(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs in 1 to 10 dimensions, the others 0 (so that one program serves them all): Θ sees
    inner products only. With them targets, and inputs to predict at, of norms from 0 to 1e12."""
    d = draw(st.integers(1, DIMENSION))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X, x = np.zeros((POINTS, DIMENSION)), np.zeros((32, DIMENSION))
    X[:, :d] = rng.normal(size=(POINTS, d)) * 10 ** draw(st.floats(-2, 2))
    if draw(st.booleans()):  # two that are close
        X[1] = X[0] * (1 + 10 ** draw(st.floats(-4, -1)))
    y = rng.normal(size=POINTS) * 10 ** draw(st.floats(-3, 3))
    if draw(st.booleans()):  # targets that fight one another
        y = np.sign(y) * np.abs(y).max()
    x[1:, :d] = rng.normal(size=(31, d))
    x[1:8, :] = X[[0, 1, 2, 3, 4, 5, 0]] * [[1], [1], [1], [1], [1], [1], [-1]]
    x[8:, :] *= 10.0 ** rng.uniform(-6, 12, size=(24, 1))
    x[8:12, :] = X[:4] * 10.0 ** rng.uniform(-6, 12, size=(4, 1))
    return X, y, x


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    "name",
    [
        "first",
        "last",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("last, degree 3/4", "pre-LN")),
    ],
)
def test_the_chain(name: str, noise: float) -> None:
    arch = ARCHITECTURES[name]

    @settings(max_examples=60, deadline=None)
    @given(data_sets())
    def holds(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        X, y, x = data
        try:
            b = lnk.bound(arch, X, y, noise=noise)
        except (SingularGramError, UnresolvedEigenvalueError):
            assume(False)
        # The mean solves a matrix that differs from Θ by E, |E| ≤ n(2e-15 + n 2.2e-16) C, so that
        # it may be off by the factor |E|/λ_min, as may the quadratic form and the eigenvalue.
        slack = 1 + POINTS * 4e-15 * (b.C + noise) / b.lambda_min
        mean, at = np.abs(lnk.posterior(arch, X, y, noise=noise).mean(x)), b.at(x)
        assert (mean <= at * slack).all()
        assert at.max() <= b.rkhs * (1 + 1e-14)
        assert b.rkhs <= b.sharp * slack
        assert b.sharp <= b.paper * (1 + 1e-15)
        assert b.paper <= b.norms * (1 + 1e-14) or b.lambda_min > b.C
        assert b.is_theorem and math.isfinite(b.norms)

    holds()


@pytest.mark.parametrize("time", [1e-3, 0.1, 10.0, 1e4])
def test_during_all_of_training(time: float) -> None:
    """Gradient flow stopped at any time stays below the bound of its end."""
    rng = np.random.default_rng(1)
    X, x = rng.normal(size=(POINTS, DIMENSION)), 10 * rng.normal(size=(32, DIMENSION))
    y = rng.normal(size=POINTS)
    arch = ARCHITECTURES["first"]
    stopped = lnk.posterior(arch, X, y).at(time)
    assert (np.abs(stopped.mean(x)) <= lnk.bound(arch, X, y).at(x)).all()
