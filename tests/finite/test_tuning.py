"""Parts of fine-tuning: LoRA factors, and the ridge term that pulls to the start."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import InputError

X = np.random.default_rng(0).normal(size=(5, 3))


class Net(nnx.Module):
    """A list, an attribute, and a layer of another kind."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(3, 6, rngs=rngs)
        self.parts = nnx.List([nnx.LayerNorm(6, rngs=rngs), nnx.Linear(6, 6, rngs=rngs)])
        self.last = nnx.Linear(6, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(jnp.tanh(self.parts[1](self.parts[0](self.first(x)))))


def test_lora_leaves_the_function_and_the_network_as_they_were() -> None:
    net = Net()
    adapted: Any = lnk.finite.add_lora(net, 2, rngs=3)
    x = jnp.asarray(X, jnp.float32)
    assert jnp.array_equal(net(x), adapted(x))
    assert type(net.first) is nnx.Linear and type(adapted.first) is nnx.LoRA
    assert type(adapted.parts[1]) is nnx.LoRA and type(adapted.parts[0]) is nnx.LayerNorm
    shapes = [leaf.shape for leaf in jax.tree.leaves(nnx.state(adapted, nnx.LoRAParam))]
    assert sorted(shapes) == sorted([(3, 2), (2, 6), (6, 2), (2, 6), (6, 2), (2, 2)])
    assert len(jax.tree.leaves(nnx.state(net, nnx.LoRAParam))) == 0


def test_only_b_moves_the_network_at_first() -> None:
    t = lnk.tangent(lnk.finite.add_lora(Net(), 2), wrt=nnx.LoRAParam, dtype=jnp.float64)
    blocks = t.blocks(X, by="parameter")
    assert all(not blocks[name].any() for name in blocks if name.endswith("lora_a"))
    assert all(blocks[name].any() for name in blocks if name.endswith("lora_b"))


def test_the_mean_of_lora_s_kernel_is_the_layer_s() -> None:
    """E[K_LoRA] = r σ² K_W; by Monte Carlo, within four standard errors of every entry."""
    net = Net()
    layer = lnk.tangent(net, wrt="first/kernel", dtype=jnp.float64).gram(X)
    made = []
    for seed in range(200):
        adapted = lnk.finite.add_lora(net, 4, rngs=seed, where=lambda path: path == ("first",))
        made.append(lnk.tangent(adapted, wrt=nnx.LoRAParam, dtype=jnp.float64).gram(X))
    error = np.std(made, axis=0, ddof=1) / np.sqrt(len(made))
    assert (np.abs(np.mean(made, axis=0) - layer) < 4.5 * error + 1e-12).all()
    assert np.linalg.norm(np.mean(made, axis=0) - layer) < 0.1 * np.linalg.norm(layer)


def test_lora_nowhere() -> None:
    with pytest.raises(InputError, match=r"none chosen of first, last, parts/1"):
        lnk.finite.add_lora(Net(), 2, where=lambda path: False)
    with pytest.raises(InputError, match="Linear without any"):
        lnk.finite.add_lora(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), 2)


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
