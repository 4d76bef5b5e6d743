"""Means over networks: against the networks one by one, and against the limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.check.numbers import as_seeds
from lnkernel.finite.empirical.estimate import estimate, weighted_slope

RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3))
ARCH = lnk.mlp(hidden=1, norm="first", outputs=2)
OVER_SEEDS = (lnk.finite.empirical_ntk_over_seeds, lnk.finite.empirical_nngp_over_seeds)


def test_mean_and_standard_error() -> None:
    samples = RNG.normal(size=(9, 3, 2)) + 1e6  # a large mean must not cancel
    found = estimate(samples)
    np.testing.assert_allclose(found.mean, samples.mean(0), rtol=1e-15)
    expected = samples.std(0, ddof=1) / 3
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-8)
    assert found.samples == 9


def test_slope() -> None:
    x, errors = np.arange(5.0), np.array([1.0, 2.0, 1.0, 3.0, 0.5])
    y = RNG.normal(size=5)
    (slope, _), covariance = np.polyfit(x, y, 1, w=1 / errors, cov="unscaled")
    found = weighted_slope(x, y, errors)
    np.testing.assert_allclose(found, (slope, covariance[0, 0] ** 0.5), rtol=1e-10)


@pytest.mark.parametrize("x2", [None, X2])
def test_is_the_mean_of_the_networks(x2: Any) -> None:
    seeds = (3, 5, 8)
    single = [
        lnk.finite.empirical_ntk(lnk.finite.network(ARCH, 3, 16, rngs=seed), X, x2)
        for seed in seeds
    ]
    found = lnk.finite.empirical_ntk_over_seeds(ARCH, X, x2, width=16, seeds=seeds)
    np.testing.assert_allclose(found.mean, np.mean(single, 0), rtol=1e-6)
    expected = np.std(single, 0, ddof=1) / 3**0.5
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-5)


@pytest.mark.parametrize("x64", [False, True])
def test_the_readout_is_integrated_exactly(x64: bool) -> None:
    """One network's features by hand, in float64 whatever JAX's setting."""
    with jax.enable_x64(True):
        features = []
        for seed in (0, 1):
            f = lnk.finite.network(ARCH, 3, 16, rngs=seed, dtype=jnp.float64)
            h = np.asarray(
                X @ f.layers[0].kernel[...] * (2 / 3) ** 0.5 + 0.1 * f.layers[0].bias[...]
            )
            h = h - h.mean(1, keepdims=True)
            features.append(np.maximum(h / np.sqrt((h**2).mean(1, keepdims=True)), 0))
    with jax.enable_x64(x64):
        found = lnk.finite.empirical_nngp_over_seeds(ARCH, X, width=16, seeds=2, dtype=jnp.float64)
    expected = np.mean([2 * a @ a.T / 16 + 0.01 for a in features], 0)
    np.testing.assert_allclose(found.mean, expected, rtol=1e-13)


@pytest.mark.parametrize("ends_in_norm", [False, True])
def test_tends_to_the_limit(ends_in_norm: bool) -> None:
    """Within 4.5 standard errors and a bias of a few times 1/width; K and Θ are told apart."""
    width = 512
    first = (lnk.Dense(width, W_std=1.5, b_std=0.3), lnk.Relu(), lnk.LayerNorm(1e-3, scale=True))
    arch = lnk.serial(*first) if ends_in_norm else lnk.serial(*first, lnk.Dense(1))
    kernels = lnk.kernels(arch)(X)
    scale = np.sqrt(np.multiply.outer(np.diag(kernels.ntk), np.diag(kernels.ntk)))
    ntk = lnk.finite.empirical_ntk_over_seeds(arch, X, width=width, seeds=8)
    nngp = lnk.finite.empirical_nngp_over_seeds(arch, X, width=width, seeds=8)
    for found, limit in ((ntk, kernels.ntk), (nngp, kernels.nngp)):
        allowed = 4.5 * found.standard_error + 4 / width * scale
        assert (np.abs(found.mean - limit) < allowed).all()
        assert allowed.max() < 0.5 * np.abs(kernels.ntk - kernels.nngp).max()


def test_outputs_as_draws() -> None:
    f = lnk.finite.network(lnk.mlp(hidden=1, outputs=5), 3, 16, rngs=0)
    values = np.asarray(f(X), np.float64)
    found = lnk.finite.empirical_nngp(f, X, X2)
    products = values.T[:, :, None] * np.asarray(f(X2), np.float64).T[:, None, :]
    np.testing.assert_allclose(found.mean, products.mean(0), rtol=1e-5)
    expected = products.std(0, ddof=1) / 5**0.5
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-4)
    assert found.samples == 5
    one = lnk.finite.network(lnk.mlp(hidden=1), 3, 16, rngs=0)
    with pytest.raises(lnk.errors.InputError, match="expected at least 2 outputs"):
        lnk.finite.empirical_nngp(one, X)


@pytest.mark.parametrize("seeds", [0, 1, -3, True, "3", 2.5, None, [1, 1], [0, -1], [0.5, 1]])
def test_bad_seeds(seeds: Any) -> None:
    for function in OVER_SEEDS:
        with pytest.raises(lnk.errors.InputError, match="seeds: expected a number of at least 2"):
            function(ARCH, X, width=4, seeds=seeds)


def test_seeds() -> None:
    assert list(as_seeds(3, at_least=1)) == [0, 1, 2]
    assert as_seeds(np.array([4, 2]), at_least=2) == [4, 2]


@pytest.mark.parametrize("function", OVER_SEEDS)
def test_bad_input(function: Any) -> None:
    with pytest.raises(lnk.errors.InputError, match="x2: expected the dimension of x, 3"):
        function(ARCH, X, X2[:, :2])
    with pytest.raises(lnk.errors.InputError, match="x: expected finite numbers"):
        function(ARCH, X * np.nan)
    with pytest.raises(lnk.errors.ArchitectureError, match="expected an architecture"):
        function(3, X)
    with pytest.raises(lnk.errors.InputError, match="width: expected an integer, at least 1"):
        function(ARCH, X, width=0)
    with pytest.raises(lnk.errors.InputError, match="dtype: expected float32 or float64"):
        function(ARCH, X, dtype="float16")
    with pytest.raises(lnk.errors.ArchitectureError, match="single feature"):
        function(ARCH, X, width=1)
