r"""The largest stable learning rate of plain gradient descent, from the empirical NTK.

Gradient descent on $\frac12\sum (f(x_i) - y_i)^2$ moves the errors at the data by
$-\eta\,\Theta_e\,(f - y)$ a step, with $\Theta_e = J J^T$ the network's own tangent kernel, so it
shrinks them if $\eta < 2/\lambda_{\max}(\Theta_e)$, the rule of `Posterior.max_learning_rate`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.finite.training.program import Learner, TrainingState

ITERATIONS = 100  # the largest eigenvalue stands far above the others


def max_learning_rate(learner: Learner, state: TrainingState, x: Array) -> float | None:
    """2/λ_max for the most sensitive of the networks, or None where it is not finite.

    With mini-batches it is that of the loss which the first batch estimates.
    """
    batches = learner.batches
    largest = np.asarray(_largest_eigenvalues(learner, state, learner.first(x, batches.size)))
    value = float(largest.max()) * batches.points / batches.size
    return 2 / value if np.isfinite(value) and value > 0 else None


@partial(jax.jit, static_argnames="learner")
def _largest_eigenvalues(learner: Learner, state: TrainingState, x: Array) -> Array:
    """λ_max of J Jᵀ by the power method, of each network: (networks,)."""

    def one(network: TrainingState, x: Array) -> Array:
        def outputs(params: Any) -> Array:
            return learner.outputs(params, network.rest, x)[0]

        out, back = jax.vjp(outputs, network.params)

        def apply(v: Array) -> Array:
            return jax.jvp(outputs, (network.params,), back(v))[1]

        def improve(_: int, v: Array) -> Array:
            u = apply(v)
            return u / jnp.linalg.norm(u)

        # the eigenvector of a kernel's largest eigenvalue is a smooth function with a random part
        start = 1 + 0.1 * jax.random.normal(jax.random.key(0), out.shape, out.dtype)
        v = jax.lax.fori_loop(0, ITERATIONS, improve, start / jnp.linalg.norm(start))
        return jnp.linalg.norm(apply(v))

    return jax.vmap(one, (0, learner.data_axis))(state, x)


def plain_rate(learner: Learner, params: Any) -> float | None:
    """The learning rate, if the optimizer is plain gradient descent with a constant one.

    It is recognised by what it does: two steps that are the same multiple of their gradients.
    """
    state = learner.optimizer.init(params)
    rates = []
    for seed in (1, 2):
        slope = _noise(params, seed)
        extra = {"value": jnp.ones(()), "grad": slope, "value_fn": lambda _: jnp.ones(())}
        updates, state = learner.optimizer.update(slope, state, params, **extra)
        pairs = zip(jax.tree.leaves(updates), jax.tree.leaves(slope), strict=True)
        rates.append(np.concatenate([np.ravel(-u / g) for u, g in pairs]))
    both = np.concatenate(rates)
    rate = float(np.median(both))
    return rate if rate > 0 and np.allclose(both, rate, rtol=1e-5, atol=0) else None


def _noise(params: Any, seed: int) -> Any:
    """Gradients of order 1, away from 0."""
    draw = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: jnp.asarray(draw.uniform(1, 2, leaf.shape), leaf.dtype), params
    )
