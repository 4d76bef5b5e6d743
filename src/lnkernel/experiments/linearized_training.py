r"""Binary classification by a network, and by its linearization in the space of functions.

Both are trained by the same steps: cross-entropy, SGD with momentum, the same batches, a rate that
falls linearly to 0. For the linearized network $\theta - \theta_0 = J^T c$ at every step, so that it is
trained through the kernel alone: $f = f_0 + K c$, and a step changes c in the rows of its batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Float64, Int

from lnkernel.tangents.function import Function

MOMENTUM = 0.9
RATE = 0.05  # the paper's, where it is stable
BATCH = 128


class Schedule(NamedTuple):
    """The rows of every batch, and the rate of every step."""

    rows: Int[np.ndarray, "steps batch"]
    rates: Float64[np.ndarray, " steps"]


def schedule(points: int, epochs: int, rate: float, seed: int) -> Schedule:
    """Every epoch visits the points in an order of its own; a rest that fills no batch is left out."""
    draw, size = np.random.default_rng(seed), min(BATCH, points)
    each = [draw.permutation(points)[: points // size * size] for _ in range(epochs)]
    rows = np.concatenate(each).reshape(-1, size)
    return Schedule(rows, rate * (1 - np.arange(len(rows)) / len(rows)))


def stable_rate(largest: float, points: int) -> float:
    """The paper's rate, or that at which a step is 1/L of the linearized loss, if it is smaller.

    The mean cross-entropy has a second derivative of at most λ_max(K)/4n = L.
    """
    return min(RATE, 4 * points / largest)


@jax.jit
def train_network(
    function: Function, x: Array, y: Float[Array, " n"], rows: Array, rates: Array
) -> Any:
    """The parameters after training on the labels y, which are 1 and -1."""

    def loss(params: Any, some: Array) -> Array:
        out = function.apply(params, function.rest, x[some])[:, 0]
        return jnp.mean(jax.nn.softplus(-y[some] * out))

    def step(carry: Any, now: Any) -> tuple[Any, None]:
        (params, velocity), (some, rate) = carry, now
        slope = jax.grad(loss)(params, some)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, slope)
        return (jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity), None

    still = jax.tree.map(jnp.zeros_like, function.params)
    (params, _), _ = jax.lax.scan(step, (function.params, still), (rows, rates))
    return params


@jax.jit
def train_kernel(
    K: Float[Array, "n n"],
    start: Float[Array, " n"],
    y: Float[Array, "tasks n"],
    rows: Array,
    rates: Array,
) -> Float[Array, "tasks n"]:
    """The coefficients c of each task: the linearized network is start + K c."""

    def one(y: Array) -> Array:
        def step(carry: Any, now: Any) -> tuple[Any, None]:
            (c, velocity), (some, rate) = carry, now
            out = start[some] + K[some] @ c
            slope = -y[some] * jax.nn.sigmoid(-y[some] * out) / len(some)
            velocity = (MOMENTUM * velocity).at[some].add(slope)
            return (c - rate * velocity, velocity), None

        still = jnp.zeros_like(y)
        (c, _), _ = jax.lax.scan(step, (still, still), (rows, rates))
        return c

    return jax.lax.map(one, y)


@jax.jit
def outputs(function: Function, params: Any, x: Array) -> Float[Array, " n"]:
    """f(x) with these parameters."""
    return function.apply(params, function.rest, x)[:, 0]
