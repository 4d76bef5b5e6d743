"""Inside a user's own transformation: posteriors of images, and checks of what is no tracer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk

RNG = np.random.default_rng(0)
IMAGES, NEW = RNG.normal(size=(2, 4, 4, 3)), RNG.normal(size=(3, 4, 4, 3))
X = np.linspace(-2, 2, 6)[:, None]
Y = np.sin(X[:, 0])
METHODS = "mean", "variance", "covariance", "ensemble_variance"


@pytest.fixture(scope="module")
def of_images() -> lnk.Posterior:
    return lnk.posterior(lnk.cnn(), IMAGES, [0.0, 1.0])


@pytest.mark.parametrize("method", METHODS)
def test_posteriors_of_images(of_images: lnk.Posterior, method: str) -> None:
    asked = getattr(of_images, method)
    with jax.enable_x64(True):
        assert np.asarray(jax.jit(asked)(NEW)) == pytest.approx(asked(NEW), abs=1e-14)


def test_posteriors_of_images_as_arguments(of_images: lnk.Posterior) -> None:
    usual = of_images.mean(NEW)
    with jax.enable_x64(True):
        again = jax.tree.map(lambda part: part, of_images)
        assert again.mean(NEW) == pytest.approx(usual, abs=1e-14)
        inside = jax.jit(lambda post, x: post.mean(x))(of_images, NEW)
        made = jax.jit(lambda x: lnk.posterior(lnk.cnn(), x, [0.0, 1.0]).mean(NEW))(IMAGES)
        one_by_one = jax.vmap(lambda x: of_images.mean(x[None])[0])(NEW)
    for found in (inside, made, one_by_one):
        assert np.asarray(found) == pytest.approx(usual, abs=1e-14)
    assert "points=2, dimension=(4, 4, 3)" in repr(of_images)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ma.masked_array(Y, mask=[1, 0, 0, 0, 0, 0]), "1 of 6 masked"),
        (Y + 1j, "complex128"),
        (Y * np.nan, "finite numbers"),
        (None, "None"),
        (["a"] * 6, "real numbers"),
        (Y[:3], r"shape \(3,\)"),
    ],
    ids=["masked", "complex", "nan", "none", "text", "too few"],
)
def test_targets_are_checked_beside_traced_inputs(y: Any, message: str) -> None:
    arch = lnk.mlp(hidden=1, norm="first", b_std=0.3)
    with jax.enable_x64(True), pytest.raises(lnk.errors.InputError, match=message):
        jax.jit(lambda x: lnk.posterior(arch, x, y).mean(X[:1]))(X)


@pytest.mark.parametrize("data", [np.zeros(3, np.uint32), jnp.zeros(1, jnp.uint32)], ids=str)
def test_numbers_that_are_no_key(data: Any) -> None:
    post = lnk.posterior(lnk.mlp(), X, Y)
    with pytest.raises(lnk.errors.InputError, match=r"one key of jax\.random"):
        post.sample(data, X)


def test_a_kernel_from_text() -> None:
    assert lnk.Kernel("mlp(norm='first')", ("ntk",)).arch == lnk.mlp(norm="first")


def test_a_variance_for_each_point_in_the_regressor() -> None:
    noise = 0.1 * np.arange(1, 7)
    model = lnk.sklearn.NTKRegressor(noise=noise).fit(X, Y)
    usual = lnk.posterior(model.arch_, X, Y, noise=noise)
    assert model.predict(X) == pytest.approx(usual.mean(X), abs=1e-13)
