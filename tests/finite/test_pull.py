"""The ridge term that pulls fine-tuning to its start, and the selective rule."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import InputError

X = np.random.default_rng(0).normal(size=(5, 3))


def test_pulled_training_ends_at_the_ridge_minimum() -> None:
    """Of a linear model, where it is known in closed form."""
    net = nnx.Sequential(nnx.Linear(3, 1, rngs=nnx.Rngs(0)))
    y, strength = np.sin(X[:, 0]), 0.5
    expected = lnk.tangent(net, dtype=jnp.float64).ridge(X, y, strength).mean(X)
    rule = optax.chain(lnk.finite.pull_to_start(strength), optax.sgd(0.03))
    lnk.finite.train(net, X, y, rule, steps=2000)
    assert np.allclose(net(jnp.asarray(X, jnp.float32))[:, 0], expected, atol=1e-5)


def test_no_selective_ridge_step_raises_the_risk_to_first_order() -> None:
    """In every step of training with noise: −η λ ∇R·(θ − θ₀) ≤ 0 where the ridge term acts at all."""
    draw, strength = np.random.default_rng(1), 3.0
    pull = lnk.finite.pull_to_start(strength, selective=True)
    plain = lnk.finite.pull_to_start(strength)
    params = jnp.asarray(draw.normal(size=4), jnp.float32)
    state, still = pull.init(params), plain.init(params)
    acted = raised = 0
    for _ in range(300):
        slope = jnp.asarray(draw.normal(size=4), jnp.float32)
        made, state = pull.update(slope, state, params)
        ridge = made - slope
        change = -float(jnp.vdot(slope, ridge))  # of the risk, for a unit rate
        assert change <= 1e-6
        acted += bool(jnp.any(ridge != 0))
        raised += float(jnp.vdot(slope, plain.update(slope, still, params)[0] - slope)) < 0
        params = params - 0.05 * made
    assert acted + int(state.skipped) in (299, 300)  # at the start there is nothing to pull
    assert acted > 50 and raised > 50  # without the rule it would have risen


def test_a_wrong_strength() -> None:
    for strength in (-1.0, float("nan"), "much"):
        with pytest.raises(InputError, match="a number, at least 0"):
            lnk.finite.pull_to_start(strength)  # type: ignore[arg-type]
    pull = lnk.finite.pull_to_start(1.0)
    with pytest.raises(InputError, match="the parameters as they are"):
        pull.update(jnp.ones(2), pull.init(jnp.ones(2)))
