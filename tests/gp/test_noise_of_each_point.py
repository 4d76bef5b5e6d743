"""A noise variance for each point, and training at several times in one call."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import DuplicateInputsError, InputError

ARCH = lnk.mlp(hidden=1, norm="first")
X = np.array([[-1.0], [0.5], [2.0], [0.5]])
Y = np.array([1.0, 0.0, 1.0, 3.0])
NOISE = np.array([0.1, 0.2, 0.0, 0.5])
NEW = np.array([[0.0], [1.0], [9.0]])


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_formulas(kernel: str) -> None:
    k = lnk.ntk(ARCH) if kernel == "ntk" else lnk.nngp(ARCH)
    post = lnk.posterior(ARCH, X, Y, kernel=kernel, noise=NOISE)
    A, row = k(X) + np.diag(NOISE), k(NEW, X)
    assert np.allclose(post.mean(NEW), row @ np.linalg.solve(A, Y), rtol=1e-12)
    variance = k.diagonal(NEW) - np.einsum("ij,ji->i", row, np.linalg.solve(A, row.T))
    assert np.allclose(post.variance(NEW), variance, atol=1e-13)
    evidence = -0.5 * (Y @ np.linalg.solve(A, Y) + np.linalg.slogdet(2 * math.pi * A)[1])
    assert post.log_marginal_likelihood() == pytest.approx(evidence, rel=1e-12, abs=0)
    assert "noise=0 to 0.5" in repr(post)


def test_equal_variances_are_one_variance() -> None:
    one, each = (lnk.posterior(ARCH, X, Y, noise=noise) for noise in (0.3, [0.3] * 4))
    assert np.array_equal(one.mean(NEW), each.mean(NEW))


def test_equal_inputs_need_noise_in_all_but_one() -> None:
    assert np.isfinite(lnk.posterior(ARCH, X, Y, noise=[0.0, 0.0, 0.0, 1.0]).mean(NEW)).all()
    with pytest.raises(DuplicateInputsError, match="1 = 3"):
        lnk.posterior(ARCH, X, Y, noise=[1.0, 0.0, 1.0, 0.0])


def test_under_a_transformation() -> None:
    def evidence(noise: Any) -> Any:
        return lnk.posterior(ARCH, X, Y, noise=noise).log_marginal_likelihood()

    with jax.enable_x64(True):
        slope = np.asarray(jax.grad(evidence)(jax.numpy.asarray(NOISE)))
    step = 1e-6 * np.array([1.0, 0.0, 0.0, 0.0])
    assert slope[0] == pytest.approx((evidence(NOISE + step) - evidence(NOISE - step)) / 2e-6)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ([0.1, 0.2], r"one for each of the 4 points, shape \(4,\), got shape \(2,\)"),
        ([[0.1], [0.1], [0.1], [0.1]], r"got shape \(4, 1\)"),
        ([0.1, -0.2, 0.1, 0.1], "got -0.2 for point 1"),
        ([0.1, math.nan, 0.1, 0.1], "got nan for point 1"),
        (["a", "b", "c", "d"], "expected real numbers"),
    ],
)
def test_refused(noise: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lnk.posterior(ARCH, X, Y, noise=noise)


def test_a_bound_holds_far_and_near() -> None:
    post = lnk.posterior(ARCH, X, Y, noise=NOISE)
    b = lnk.bound(post)
    assert np.array_equal(b.noise, NOISE) and "diag(noise)" in str(b)
    assert b.rkhs == lnk.bound(ARCH, X, Y, noise=NOISE).rkhs <= b.value
    x = np.random.default_rng(0).normal(size=(50, X.shape[1])) * np.geomspace(0.1, 1e6, 50)[:, None]
    assert (np.abs(post.mean(x)) <= b.at(x) * (1 + 1e-12)).all()
    equal = lnk.bound(ARCH, X, Y, noise=np.full(len(X), 0.1))
    assert equal.rkhs == pytest.approx(lnk.bound(ARCH, X, Y, noise=0.1).rkhs, rel=1e-14, abs=0)


@pytest.mark.parametrize("targets", [Y, np.stack([Y, -Y, 2 * Y], axis=1)])
def test_curve(targets: np.ndarray) -> None:
    post, times = lnk.posterior(ARCH, X, targets, noise=0.1), [0.0, 1.0, 7.5, math.inf]
    curve = post.at(times)
    assert curve.mean(NEW).shape == (4, 3, *targets.shape[1:])
    for name in ("mean", "ensemble_variance", "ensemble_covariance"):
        single = np.stack([getattr(post.at(t), name)(NEW) for t in times])
        assert np.allclose(getattr(curve, name)(NEW), single, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "times", [[], [[1.0]], [[1.0], [1.0, 2.0]], [1.0, -1.0], ["a"], [math.nan]]
)
def test_refused_times(times: Any) -> None:
    with pytest.raises(InputError, match="t: expected"):
        lnk.posterior(ARCH, X, Y, noise=0.1).at(times)
