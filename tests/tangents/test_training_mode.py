"""Models whose output is no function of one input are refused, in every way that they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import lnkernel as lnk

X = np.random.default_rng(0).normal(size=(4, 3))


def with_batchnorm() -> nnx.Module:
    rngs = nnx.Rngs(0)
    return nnx.Sequential(
        nnx.Linear(3, 5, rngs=rngs), nnx.BatchNorm(5, rngs=rngs), nnx.Linear(5, 1, rngs=rngs)
    )


def with_dropout() -> nnx.Module:
    rngs = nnx.Rngs(0)
    return nnx.Sequential(
        nnx.Linear(3, 5, rngs=rngs), nnx.Dropout(0.5, rngs=rngs), nnx.Linear(5, 1, rngs=rngs)
    )


class Noisy(nnx.Module):
    """A module of the user's own that draws random numbers, without any flag for it."""

    def __init__(self, rngs: nnx.Rngs):
        self.inner, self.rngs = nnx.Linear(3, 1, rngs=rngs), rngs

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inner(x) + self.rngs.noise.normal((len(x), 1))


@pytest.mark.parametrize("make", [with_batchnorm, with_dropout, lambda: Noisy(nnx.Rngs(0))])
def test_modules_in_training_mode(make: Callable[[], nnx.Module]) -> None:
    model = make()
    for call in (
        lnk.finite.empirical_ntk,
        lnk.finite.empirical_ntk_diagonal,
        lambda model, x: lnk.tangent(model).vjp(x, np.ones(4)),
    ):
        with pytest.raises(lnk.errors.TrainingModeError, match=r"Call model\.eval\(\) first"):
            call(model, X)


@pytest.mark.parametrize("make", [with_batchnorm, with_dropout])
def test_modules_in_evaluation_mode(make: Callable[[], nnx.Module]) -> None:
    """They have the kernel of the function that they are: here statistics 0 and 1, no mask."""
    model = make()
    model.eval()
    first, last = model.layers[0], model.layers[2]
    kernel, weights = np.asarray(first.kernel[...]), np.asarray(last.kernel[...])[:, 0]
    h = X @ kernel
    scale = 1 / np.sqrt(1 + 1e-5) if make is with_batchnorm else 1.0
    expected = (scale * weights) @ (scale * weights) * (X @ X.T + 1) + scale**2 * h @ h.T + 1
    if make is with_batchnorm:
        expected = expected + (weights**2).sum() + scale**2 * (h * weights) @ (h * weights).T
    np.testing.assert_allclose(lnk.finite.empirical_ntk(model, X), expected, rtol=1e-4)


class InLinen(linen.Module):
    train: bool

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = linen.BatchNorm(use_running_average=not self.train)(linen.Dense(4)(x))
        return linen.Dense(1)(linen.Dropout(0.5, deterministic=not self.train)(x))


def test_linen() -> None:
    variables = InLinen(train=False).init(jax.random.key(0), jnp.ones((1, 3)))
    t = lnk.tangent(InLinen(train=False), variables)
    assert set(t.blocks(X)) == {"BatchNorm_0", "Dense_0", "Dense_1"}  # and no statistics
    fit = t.ridge(X, X[:, 0], 0.1)
    assert set(fit.params) == {"params", "batch_stats"}
    assert InLinen(train=False).apply(fit.params, X).shape == (4, 1)
    with pytest.raises(lnk.errors.TrainingModeError, match="use_running_average=True"):
        lnk.tangent(InLinen(train=True), variables).gram(X)
    with pytest.raises(lnk.errors.InputError, match="X: expected inputs that the network accepts"):
        t.ridge(X[:, :2], X[:, 0])
    with pytest.raises(lnk.errors.InputError, match='a dict with "params"'):
        lnk.tangent(InLinen(train=False), variables["params"])


def test_functions_that_mix_their_inputs() -> None:
    def centred(w: Any, x: Any) -> Any:
        h = x @ w
        return h - h.mean(0)

    with pytest.raises(lnk.errors.TrainingModeError, match="two inputs together"):
        lnk.tangent(centred, jnp.ones((3, 2))).gram(X)
    assert lnk.tangent(lambda w, x: x @ w, jnp.ones((3, 2))).gram(X).shape == (4, 2, 4, 2)
