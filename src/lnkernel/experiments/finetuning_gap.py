"""Fine-tuning to the minimum of the regularised loss, beside its linearization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array
from jaxtyping import Float64

from lnkernel.experiments.finetuning_bounds import Proved, ball
from lnkernel.tangents import products
from lnkernel.tangents.function import Function
from lnkernel.tangents.tangent import Tangent

ITERATIONS = 150


class Task(NamedTuple):
    """What a network is fine-tuned on and tested on: the classes are the columns of y."""

    x: np.ndarray
    y: Float64[np.ndarray, "n k"]
    tests: np.ndarray
    labels: np.ndarray


class Descent(NamedTuple):
    """Where L-BFGS from θ₀ arrived."""

    params: Any
    farthest: float  # |θ − θ₀| along the way
    slope: float  # |∇| of the regularised loss at the end


def descend(tangent: Tangent, task: Task, strength: float) -> Descent:
    """A stationary point of ½Σ|f − y|² + strength/2 |θ − θ₀|², by descent from θ₀ in float64."""
    function = tangent.function
    leaves, tree = jax.tree.flatten(function.params)
    start = _flat(leaves)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def as_params(flat: np.ndarray) -> Any:
        parts = np.split(flat, ends)
        return jax.tree.unflatten(
            tree, [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)]
        )

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _regularised(function, as_params(flat), task.x, task.y, strength)
        return float(value), _flat(jax.tree.leaves(slope))

    reached = [0.0]
    found = scipy.optimize.minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda flat: reached.append(float(np.linalg.norm(flat - start))),
        options={"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "gtol": 1e-9, "ftol": 1e-15},
    )
    return Descent(as_params(found.x), max(reached), float(np.linalg.norm(found.jac)))


def compare(
    tangent: Tangent, task: Task, strength: float, prove: Callable[[float], Proved] | None
) -> dict[str, float]:
    """The network and its linearization, both at the minimum for this strength; all distances."""
    with jax.enable_x64(True):
        start = tangent.value(task.x).reshape(task.y.shape)
        risk = 0.5 * float(np.square(start - task.y).sum())
        full, linear = descend(tangent, task, strength), tangent.ridge(task.x, task.y, strength)
        moved = jax.tree.map(np.subtract, full.params, tangent.params)
        apart = jax.tree.map(np.subtract, moved, linear.change)
        # ∇ of the linearized loss at θ*, over λ: item 2 of `finetuning_bounds`
        residual = start + tangent.jvp(task.x, moved).reshape(task.y.shape) - task.y
        pull = tangent.vjp(task.x, residual)
        slope = jax.tree.map(lambda g, d: np.asarray(g) + strength * np.asarray(d), pull, moved)
        linearized = linear.mean(task.tests)
    outputs = values_at(tangent, full.params, task.tests)
    gaps = np.linalg.norm(outputs - linearized, axis=1)
    found = {
        "strength": strength,
        "risk at the start": risk,
        "distance": norm(moved),
        "distance along the way": full.farthest,
        "ball": ball(risk, strength),
        "gap": norm(apart),
        "gap, proved after training": norm(slope) / strength,
        "slope left": full.slope / strength,
        "outputs": float(np.linalg.norm(outputs, axis=1).mean()),
        "gap of outputs": float(gaps.mean()),
        "largest gap of outputs": float(gaps.max()),
        "accuracy": float((outputs.argmax(1) == task.labels).mean()),
        "accuracy, linearized": float((linearized.argmax(1) == task.labels).mean()),
    }
    return found | _proved(tangent, task, prove, strength)


def _proved(
    tangent: Tangent, task: Task, prove: Callable[[float], Proved] | None, strength: float
) -> dict[str, float]:
    if prove is None:
        return dict.fromkeys(("gap, proved before training", "gap of outputs, proved"), np.nan)
    bounds = prove(strength)
    own = np.sqrt([np.linalg.norm(part, 2) for part in tangent.diagonal(task.tests)])
    return {
        "gap, proved before training": bounds.change,
        "gap of outputs, proved": bounds.outputs(own),
    }


def norm(tree: Any) -> float:
    """The Euclidean length of all leaves together."""
    return float(np.linalg.norm(_flat(jax.tree.leaves(tree))))


def _flat(leaves: list[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in leaves])


@jax.jit
def _regularised(function: Function, params: Any, x: Array, y: Array, strength: Array) -> Any:
    def loss(params: Any) -> Array:
        change = jax.tree.map(jnp.subtract, params, function.params)
        ridge = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(change))
        return 0.5 * jnp.sum(jnp.square(on_all(function, params, x) - y)) + strength / 2 * ridge

    return jax.value_and_grad(loss)(params)


def values_at(tangent: Tangent, params: Any, x: np.ndarray) -> Float64[np.ndarray, "n k"]:
    """f with other parameters, by the program that the tangent has for its own."""
    with tangent.open(("x", x)) as (function, (points,)):
        moved = jax.tree.map(jnp.asarray, params)
        return products.values(replace(function, params=moved), points, tangent.batch_size)


def on_all(function: Function, params: Any, x: Array) -> Array:
    """f of all inputs in one call of the network, which is many times as fast as one by one."""
    return function.apply(params, function.rest, x).reshape(len(x), -1)
