"""Fine-tuning in closed form against gradient descent on the linearized model, and its laws."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from small_models import X2, X, flat, jacobian, mlp, parameters

import lnkernel as lnk

PARAMS = parameters()
T = lnk.tangent(mlp, PARAMS)
J = jacobian(mlp, PARAMS, X).reshape(18, -1)
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], 1)
R = (Y - T.value(X)).ravel()
STRENGTH = 0.3


def test_closed_form_in_parameter_space() -> None:
    """(JᵀJ + λ)⁻¹ Jᵀ r, the other way round, and the prediction by the kernel."""
    fit = T.ridge(X, Y, STRENGTH)
    normal = J.T @ J + STRENGTH * np.eye(J.shape[1])
    np.testing.assert_allclose(flat(fit.change), np.linalg.solve(normal, J.T @ R), atol=1e-12)
    by_kernel = T.value(X2) + np.einsum("iajb,jb->ia", T.gram(X2, X), fit.coefficients)
    np.testing.assert_allclose(fit.mean(X2), by_kernel, atol=1e-12)
    np.testing.assert_allclose(T.linear(fit.params, X2), by_kernel, atol=1e-12)
    assert math.isclose(fit.distance, float(np.linalg.norm(flat(fit.change))))


@pytest.mark.parametrize("strength", [0.0, STRENGTH])
def test_gradient_descent_on_the_linearized_model(strength: float) -> None:
    """Of `after`, step by step with `jax.grad` of the loss; and time as many small steps."""
    steps, rate = 200, 0.01
    fit = T.ridge(X, Y, strength)
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, PARAMS)

        def loss(params: Any) -> Any:
            squares = jnp.sum((T.linear(params, jnp.asarray(X)) - Y) ** 2)
            away = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), params, start)
            return 0.5 * squares + 0.5 * strength * sum(jax.tree.leaves(away))

        def step(params: Any, _: Any) -> Any:
            slope = jax.grad(loss)(params)
            return jax.tree.map(lambda p, g: p - rate * g, params, slope), None

        end, _ = jax.jit(lambda p: jax.lax.scan(step, p, None, length=steps))(start)
    after = fit.after(steps, rate)
    np.testing.assert_allclose(flat(after.params), flat(end), atol=1e-10)
    np.testing.assert_allclose(after.mean(X2), T.linear(end, X2), atol=1e-10)
    flow, small = fit.at(2.0), fit.after(2 * 10**6, 1e-6)
    np.testing.assert_allclose(flow.mean(X2), small.mean(X2), atol=1e-5)


def test_limits() -> None:
    """Time 0 and an infinite strength leave f as it was; without strength the data are met."""
    fit = T.ridge(X, Y)
    np.testing.assert_allclose(fit.mean(X), Y, atol=1e-9)
    assert fit.at(math.inf) is fit
    np.testing.assert_array_equal(fit.at(0.0).mean(X2), T.value(X2))
    np.testing.assert_allclose(fit.at(1e9).mean(X2), fit.mean(X2), atol=1e-8)
    np.testing.assert_allclose(T.ridge(X, Y, 1e12).mean(X2), T.value(X2), atol=1e-9)


def test_stopped_in_one_call() -> None:
    """`at` and `after` of the tangent itself are those of its ridge regression."""
    fit = T.ridge(X, Y, STRENGTH)
    at, after = T.at(X, Y, 2.0, STRENGTH), T.after(X, Y, 20, 0.01, STRENGTH)
    np.testing.assert_array_equal(at.mean(X2), fit.at(2.0).mean(X2))
    np.testing.assert_array_equal(flat(after.params), flat(fit.after(20, 0.01).params))
    assert not np.allclose(after.mean(X2), T.after(X, Y, 20, 0.01).mean(X2), rtol=1e-6)


def test_trained_by_optax() -> None:
    """The module of the linearized model, by `finite.train`; and without its start."""
    steps, rate = 50, 0.01
    module = T.linear.module()
    lnk.finite.train(module, X, Y, optax.sgd(rate), steps)
    fit = T.ridge(X, Y).after(steps, rate)
    np.testing.assert_allclose(flat(module.params), flat(fit.params), atol=1e-12)
    without = T.linear_without_start(fit.params, X2)
    np.testing.assert_allclose(without, fit.mean(X2) - T.value(X2), atol=1e-12)


def nonlinear_optimum(strength: float) -> np.ndarray:
    """θ − θ₀ at the minimum of the regularised loss of the network itself, by Newton's method."""
    with jax.enable_x64(True):
        start, tree = ravel_pytree(jax.tree.map(jnp.asarray, PARAMS))

        def loss(theta: Any) -> Any:
            squares = jnp.sum((mlp(tree(theta), jnp.asarray(X)) - Y) ** 2)
            return 0.5 * squares + 0.5 * strength * jnp.sum((theta - start) ** 2)

        slope, curvature = jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))
        theta = start
        for _ in range(12):
            theta = theta - jnp.linalg.solve(curvature(theta), slope(theta))
        assert float(jnp.linalg.norm(slope(theta))) < 1e-9
        return np.asarray(theta - start)


def test_the_gap_to_the_network_and_the_ball() -> None:
    """The gap between the optima falls like λ⁻², and the optimum stays in its ball."""
    strengths = [1e4, 1e5]
    assert strengths[0] > 50 * T.spectrum(X).values[0]
    gaps = []
    for strength in strengths:
        moved, fit = nonlinear_optimum(strength), T.ridge(X, Y, strength)
        gaps.append(float(np.linalg.norm(moved - flat(fit.change))))
        assert np.linalg.norm(moved) <= math.sqrt(R @ R / strength)  # √(2 R̃(θ₀)/λ), R̃ = |r|²/2
        assert fit.distance <= np.linalg.norm(J.T @ R) / strength
    slope = math.log(gaps[1] / gaps[0]) / math.log(strengths[1] / strengths[0])
    assert abs(slope + 2) < 0.02


def test_blocks_obey_weyl() -> None:
    blocks = {name: block.reshape(18, 18) for name, block in T.blocks(X).items()}
    ends = [np.linalg.eigvalsh(block)[[0, -1]] for block in blocks.values()]
    whole = T.spectrum(X).values
    assert whole[-1] >= sum(end[0] for end in ends) - 1e-12
    assert whole[0] <= sum(end[1] for end in ends) + 1e-12


def test_a_wide_twin_approaches_the_posterior() -> None:
    """|ridge of twins without their start − posterior| falls about like 1/√width."""
    arch, y = lnk.mlp(hidden=1, b_std=0.3), np.sin(X[:, 0])
    expected = lnk.posterior(arch, X, y, noise=0.1).mean(X2)
    errors = []
    for width in (64, 4096):
        squares = []
        for seed in range(4):
            t = lnk.tangent(lnk.finite.network(arch, 3, width=width, rngs=seed))
            fit = t.ridge(X, y + t.value(X), 0.1)  # the targets of a network that starts at 0
            squares.append(np.mean((fit.mean(X2) - t.value(X2) - expected) ** 2))
        errors.append(math.sqrt(float(np.mean(squares))))
    assert 3 < errors[0] / errors[1] < 20  # √(4096/64) = 8, from four networks


def test_float32_models_are_told_from_singular_in_their_own_precision() -> None:
    x = np.concatenate([X, X[:1] + 1e-5])
    network = lnk.finite.network(lnk.mlp(hidden=1), 3, width=64, rngs=0)
    fit = lnk.tangent(network).ridge(x, x[:, 0])
    with pytest.raises(lnk.errors.InputError, match="which float32 cannot tell from 0"):
        fit.mean(X2)
    assert np.isfinite(fit.at(10.0).mean(X2)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: T.ridge(X, Y, -1.0), "strength: expected a number, at least 0"),
        (lambda: T.ridge(X, Y[:, 0]), "y: expected as many outputs as the model has, 2"),
        (lambda: T.ridge(X, Y[:3]), "y: expected one target per point"),
        (lambda: T.ridge(X, Y).at(-1), "t: expected a time"),
        (lambda: T.ridge(X, Y).after(2.5, 0.1), "steps: expected an integer"),
        (lambda: T.ridge(X, Y).after(5, 10.0), "learning_rate: expected less than 2/λ_max"),
        (lambda: T.ridge(np.repeat(X, 2, 0), np.repeat(Y, 2, 0)).params, "strength: expected more"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        call()
