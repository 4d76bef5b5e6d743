"""Laplace's approximation against weight space, with the Hessian of the loss as JAX has it."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import X2, X, flat, jacobian, mlp, parameters

import lnkernel as lnk
from lnkernel.tangents.ella import NystromLaplace
from lnkernel.tangents.laplace import Laplace

K, TAU, NOISE = 3, 0.7, 0.2
PARAMS = parameters(outputs=K)
T = lnk.tangent(mlp, PARAMS)
F = T.value(X)
J, J2 = (jacobian(mlp, PARAMS, x) for x in (X, X2))
LABELS = np.arange(9) % K
Y = F + 0.1 * np.random.default_rng(2).normal(size=F.shape)
TARGETS = {"gaussian": Y, "categorical": LABELS}
CONSTANT = lnk.tangent(lambda w, x: 0.0 * (x @ w), np.ones(3))  # its gradient is zero


def log_likelihood(name: str, f: Any) -> Any:
    """Written out, for one data set."""
    if name == "gaussian":
        return -0.5 * jnp.sum((f - Y) ** 2) / NOISE - 0.5 * f.size * jnp.log(2 * jnp.pi * NOISE)
    return jnp.sum(jax.nn.log_softmax(f)[jnp.arange(9), LABELS])


def curvature(name: str) -> np.ndarray:
    """Jᵀ Λ J in weight space, Λ by differentiating twice."""
    with jax.enable_x64(True):
        hessian = -np.asarray(jax.hessian(lambda f: log_likelihood(name, f))(jnp.asarray(F)))
    flat_j = J.reshape(9 * K, -1)
    return flat_j.T @ hessian.reshape(9 * K, 9 * K) @ flat_j


def made(name: str, tau: float | None = TAU, **options: Any) -> Laplace:
    return T.laplace(X, TARGETS[name], name, tau, noise=NOISE, **options)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_exact_is_weight_space(name: str) -> None:
    exact, hessian = made(name), curvature(name)
    posterior = np.linalg.inv(hessian + TAU * np.eye(T.size))
    expected = np.einsum("iap,pq,jbq->iajb", J2, posterior, J2)
    np.testing.assert_allclose(exact.covariance(X2, full=True), expected, atol=1e-12)
    own = expected[range(5), :, range(5)]
    np.testing.assert_allclose(exact.covariance(X2), own, atol=1e-12)
    np.testing.assert_array_equal(exact.mean(X2), T.value(X2))
    theta = flat(PARAMS)
    _, log_determinant = np.linalg.slogdet(hessian / TAU + np.eye(T.size))
    with jax.enable_x64(True):
        fit = float(log_likelihood(name, jnp.asarray(F)))
    evidence = fit - TAU / 2 * theta @ theta - log_determinant / 2
    assert math.isclose(exact.log_marginal_likelihood(), evidence, rel_tol=1e-10)
    # by the factor's diagonal at the given τ, and by eigenvalues, which serve every τ
    assert math.isclose(exact.log_marginal_likelihood(), exact.evidence(TAU), rel_tol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_the_prior_precision_with_the_largest_evidence(name: str) -> None:
    """The fixed point of MacKay: τ |θ|² = Σ μ/(μ + τ), the number of parameters that data decide."""
    chosen = made(name, None)
    tau, mu = chosen.prior_precision, np.linalg.eigvalsh(curvature(name))
    decided = float((mu / (mu + tau)).sum())
    assert math.isclose(tau * flat(PARAMS) @ flat(PARAMS), decided, rel_tol=1e-4)
    for other in (0.5 * tau, 2 * tau):
        assert chosen.log_marginal_likelihood() > chosen.evidence(other)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_ella_is_below_the_exact_one_and_grows(name: str) -> None:
    """In the order of matrices, over all pairs of inputs and outputs."""
    exact = made(name).covariance(X2, full=True).reshape(5 * K, 5 * K)
    before = np.zeros_like(exact)
    for rank in (2, 5, 9):
        found = made(name, rank=rank, subsample=9).covariance(X2, full=True).reshape(exact.shape)
        assert np.linalg.eigvalsh(exact - found).min() > -1e-12
        assert np.linalg.eigvalsh(found - before).min() > -1e-12
        assert np.trace(found) > 1.01 * np.trace(before)
        before = found


def test_ella_in_weight_space() -> None:
    """V Vᵀ is a projection, and the covariance is that of the model in span V alone."""
    found = made("categorical", rank=4, subsample=6)
    assert isinstance(found, NystromLaplace)
    leaves = [np.asarray(leaf).reshape(4, -1) for leaf in jax.tree.leaves(found._basis)]
    v = np.concatenate(leaves, 1).T
    np.testing.assert_allclose(v.T @ v, np.eye(4), atol=1e-12)
    inner = np.linalg.inv(v.T @ curvature("categorical") @ v + TAU * np.eye(4))
    expected = np.einsum("iap,pr,rs,qs,ibq->iab", J2, v, inner, v, J2)
    np.testing.assert_allclose(found.covariance(X2), expected, atol=1e-12)
    assert found.used == 9 and found.losses == []


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_early_stopping(name: str) -> None:
    """After i of n inputs G is that of the i inputs and of i/n of the prior; the best is kept."""
    held = (X2, T.value(X2) if name == "gaussian" else np.array([0, 1, 2, 0, 1]))
    found = made(name, rank=4, subsample=9, validation=held, check_every=3)
    assert isinstance(found, NystromLaplace)
    assert [done for done, _ in found.losses] == [3, 6, 9]
    assert found.used == min(found.losses, key=lambda one: one[1])[0]
    order = np.random.default_rng(0).permutation(9)[: found.used]
    leaves = [np.asarray(leaf).reshape(4, -1) for leaf in jax.tree.leaves(found._basis)]
    v = np.concatenate(leaves, 1).T
    roots = found._likelihood.root(F[order])
    rows = np.einsum("iab,iap->ibp", roots, J[order]).reshape(-1, T.size) @ v
    expected = rows.T @ rows + TAU * found.used / 9 * np.eye(4)
    np.testing.assert_allclose(found._precision, expected, atol=1e-12)


def test_probabilities() -> None:
    """Between the network's own (a sure prior) and equal ones; and by plain sampling."""
    exact = made("categorical")
    sure = T.laplace(X, LABELS, "categorical", 1e12).probabilities(X2)
    np.testing.assert_allclose(sure, np.asarray(jax.nn.softmax(T.value(X2))), atol=1e-6)
    found = exact.probabilities(X2, samples=4000)
    np.testing.assert_allclose(found.sum(1), 1)
    draw = np.random.default_rng(3)
    for mean, covariance, one in zip(exact.mean(X2), exact.covariance(X2), found, strict=True):
        samples = draw.multivariate_normal(mean, covariance, size=4000)
        np.testing.assert_allclose(np.asarray(jax.nn.softmax(samples)).mean(0), one, atol=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: T.laplace(X, Y, "poisson", 1.0), 'likelihood: expected "gaussian" or'),
        (lambda: T.laplace(X, Y, "categorical", 1.0), "y: expected the class of each"),
        (lambda: T.laplace(X, LABELS + 1, "categorical", 1.0), "from 1 to 3"),
        (lambda: T.laplace(X, Y, "gaussian", 0.0), "prior_precision: expected a positive number"),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, subsample=3), "rank: expected a number"),
        (
            lambda: T.laplace(X, Y, "gaussian", 1.0, 2, 10),
            "subsample: expected from 2, the rank, to 9",
        ),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, 4, 3), "got 3 for the rank 4"),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, 2, 2.5), "subsample: expected an integer"),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, 2, seed="a"), "seed: expected an integer"),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, prior_mean=np.nan), "prior_mean: expected"),
        (lambda: T.laplace(X, Y, "gaussian", 1.0, 2, validation=X), "validation: expected a pair"),
        (lambda: CONSTANT.laplace(X, LABELS, "categorical"), '"categorical" with one output'),
        (lambda: CONSTANT.laplace(X, X[:, 0], rank=2), "X: expected inputs at which the gradient"),
        (lambda: made("gaussian").probabilities(X2), 'likelihood: expected "categorical"'),
        (
            lambda: T.laplace(X, Y, rank=2, validation=(X2, T.value(X2))),
            "prior_precision: expected a number where validation",
        ),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.InputError, match=message):
        call()
