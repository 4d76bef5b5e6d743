"""Training in time: against 50 digits, its two ends, and its limit of stability."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from exact_posterior import Exact
from hypothesis import given, settings
from hypothesis import strategies as st

import lnkernel as lnk
from lnkernel.gp.filters import gradient_descent, gradient_flow

LN = lnk.mlp(hidden=1, norm="first")
few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def data(k: int = 1, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(6, k))
    return rng.normal(size=(6, 2)), y[:, 0] if k == 1 else y, 2 * rng.normal(size=(3, 2))


def flow(t: float) -> Callable[[Any], Any]:
    return lambda v: (1 - mpmath.exp(-v * mpmath.mpf(t))) / v


def descent(steps: int, rate: float) -> Callable[[Any], Any]:
    return lambda v: (1 - (1 - mpmath.mpf(rate) * v) ** steps) / v


# ------------------------------------------------------------------ 50 digits


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_against_50_digits(kernel: str, noise: float) -> None:
    X, y, x = data(k=2)
    post, exact = lnk.posterior(LN, X, y, kernel, noise), Exact(LN, X, y, kernel, noise)
    runs = [(post.at(t), flow(t)) for t in (1e-9, 0.1, 3.0, 1e4)]
    runs += [(post.after(k, 0.1), descent(k, 0.1)) for k in (1, 7, 10_000)]
    for run, function in runs:
        np.testing.assert_allclose(run.mean(x), exact.mean(x, function), rtol=0, atol=1e-12)
        spread = exact.ensemble_covariance(x, function)
        np.testing.assert_allclose(run.ensemble_covariance(x), spread, rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.ensemble_variance(x), np.diagonal(spread), 0, 1e-12)


def test_short_times_keep_their_digits() -> None:
    """f_t = t Θ(x, X) y to first order: 1 - exp(-tλ) would lose half of the digits."""
    X, y, x = data()
    post = lnk.posterior(LN, X, y)
    first = lnk.ntk(LN)(x, X) @ y
    np.testing.assert_allclose(post.at(1e-20).mean(x) / 1e-20, first, rtol=1e-13)
    np.testing.assert_allclose(post.after(3, 1e-20).mean(x) / 3e-20, first, rtol=1e-13)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 8, 1001, 10**6 + 1, 2**60 + 1])
def test_filter_of_descent(steps: int) -> None:
    """On both sides of learning_rate · λ = 1, where the sign of the error flips at every step."""
    values = np.array([0.0, 1e-300, 1e-12, 0.3, 0.5, 1.0, 1.5, 2 - 1e-9])
    with mpmath.workdps(400):
        exact = [float(descent(steps, 1.0)(mpmath.mpf(v))) if v else float(steps) for v in values]
    np.testing.assert_allclose(gradient_descent(steps, 1.0)(values), exact, rtol=1e-15)


def test_filter_of_flow() -> None:
    values = np.array([0.0, 1e-300, 1e-12, 1.0, 1e3])
    with mpmath.workdps(400):
        exact = [float(flow(2.5)(mpmath.mpf(v))) if v else 2.5 for v in values]
    np.testing.assert_allclose(gradient_flow(2.5)(values), exact, rtol=1e-15)


# ------------------------------------------------------------------ laws


@settings(max_examples=10, deadline=None)  # each of them takes 0.2 s
@given(seeds, st.integers(1, 5))
def test_the_ends_of_time(seed: int, k: int) -> None:
    X, y, x = data(k, seed)
    post = lnk.posterior(LN, X, y)
    assert (post.at(0).mean(x) == 0).all() and (post.after(0, 0.01).mean(x) == 0).all()
    prior = lnk.nngp(LN).diagonal(x)
    np.testing.assert_allclose(post.at(0).ensemble_variance(x), prior, rtol=1e-15)
    np.testing.assert_array_equal(post.at(math.inf).mean(x), post.mean(x))
    np.testing.assert_allclose(
        post.at(math.inf).ensemble_variance(x), post.ensemble_variance(x), rtol=0, atol=1e-11
    )
    slowest = 2 / post.max_learning_rate / np.linalg.eigvalsh(lnk.ntk(LN)(X))[0]
    allowed = 1e-13 * slowest * np.abs(y).max()
    many = int(100 * slowest)
    rate = post.max_learning_rate / 2
    np.testing.assert_allclose(post.at(1e12).mean(x), post.mean(x), rtol=0, atol=allowed)
    np.testing.assert_allclose(post.after(many, rate).mean(x), post.mean(x), rtol=0, atol=allowed)


@few
@given(seeds, st.floats(0, 100))
def test_small_steps_are_the_flow(seed: int, t: float) -> None:
    """(1 - ηλ)^(t/η) differs from exp(-tλ) by ηλ/2 · tλ exp(-tλ) ≤ ηλ/(2e), to first order."""
    X, y, x = data(1, seed)
    post = lnk.posterior(LN, X, y)
    steps = 10**7
    if t / steps == 0:
        return
    steep = 2 / post.max_learning_rate
    scale = np.abs(lnk.ntk(LN)(x, X) @ np.linalg.inv(lnk.ntk(LN)(X))).sum() * np.abs(y).sum()
    np.testing.assert_allclose(
        post.after(steps, t / steps).mean(x),
        post.at(t).mean(x),
        rtol=0,
        atol=(t / steps * steep + 1e-13) * scale,
    )


@few
@given(seeds, st.floats(0, 50), st.floats(0, 50))
def test_the_error_at_the_data_never_grows(seed: int, t1: float, t2: float) -> None:
    X, y, _ = data(1, seed)
    post = lnk.posterior(LN, X, y)
    early, late = (np.linalg.norm(post.at(t).mean(X) - y) for t in sorted((t1, t2)))
    assert late <= early + 1e-12


# ------------------------------------------------------------------ the limit of stability


def test_limit() -> None:
    X, y, _ = data()
    post = lnk.posterior(LN, X, y)
    limit = 2 / np.linalg.eigvalsh(lnk.ntk(LN)(X))[-1]
    assert post.max_learning_rate == pytest.approx(limit, rel=1e-13, abs=0)
    below = post.after(10**9, limit * (1 - 1e-6))
    np.testing.assert_allclose(below.mean(X), y, atol=1e-9)
    with pytest.raises(lnk.errors.LearningRateError) as caught:
        post.after(3, limit * 1.0001)
    assert f"{limit:.6g}" in str(caught.value) and "1/2 Σ (f(x_i) - y_i)²" in str(caught.value)
    assert caught.value.limit == post.max_learning_rate


def test_limit_is_where_descent_really_diverges() -> None:
    """The recursion itself, in NumPy, a little below and a little above."""
    X, y, _ = data()
    gram, limit = lnk.ntk(LN)(X), lnk.posterior(LN, X, y).max_learning_rate
    sizes = []
    for rate in (0.999 * limit, 1.001 * limit):
        f = np.zeros(len(y))
        for _ in range(20_000):
            f = f - rate * gram @ (f - y)
        sizes.append(np.abs(f - y).max())
    assert sizes[0] < 1 and sizes[1] > 1e6


@pytest.mark.parametrize("t", [-1, math.nan, "long", None, [1.0, -1], [], True, 1j])
def test_bad_time(t: Any) -> None:
    X, y, _ = data()
    with pytest.raises(lnk.errors.InputError, match="t: expected a time"):
        lnk.posterior(LN, X, y).at(t)


@pytest.mark.parametrize("steps", [-1, 1.5, math.inf, "many", None, True])
def test_bad_steps(steps: Any) -> None:
    X, y, _ = data()
    with pytest.raises(lnk.errors.InputError, match="steps: expected an integer, at least 0"):
        lnk.posterior(LN, X, y).after(steps, 0.01)


@pytest.mark.parametrize("rate", [0, -0.1, math.nan, math.inf, "small", None])
def test_bad_learning_rate(rate: Any) -> None:
    X, y, _ = data()
    with pytest.raises(lnk.errors.InputError, match="learning_rate: expected a positive number"):
        lnk.posterior(LN, X, y).after(5, rate)


def test_shown() -> None:
    X, y, _ = data()
    post = lnk.posterior(LN, X, y)
    assert "at t = 2.0" in repr(post.at(2)) and "after 3 steps of 0.1" in repr(post.after(3, 0.1))


@pytest.mark.parametrize("name", ["variance", "std", "covariance"])
@pytest.mark.parametrize("time", [1.0, [1.0, 2.0]], ids=["stopped", "curve"])
def test_a_spread_that_does_not_depend_on_time(name: str, time: Any) -> None:
    post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
    with pytest.raises(AttributeError, match=rf"ensemble_.*post\.{name}\(x\)"):
        getattr(post.at(time), name)
    assert not hasattr(post.at(time), name) and not hasattr(post.at(time), "varience")
    assert len(copy.deepcopy(post.at(time)).ensemble_variance([[1.5]])) in (1, 2)
