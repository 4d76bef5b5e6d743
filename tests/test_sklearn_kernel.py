"""`lnkernel.sklearn.NTKKernel`: scikit-learn's Gaussian processes with our kernel give our posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

import lnkernel as lnk
from lnkernel.sklearn import NTKKernel

ARCH = lnk.mlp(hidden=1, norm="first", b_std=1.0)
RNG = np.random.default_rng(0)
X, FAR = RNG.normal(size=(30, 2)), 3 * RNG.normal(size=(7, 2))
Y = np.sin(X[:, 0]) + X[:, 1]
FUNCTIONS = {"ntk": lnk.ntk(ARCH), "nngp": lnk.nngp(ARCH)}


def close(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_equal_posterior(kernel: str, noise: float) -> None:
    model = GaussianProcessRegressor(NTKKernel(ARCH, kernel), alpha=noise, optimizer=None).fit(X, Y)
    post = lnk.posterior(ARCH, X, Y, kernel=kernel, noise=noise)
    mean, std = model.predict(FAR, return_std=True)
    close(mean, post.mean(FAR))
    close(std, post.std(FAR))
    _, covariance = model.predict(FAR, return_cov=True)
    close(covariance, post.covariance(FAR))
    close(model.log_marginal_likelihood(), post.log_marginal_likelihood())


def test_equal_posterior_without_noise() -> None:
    """Solving loses as many units of rounding as the condition number, here about 1e6, says."""
    model = GaussianProcessRegressor(NTKKernel(ARCH, "nngp"), alpha=0.0).fit(X, Y)
    post = lnk.posterior(ARCH, X, Y, kernel="nngp")
    mean, std = model.predict(FAR, return_std=True)
    lost = 10 * np.linalg.cond(FUNCTIONS["nngp"](X)) * np.finfo(float).eps
    assert lost < 1e-8
    close(mean, post.mean(FAR), lost)
    close(std**2, post.variance(FAR), lost)


def test_several_outputs_and_samples() -> None:
    model = GaussianProcessRegressor(NTKKernel(ARCH), alpha=0.1).fit(X, np.stack([Y, -Y], 1))
    close(model.predict(FAR), lnk.posterior(ARCH, X, np.stack([Y, -Y], 1), noise=0.1).mean(FAR))
    assert model.sample_y(FAR, n_samples=3, random_state=0).shape == (7, 2, 3)


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_it_is_the_kernel(kernel: str) -> None:
    found, function = NTKKernel(ARCH, kernel), FUNCTIONS[kernel]
    np.testing.assert_array_equal(found(X), function(X))
    np.testing.assert_array_equal(found(X, FAR), function(X, FAR))
    np.testing.assert_array_equal(found.diag(X), function.diagonal(X))
    assert found.is_stationary() is False and found.requires_vector_input
    assert found.theta.shape == (0,) and found.n_dims == 0 and found.hyperparameters == []


def test_its_gradient_is_empty() -> None:
    kernel = NTKKernel(ARCH)
    gram, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(gram, kernel(X))
    assert gradient.shape == (30, 30, 0)
    with pytest.raises(ValueError, match="only be evaluated when Y is None"):
        kernel(X, FAR, eval_gradient=True)


def test_scale_and_noise_around_it_are_fitted() -> None:
    """The marginal likelihood that the optimizer ends at is ours, and no neighbour's is higher."""
    noisy = Y + 0.3 * np.random.default_rng(1).normal(size=30)
    kernel = ConstantKernel(1.0) * NTKKernel(ARCH, "nngp") + WhiteKernel(1.0)
    model = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, noisy)
    scale, noise = np.exp(model.kernel_.theta)

    def likelihood(scale: float, noise: float) -> float:
        # scale K + noise = scale (K + noise/scale)
        post = lnk.posterior(ARCH, X, noisy / scale**0.5, kernel="nngp", noise=noise / scale)
        return float(post.log_marginal_likelihood()) - len(X) / 2 * np.log(scale)

    best = likelihood(scale, noise)
    close(best, model.log_marginal_likelihood_value_, 1e-8)
    for a, b in [(1.1, 1.0), (0.9, 1.0), (1.0, 1.1), (1.0, 0.9)]:
        assert likelihood(a * scale, b * noise) < best
    post = lnk.posterior(ARCH, X, noisy, kernel="nngp", noise=noise / scale)
    close(model.predict(FAR), post.mean(FAR), 1e-8)


def test_sums_and_products() -> None:
    ntk, rbf = NTKKernel(ARCH), RBF(0.7)
    close((ntk + rbf)(X, FAR), ntk(X, FAR) + rbf(X, FAR))
    close((2.0 * ntk * rbf).diag(X), 2 * ntk.diag(X))
    close((ntk**2)(X), ntk(X) ** 2)


def test_elsewhere_in_scikit_learn() -> None:
    ridge = KernelRidge(alpha=0.1, kernel=NTKKernel(ARCH)).fit(X, Y)
    close(ridge.predict(FAR), lnk.posterior(ARCH, X, Y, noise=0.1).mean(FAR))
    assert SVR(kernel=NTKKernel(ARCH), C=100.0).fit(X, Y).score(X, Y) > 0.8
    assert GaussianProcessClassifier(NTKKernel(ARCH)).fit(X, Y > 0).score(X, Y > 0) > 0.9


def test_clone_text_and_search() -> None:
    kernel = NTKKernel("mlp(hidden=1, norm='first', b_std=1.0)", kernel="nngp")
    assert clone(kernel) == kernel != NTKKernel(ARCH)
    np.testing.assert_array_equal(clone(kernel)(X), FUNCTIONS["nngp"](X))
    assert repr(kernel) == f"NTKKernel({ARCH!r}, kernel='nngp')"
    linear = lnk.serial(lnk.Dense(1, b_std=1.0))
    grid = {"kernel": [NTKKernel(linear), NTKKernel(ARCH)]}
    search = GridSearchCV(GaussianProcessRegressor(alpha=0.01), grid, cv=2).fit(X, abs(X[:, 0]))
    assert search.best_params_["kernel"] == NTKKernel(ARCH)


def test_refused() -> None:
    with pytest.raises(
        lnk.errors.InputError, match='kernel: expected "ntk" or "nngp", got \'rbf\''
    ):
        NTKKernel(ARCH, "rbf")(X)
    with pytest.raises(
        lnk.errors.ArchitectureError, match="expected an architecture or its text, got 3"
    ):
        NTKKernel(3).diag(X)
