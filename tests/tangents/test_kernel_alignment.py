"""Measures of a kernel against a task: by per-example gradients, scikit-learn, and curves by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import lnkernel as lnk
from lnkernel.tangents import alignment
from lnkernel.tangents.correlation import correlation, distance_bins

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def in_float64():  # type: ignore[no-untyped-def]
    with jax.enable_x64(True):
        yield


def test_gradient_variance_is_the_trace_of_a_covariance() -> None:
    J, r = RNG.normal(size=(7, 5)), RNG.normal(size=7)
    each = r[:, None] * J  # the gradient of r_i²/2, up to its sign
    trace = np.trace(np.cov(each.T, bias=True))
    made = alignment.gradient_variance(jnp.asarray(J @ J.T), jnp.asarray(r))
    np.testing.assert_allclose(made, trace, rtol=1e-12)
    J, r = RNG.normal(size=(4, 3, 5)), RNG.normal(size=(4, 3))  # three outputs
    trace = np.trace(np.cov(np.einsum("ia,iap->ip", r, J).T, bias=True))
    K = np.einsum("iap,jbp->iajb", J, J).reshape(12, 12)
    made = alignment.gradient_variance(jnp.asarray(K), jnp.asarray(r))
    np.testing.assert_allclose(made, trace, rtol=1e-12)


def test_cka_of_centred_matrices() -> None:
    """Against the centring matrix written out; a kernel that differs by an additive constant, a
    factor or a rotation of its features is the same."""
    A, B = RNG.normal(size=(2, 9, 4))
    K, L = A @ A.T, B @ B.T
    c = np.eye(9) - 1 / 9
    expected = np.sum((c @ K @ c) * (c @ L @ c))
    expected /= np.linalg.norm(c @ K @ c) * np.linalg.norm(c @ L @ c)
    np.testing.assert_allclose(alignment.cka(jnp.asarray(K), jnp.asarray(L)), expected, rtol=1e-12)
    same = alignment.cka(jnp.asarray(K), jnp.asarray(5 * K + 3))
    np.testing.assert_allclose(same, 1.0, rtol=1e-12)
    uncentred = np.sum(K * L) / np.linalg.norm(K) / np.linalg.norm(L)
    assert abs(uncentred - expected) > 0.05


def test_gaussian_target_kernel() -> None:
    """exp(−50 |ΔI|²) is the bandwidth 0.1."""
    values = RNG.normal(size=(5, 1))
    made = alignment.gaussian(jnp.asarray(values), 0.1)
    np.testing.assert_allclose(made, np.exp(-50 * (values - values.T) ** 2), rtol=1e-10)


def test_roc_auc_against_scikit_learn() -> None:
    """With equal scores too; a monotone map of the scores changes nothing."""
    scores = np.round(RNG.normal(size=200), 1)
    labels = scores + RNG.normal(size=200) > 0.4
    expected = roc_auc_score(labels, scores)
    made = jax.jit(alignment.roc_auc)(jnp.asarray(scores), jnp.asarray(labels))
    np.testing.assert_allclose(made, expected, rtol=1e-12)
    for monotone in (np.exp, lambda s: s**3, lambda s: 5 * s - 2):
        again = alignment.roc_auc(jnp.asarray(monotone(scores)), jnp.asarray(labels))
        np.testing.assert_allclose(again, expected, rtol=1e-12)
    down = alignment.roc_auc(jnp.asarray(-scores), jnp.asarray(labels))
    np.testing.assert_allclose(down, 1 - expected, rtol=1e-12)


@pytest.mark.parametrize(("floor", "length"), [(0.0, 0.1), (0.3, 0.2), (-0.05, 0.15)])
def test_correlation_of_gaussian_cosines(floor: float, length: float) -> None:
    """On a grid in the plane, with the floor and the length that the cosines were made with; the bins
    are 0.057 wide, and the interpolation is linear."""
    line = np.linspace(-1, 1, 32)
    x = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    C = floor + (1 - floor) * alignment.gaussian(jnp.asarray(x), length)
    found = jax.jit(correlation)(C, distance_bins(x))
    np.testing.assert_allclose(found.floor, floor, atol=1e-4)
    np.testing.assert_allclose(found.length, length, rtol=0.02)


def test_bins_of_all_pairs() -> None:
    x = RNG.normal(size=(12, 2))
    bins = distance_bins(x, bins=8, far=2)
    assert bins.pairs.sum() == 12 * 11
    np.testing.assert_allclose(bins.far.sum(), 1.0)
    between = np.linalg.norm(x[:, None] - x, axis=-1)
    np.testing.assert_allclose(bins.distance @ bins.pairs, between.sum(), rtol=1e-12)
    with pytest.raises(lnk.errors.InputError, match="inputs at different places"):
        distance_bins(np.ones((3, 2)))
    with pytest.raises(lnk.errors.InputError, match="fewer bins"):
        distance_bins(x, bins=5, far=5)


def test_cosines_of_a_kernel() -> None:
    J = RNG.normal(size=(6, 3))
    unit = J / np.linalg.norm(J, axis=1, keepdims=True)
    made = alignment.cosines(jnp.asarray(J @ J.T))
    np.testing.assert_allclose(made, unit @ unit.T, rtol=1e-12, atol=1e-14)
