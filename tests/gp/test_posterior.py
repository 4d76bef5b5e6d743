"""The posterior: against 50 digits, and the laws that it obeys."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from exact_posterior import Exact
from hypothesis import given, settings
from hypothesis import strategies as st

import lnkernel as lnk

LN = lnk.mlp(hidden=1, norm="first")
PLAIN = lnk.mlp(hidden=1)
NETWORKS = {"LN": LN, "plain": PLAIN}


def data(n: int = 6, d: int = 2, k: int = 1, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, k))
    return rng.normal(size=(n, d)), y[:, 0] if k == 1 else y, 2 * rng.normal(size=(3, d))


def condition(arch: Any, X: Any, kernel: str = "ntk") -> float:
    """What backward stable linear algebra may lose."""
    return float(np.linalg.cond(getattr(lnk, kernel)(arch)(X)))


# ------------------------------------------------------------------ 50 digits


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
@pytest.mark.parametrize("name", NETWORKS)
def test_against_50_digits(name: str, kernel: str) -> None:
    """10 times the kernel's own error, 2e-15, amplified by the condition of the matrix."""
    X, y, x = data()
    arch = NETWORKS[name]
    post, exact = lnk.posterior(arch, X, y, kernel), Exact(arch, X, y, kernel)
    allowed = 2e-14 * condition(arch, X, kernel)
    assert allowed < 1e-9
    size = float(np.abs(lnk.kernels(arch).diagonal(x)).max())
    np.testing.assert_allclose(post.mean(x), exact.mean(x)[:, 0], rtol=0, atol=allowed)
    covariance = exact.covariance(x)
    np.testing.assert_allclose(post.covariance(x), covariance, rtol=0, atol=allowed * size)
    np.testing.assert_allclose(post.variance(x), np.diagonal(covariance), atol=allowed * size)
    np.testing.assert_allclose(post.std(x) ** 2, np.diagonal(covariance), atol=allowed * size)
    np.testing.assert_allclose(
        post.ensemble_variance(x), exact.ensemble_variance(x), rtol=0, atol=allowed * size
    )
    assert post.log_marginal_likelihood() == pytest.approx(
        exact.log_marginal_likelihood(), rel=allowed
    )


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_noise_and_several_outputs_against_50_digits(kernel: str) -> None:
    X, y, x = data(k=2)
    post, exact = lnk.posterior(LN, X, y, kernel, noise=0.3), Exact(LN, X, y, kernel, noise=0.3)
    np.testing.assert_allclose(post.mean(x), exact.mean(x), rtol=0, atol=1e-13)
    np.testing.assert_allclose(post.covariance(x), exact.covariance(x), rtol=0, atol=1e-13)
    spread = exact.ensemble_covariance(x)
    np.testing.assert_allclose(post.ensemble_variance(x), np.diagonal(spread), rtol=0, atol=1e-13)
    np.testing.assert_allclose(post.ensemble_covariance(x), spread, rtol=0, atol=1e-13)
    assert post.log_marginal_likelihood() == pytest.approx(
        exact.log_marginal_likelihood(), rel=1e-13
    )


def test_the_example_of_the_mathematics() -> None:
    """sin on 100 points of [-5, 5]: |f(±∞)| = 0.97413, computed independently."""
    x = np.linspace(-5, 5, 100)[:, None]
    post = lnk.posterior(lnk.mlp(hidden=2, norm="first"), x, np.sin(x[:, 0]))
    mean = post.mean([[1e9], [-1e9]])
    np.testing.assert_allclose(np.abs(mean), 0.97413, atol=5e-6)


def test_one_point_by_hand() -> None:
    """A = K(1, 1) = 1 for Dense(1), relu, Dense(√2); K(-1, 1) = 0: relu's two sides."""
    arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
    post = lnk.posterior(arch, [[1.0]], [3.0], "nngp")
    np.testing.assert_allclose(post.mean([[1.0], [2.0], [-1.0]]), [3, 6, 0], atol=1e-14)
    np.testing.assert_allclose(post.variance([[1.0], [2.0], [-1.0]]), [0, 0, 1], atol=1e-14)
    wanted = -4.5 - 0.5 * math.log(2 * math.pi)
    assert post.log_marginal_likelihood() == pytest.approx(wanted, rel=1e-15, abs=0)


# ------------------------------------------------------------------ laws

# few shapes, because each one is compiled anew
sets = st.builds(
    data, n=st.sampled_from([1, 6]), k=st.integers(1, 6), seed=st.integers(0, 2**32 - 1)
)
few = settings(max_examples=30, deadline=None)


@few
@given(sets)
def test_interpolates(data: Any) -> None:
    X, y, _ = data
    post = lnk.posterior(LN, X, y)
    allowed = 1e-14 * condition(LN, X) * np.abs(y).max()
    np.testing.assert_allclose(post.mean(X), y, rtol=0, atol=allowed)
    np.testing.assert_allclose(post.variance(X), 0, atol=1e-13)
    assert (post.variance(X) >= 0).all()


@few
@given(sets, st.integers(0, 100))
def test_the_order_of_the_data_does_not_matter(data: Any, seed: int) -> None:
    X, y, x = data
    order = np.random.default_rng(seed).permutation(len(X))
    one, two = lnk.posterior(LN, X, y), lnk.posterior(LN, X[order], y[order])
    allowed = 1e-14 * condition(LN, X)
    np.testing.assert_allclose(one.mean(x), two.mean(x), rtol=0, atol=allowed * np.abs(y).max())
    np.testing.assert_allclose(one.variance(x), two.variance(x), rtol=0, atol=allowed)


@few
@given(sets)
def test_several_outputs_are_several_problems(data: Any) -> None:
    X, y, x = data
    columns = y.reshape(len(X), -1)
    many = lnk.posterior(LN, X, columns)
    single = [lnk.posterior(LN, X, column) for column in columns.T]
    allowed = 1e-14 * condition(LN, X) * np.abs(y).max()
    assert many.mean(x).shape == (len(x), columns.shape[1])
    assert single[0].mean(x).shape == (len(x),)
    np.testing.assert_allclose(
        many.mean(x), np.stack([p.mean(x) for p in single], axis=1), rtol=0, atol=allowed
    )
    total = sum(p.log_marginal_likelihood() for p in single)
    assert many.log_marginal_likelihood() == pytest.approx(total, rel=1e-12, abs=0)


@few
@given(sets, st.floats(1e-6, 10))
def test_more_data_leaves_less_variance(data: Any, noise: float) -> None:
    X, y, x = data
    prior = lnk.ntk(LN).diagonal(x)
    some = lnk.posterior(LN, X[:1], y[:1], noise=noise).variance(x)
    every = lnk.posterior(LN, X, y, noise=noise).variance(x)
    assert (every <= some + 1e-13).all() and (some <= prior + 1e-13).all()


@few
@given(sets)
def test_training_the_last_layer_is_bayesian_inference(data: Any) -> None:
    """Lee et al. 2019: with K in the place of Θ the spread of networks is the variance."""
    X, y, x = data
    post = lnk.posterior(PLAIN, X, y, "nngp")
    allowed = 1e-13 * condition(PLAIN, X, "nngp") * lnk.nngp(PLAIN).diagonal(x).max()
    np.testing.assert_allclose(post.ensemble_variance(x), post.variance(x), rtol=0, atol=allowed)


def test_equal_inputs_with_noise_are_their_mean_with_less_noise() -> None:
    X, y, x = data()
    twice = lnk.posterior(LN, np.concatenate([X, X]), np.concatenate([y + 1, y - 1]), noise=0.2)
    once = lnk.posterior(LN, X, y, noise=0.1)
    np.testing.assert_allclose(twice.mean(x), once.mean(x), rtol=0, atol=1e-12)
    np.testing.assert_allclose(twice.variance(x), once.variance(x), rtol=0, atol=1e-12)


def test_norms_of_very_different_size_do_no_harm() -> None:
    """Only the angles count for the factor: the diagonal goes from 1e-12 to 1e8."""
    arch = lnk.mlp(hidden=1, b_std=0.0)
    X, y, _ = data()
    scale = 10.0 ** np.arange(-6, 6, 2)[:, None]
    post = lnk.posterior(arch, X * scale, y * scale[:, 0])
    allowed = 1e-14 * condition(arch, X / np.linalg.norm(X, axis=1, keepdims=True))
    assert allowed < 1e-8
    np.testing.assert_allclose(post.mean(X * scale) / scale[:, 0], y, rtol=0, atol=allowed)


def test_many_points_at_once_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, x = data()
    post = lnk.posterior(LN, X, y)
    whole = post.mean(x), post.variance(x), post.ensemble_variance(x), post.ensemble_covariance(x)
    monkeypatch.setattr("lnkernel.gp.fit._ENTRIES", 1)  # row by row
    parts = post.mean(x), post.variance(x), post.ensemble_variance(x), post.ensemble_covariance(x)
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-13)


# ------------------------------------------------------------------ samples


def test_samples_have_the_mean_and_the_covariance() -> None:
    X, y, x = data()
    post = lnk.posterior(LN, X, y, "nngp")
    draws = 20_000
    samples = post.sample(jax.random.key(0), x, (draws,))
    covariance = post.covariance(x)
    spread = np.sqrt(np.diagonal(covariance))
    assert samples.shape == (draws, 3) and samples.dtype == np.float64
    assert (np.abs(samples.mean(0) - post.mean(x)) < 4.5 * spread / math.sqrt(draws)).all()
    # the standard error of a covariance of Gaussians is at most √2 times the product of spreads
    allowed = 4.5 * np.sqrt(2 / draws) * np.outer(spread, spread)
    assert (np.abs(np.cov(samples.T) - covariance) < allowed).all()


def test_samples_pass_through_the_data_and_repeat() -> None:
    X, y, x = data(k=2)
    post = lnk.posterior(LN, X, y)
    points = np.concatenate([X[:2], x[:1]])
    one, two, other = (post.sample(jax.random.key(s), points) for s in (0, 0, 1))
    assert one.shape == (3, 2) and np.array_equal(one, two)
    # the root of a variance that is zero up to rounding
    np.testing.assert_allclose(one[:2], y[:2], rtol=0, atol=1e-6)
    assert (one[2] != other[2]).all()
    assert abs(np.corrcoef(*(post.sample(jax.random.key(3), x, (4000,))[:, 0].T))[0, 1]) < 0.08
    assert post.sample(jax.random.PRNGKey(0), x, (2, 3)).shape == (2, 3, 3, 2)


# ------------------------------------------------------------------ JAX


def test_numpy_of_plain_numbers_whatever_the_mode() -> None:
    X, y, x = data()
    outside = lnk.posterior(LN, X, y)
    assert isinstance(outside.mean(x), np.ndarray) and outside.mean(x).dtype == np.float64
    with jax.enable_x64(True):
        inside = lnk.posterior(LN, jax.numpy.asarray(X), jax.numpy.asarray(y))
        spreads = "ensemble_variance", "ensemble_covariance"
        for name in ("mean", "variance", "std", "covariance", *spreads):
            result = getattr(inside, name)(jax.numpy.asarray(x))
            assert isinstance(result, np.ndarray) and result.dtype == np.float64
            assert np.array_equal(result, getattr(outside, name)(x))


def test_gradient_of_the_marginal_likelihood() -> None:
    """By central differences, whose own error is about 1e-9 here."""
    X, y, _ = data(k=2)

    def evidence(w: Any, noise: Any) -> Any:
        arch = lnk.mlp(hidden=1, W_std=w)
        return lnk.posterior(arch, X, y, noise=noise).log_marginal_likelihood()

    with jax.enable_x64(True):
        value, slopes = jax.jit(jax.value_and_grad(evidence, (0, 1)))(1.3, 0.2)
    assert float(value) == pytest.approx(evidence(1.3, 0.2), rel=1e-13, abs=0)
    step = 1e-5
    expected = (
        (evidence(1.3 + step, 0.2) - evidence(1.3 - step, 0.2)) / (2 * step),
        (evidence(1.3, 0.2 + step) - evidence(1.3, 0.2 - step)) / (2 * step),
    )
    np.testing.assert_allclose(slopes, expected, rtol=1e-7)


def test_gradient_in_the_inputs() -> None:
    X, y, x = data()
    post = lnk.posterior(PLAIN, X, y)
    step = 1e-5 * np.array([[1.0, 0.0]])

    def total(x: Any) -> Any:
        return (post.mean(x) + 3 * post.variance(x)).sum()

    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(total))(x)[:, 0]
    changes = [post.mean(x + s) + 3 * post.variance(x + s) for s in (step, -step)]
    np.testing.assert_allclose(slope, (changes[0] - changes[1]) / 2e-5, rtol=1e-6)


def test_traced_posterior_predicts_the_same() -> None:
    X, y, x = data()
    post = lnk.posterior(PLAIN, X, y)
    with jax.enable_x64(True):
        both = jax.jit(
            lambda y: [f(x) for p in [lnk.posterior(PLAIN, X, y)] for f in (p.mean, p.std)]
        )
        mean, std = both(y)
    np.testing.assert_allclose(mean, post.mean(x), rtol=0, atol=1e-12)
    np.testing.assert_allclose(std, post.std(x), rtol=0, atol=1e-12)


def test_without_64_bit_mode_a_transformation_is_refused() -> None:
    X, y, x = data()
    with pytest.raises(lnk.errors.PrecisionError):
        jax.jit(lnk.posterior(LN, X, y).mean)(x)
    with pytest.raises(lnk.errors.PrecisionError):
        jax.jit(lambda y: lnk.posterior(LN, X, y).mean(x))(y)
