"""Which layers are trained: the condition number of their kernel at the start, and how training goes."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy
from jax import Array
from jaxtyping import Bool, Float, Float64

from lnkernel.experiments.finetuning_bounds import weyl
from lnkernel.experiments.finetuning_gap import Task, on_all
from lnkernel.tangents.function import Function
from lnkernel.tangents.selection import spell
from lnkernel.tangents.tangent import Tangent

AT_ONCE = 7  # choices that are trained in one program


def choices_of(layers: int, most: int | None = None) -> Bool[np.ndarray, "choices layers"]:
    """All choices of at least one layer; or those of at most `most`, of all but one, and of all.

    >>> choices_of(3).sum(axis=1)
    array([1, 1, 1, 2, 2, 2, 3])
    """
    sizes = [s for s in range(1, layers + 1) if most is None or s <= most or s >= layers - 1]
    found = [pick for size in sizes for pick in combinations(range(layers), size)]
    return np.array([[layer in pick for layer in range(layers)] for pick in found])


def spectra(
    tangent: Tangent, x: np.ndarray, chosen: Bool[np.ndarray, "choices layers"]
) -> dict[str, np.ndarray]:
    """λ_min and λ_max of the kernel of every choice, with Weyl's bounds from the layers alone."""
    blocks = [
        kernel.reshape(int(np.sqrt(kernel.size)), -1).astype(np.float64)
        for kernel in tangent.blocks(x).values()
    ]
    alone = [scipy.linalg.eigvalsh(kernel) for kernel in blocks]
    true, bounds = [], []
    for pick in chosen:
        total = sum(kernel for kernel, inside in zip(blocks, pick, strict=True) if inside)
        values = scipy.linalg.eigvalsh(total)
        true.append((values[0], values[-1]))
        bounds.append(weyl([v for v, inside in zip(alone, pick, strict=True) if inside]))
    rounding = len(blocks[0]) * np.finfo(np.float64).eps * np.array(true)[:, 1]
    return {
        "least": np.array(true)[:, 0],
        "most": np.array(true)[:, 1],
        "rounding": rounding,
        "weyl": np.array(bounds),
    }


def condition(found: dict[str, np.ndarray]) -> Float64[np.ndarray, " choices"]:
    """λ_max/λ_min, infinite where λ_min is not told from 0."""
    least = np.where(found["least"] > found["rounding"], found["least"], np.nan)
    return np.where(np.isnan(least), np.inf, found["most"] / least)


def train_choices(
    tangent: Tangent,
    task: Task,
    chosen: Bool[np.ndarray, "choices layers"],
    rates: Float64[np.ndarray, " choices"],
    steps: int,
    optimizer: str,
) -> dict[str, np.ndarray]:
    """The loss per point and the test accuracy after training each choice of layers, in float32."""
    names = [spell(path[:-1]) for path in tangent.paths]
    layers = list(dict.fromkeys(names))
    where = np.array([layers.index(name) for name in names])
    masks = chosen[:, where].astype(np.float32)  # of every parameter
    x, y, tests = (jnp.asarray(part, jnp.float32) for part in (task.x, task.y, task.tests))
    losses, outputs = [], []
    for start in range(0, len(masks), AT_ONCE):
        some = np.arange(start, start + AT_ONCE) % len(masks)  # always as many: one program for all
        loss, out = _train(
            tangent.function,
            optimizer,
            steps,
            masks[some],
            rates[some].astype(np.float32),
            x,
            y,
            tests,
        )
        losses.append(np.asarray(loss))
        outputs.append(np.asarray(out))
    right = np.concatenate(outputs)[: len(masks)].argmax(-1) == task.labels
    return {
        "loss": np.concatenate(losses)[: len(masks)].astype(np.float64) / len(task.x),
        "accuracy": right.mean(axis=1),
    }


@partial(jax.jit, static_argnames=("optimizer", "steps"))
def _train(
    function: Function,
    optimizer: str,
    steps: int,
    masks: Float[Array, "choices parameters"],
    rates: Float[Array, " choices"],
    x: Array,
    y: Array,
    tests: Array,
) -> tuple[Array, Array]:
    rule = optax.scale_by_adam() if optimizer == "adam" else optax.identity()

    def risk(params: Any) -> Array:
        return 0.5 * jnp.sum(jnp.square(on_all(function, params, x) - y))

    def one(mask: Array, rate: Array) -> tuple[Array, Array]:
        parts = jax.tree.unflatten(jax.tree.structure(function.params), list(mask))

        def step(carry: Any, _: None) -> tuple[Any, None]:
            params, state = carry
            updates, state = rule.update(jax.grad(risk)(params), state)
            moved = jax.tree.map(lambda p, u, m: p - rate * m * u, params, updates, parts)
            return (moved, state), None

        first = function.params, rule.init(function.params)
        (params, _), _ = jax.lax.scan(step, first, None, length=steps)
        return risk(params), on_all(function, params, tests)

    return jax.vmap(one)(masks, rates)
