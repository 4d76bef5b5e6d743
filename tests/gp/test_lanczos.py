"""Training in time by products: against matrix exponentials, all eigenvectors, and its own bound of the error."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy

import lnkernel as lnk
from lnkernel.gp import lanczos
from lnkernel.gp.filters import gradient_flow
from lnkernel.gp.lanczos import Lanczos, step_limit
from lnkernel.gp.spectrum import Eigen

N = 200
LN = lnk.mlp(hidden=1, norm="first")
BULK = np.concatenate([np.geomspace(0.2, 10.0, N - 5), [50.0, 60.0, 100.0, 500.0, 2000.0]])
SMOOTH = np.geomspace(1e-9, 1e3, N)


def orthogonal(n: int = N) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]


def flow(matrix: np.ndarray, b: np.ndarray, t: float, most: int = N) -> np.ndarray | None:
    least = float(np.linalg.eigvalsh(matrix)[0]) * (1 - 1e-6)
    made = Lanczos(lambda v: matrix @ v, b, most)
    return made.flow(gradient_flow(t), 0.0, lambda: max(0.0, least))


def by_exponential(matrix: np.ndarray, b: np.ndarray, t: float) -> np.ndarray:
    """The upper right corner of exp of [[-tA, tb], [0, 0]]: nothing of eigenvalues."""
    n, k = b.shape
    whole = np.zeros((n + k, n + k))
    whole[:n, :n], whole[:n, n:] = -t * matrix, t * b
    return np.asarray(scipy.linalg.expm(whole)[:n, n:])


def gap(found: np.ndarray | None, wanted: np.ndarray) -> float:
    assert found is not None
    return float((np.linalg.norm(found - wanted, axis=0) / np.linalg.norm(wanted, axis=0)).max())


@pytest.mark.parametrize("t", [1e-30, 1e-9, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("values", [BULK, SMOOTH], ids=["bulk", "smooth"])
def test_against_the_exponential(values: np.ndarray, t: float) -> None:
    turned = orthogonal()
    matrix = (turned * values) @ turned.T
    b = np.random.default_rng(1).normal(size=(N, 2))
    # the exponential's own error is about tλ roundings; a random b keeps small eigenvalues in sight
    assert gap(flow(matrix, b, t), by_exponential(matrix, b, t)) < 1e-13 * max(1.0, t * values[-1])


@pytest.mark.parametrize("t", [1e-30, 1e-3, 1.0, 30.0, 1e3, 1e9, 1e300])
@pytest.mark.parametrize("columns", [1, 3])
def test_against_all_eigenvectors(t: float, columns: int) -> None:
    turned = orthogonal()
    matrix = (turned * BULK) @ turned.T
    b = np.random.default_rng(1).normal(size=(N, columns))
    exact = Eigen(BULK, turned).apply(gradient_flow(t), b)  # the eigenvectors that it was made of
    assert gap(flow(matrix, b, t), exact) < 1e-12


def test_against_50_digits() -> None:
    rng = np.random.default_rng(2)
    root, b = rng.normal(size=(12, 12)), rng.normal(size=(12, 1))
    matrix = root @ root.T
    with mpmath.workdps(50):
        values, vectors = mpmath.eigsy(mpmath.matrix(matrix.tolist()))
        for t in (1e-6, 0.3, 40.0, 1e7):
            weights = mpmath.diag([(1 - mpmath.exp(-v * mpmath.mpf(t))) / v for v in values])
            exact = vectors * weights * vectors.T * mpmath.matrix(b.tolist())
            found = flow(matrix, b, t, most=12)
            condition = float(values[11] / values[0])
            assert gap(found, np.array(exact.tolist(), dtype=float)) < 1e-15 * condition


@pytest.mark.parametrize("goal", [1e-1, 1e-4, 1e-8])
def test_the_bound_of_the_error_holds(goal: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A looser goal stops earlier, and is kept; with either floor."""
    monkeypatch.setattr(lanczos, "GOAL", goal)
    monkeypatch.setattr(lanczos, "FIRST", 2)
    monkeypatch.setattr(lanczos, "GROWTH", 1.5)
    turned = orthogonal()
    for values in (BULK, SMOOTH):
        matrix = (turned * values) @ turned.T
        b = np.random.default_rng(3).normal(size=(N, 1))
        for t in (1e-2, 1.0, 100.0):
            exact = Eigen(values, turned).apply(gradient_flow(t), b)
            for floor in (0.0, values[0] * (1 - 1e-6)):
                made = Lanczos(lambda v, a=matrix: a @ v, b, N)
                found = made.flow(gradient_flow(t), floor, lambda known=floor: known)
                assert found is not None and made._steps < N
                # |c| is the length of what is found, a little less than that of the exact vector
                assert gap(found, exact) < goal * (1 + goal) + 1e-11


def test_it_stops_early_and_goes_on_for_later_times() -> None:
    turned = orthogonal()
    matrix = (turned * BULK) @ turned.T
    made = Lanczos(lambda v: matrix @ v, np.ones((N, 1)), N)
    steps = []
    for t in (1e-3, 1.0, 0.01):
        assert made.flow(gradient_flow(t), 0.0, lambda: 0.1) is not None
        steps.append(made._steps)
    assert steps[0] < steps[1] < N / 2 and steps[2] == steps[1]


def test_too_many_steps_are_told() -> None:
    turned = orthogonal()
    matrix = (turned * SMOOTH) @ turned.T
    b = np.random.default_rng(1).normal(size=(N, 1))
    assert flow(matrix, b, 1e6, most=30) is None


def test_columns_that_reach_few_directions() -> None:
    """0, an eigenvector, and the sum of three: their bases end early, beside one that goes on."""
    turned = orthogonal()
    matrix = (turned * BULK) @ turned.T
    b = np.zeros((N, 4))
    b[:, 1], b[:, 2] = turned[:, 7], turned[:, [3, 100, N - 1]].sum(axis=1)
    b[:, 3] = np.random.default_rng(1).normal(size=N)
    for t in (0.0, 1e-3, 5.0):
        found, exact = flow(matrix, b, t), Eigen(BULK, turned).apply(gradient_flow(t), b)
        assert found is not None and (found[:, 0] == 0).all()
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * t * np.linalg.norm(b))


def test_who_takes_it() -> None:
    assert step_limit(999, 1) == 0 and step_limit(5000, 1) == 500
    assert step_limit(5000, 4) == 250 and step_limit(5000, 101) == 0


# ------------------------------------------------------------------ posteriors


@pytest.fixture
def _of_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanczos, "FEWEST", 100)
    monkeypatch.setattr(lanczos, "SHARE", 1)


def pair(y_columns: int, noise: Any, d: int = 5) -> tuple[Any, Any, np.ndarray]:
    """The same posterior twice, and points."""
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(200, d)), rng.normal(size=(9, d))
    y = rng.normal(size=(200, y_columns)) if y_columns > 1 else X[:, 0]
    return lnk.posterior(LN, X, y, noise=noise), lnk.posterior(LN, X, y, noise=noise), x


@pytest.mark.usefixtures("_of_few_points")
@pytest.mark.parametrize(
    "noise", [0.0, 0.1, np.linspace(0.01, 1, 200)], ids=["none", "one", "many"]
)
@pytest.mark.parametrize("columns", [1, 3])
def test_posteriors(columns: int, noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    post, other, x = pair(columns, noise)
    times = [0.0, 1e-20, 0.1, 10.0, 1e5, math.inf]
    found = post.at(times).mean(x)
    singles = [post.at(t).mean(x) for t in times]
    assert "eigen" not in post._fit.__dict__
    monkeypatch.setattr(lanczos, "FEWEST", 10**9)
    wanted = other.at(times).mean(x)
    assert "eigen" in other._fit.__dict__
    size = np.abs(wanted).max(axis=1, keepdims=True)
    np.testing.assert_allclose(
        found / np.where(size > 0, size, 1), wanted / np.where(size > 0, size, 1), 0, 1e-12
    )
    np.testing.assert_allclose(singles, found, rtol=0, atol=1e-12)  # by bases of fewer steps
    np.testing.assert_array_equal(singles[-1], post.mean(x))


@pytest.mark.usefixtures("_of_few_points")
def test_spread_and_steps_take_the_eigenvectors() -> None:
    post, _, x = pair(1, 0.0)
    post.at(1.0).mean(x)
    assert "eigen" not in post._fit.__dict__
    spread = post.at(1.0).ensemble_variance(x)
    assert "eigen" in post._fit.__dict__ and (spread > 0).all()


@pytest.mark.usefixtures("_of_few_points")
def test_where_products_do_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points on a line, at a late time: all eigenvectors are taken, and nothing is said of it."""
    monkeypatch.setattr(lanczos, "SHARE", 10)
    X = np.linspace(-1, 1, 150)[:, None]
    y = np.random.default_rng(0).normal(size=150)
    post = lnk.posterior(LN, X, y)
    found = post.at(1e4).mean([[0.3]])
    assert "eigen" in post._fit.__dict__
    monkeypatch.setattr(lanczos, "FEWEST", 10**9)
    np.testing.assert_array_equal(found, lnk.posterior(LN, X, y).at(1e4).mean([[0.3]]))


@pytest.mark.usefixtures("_of_few_points")
def test_after_a_factor_in_single_precision() -> None:
    """The matrix is read where that factor guides, and where the one of float64 was written over it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    post = lnk.posterior(LN, X, X[:, 0])
    early = post.at(0.3).mean(X[:3])
    assert post.variance(X[:1]).shape == (1,)
    np.testing.assert_allclose(post.at(0.3).mean(X[:3]), early, rtol=1e-13)
    again = lnk.posterior(LN, X, X[:, 0])
    again.variance(X[:1])
    np.testing.assert_allclose(again.at(0.3).mean(X[:3]), early, rtol=1e-12)
