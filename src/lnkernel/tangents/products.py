r"""Products with the Jacobian, without the Jacobian: $J v$ forwards, $J^T c$ backwards.

They go over the inputs in batches, so that the memory is that of one batch's activations, of the
parameters and of the result, whatever the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lnkernel.tangents.function import Function, evaluate
from lnkernel.tangents.inputs import demand_finite
from lnkernel.tangents.model import Tree

Rows = Float[np.ndarray, "n outputs"]


def values(function: Function, x: np.ndarray, batch: int) -> Rows:
    """f(x), in batches."""
    return demand_finite(_over_batches(lambda some: evaluate(function, some), x, batch), "outputs")


def jvp(function: Function, x: np.ndarray, v: Tree, batch: int) -> Rows:
    """J(x) v."""
    return demand_finite(_over_batches(lambda some: _jvp(function, some, v), x, batch), "slopes")


def vjp(function: Function, x: np.ndarray, c: Rows, batch: int) -> Tree:
    """J(x)ᵀ c, a tree like the parameters."""
    total = None
    for start, some in batches(x, batch):
        given = np.zeros((len(some), function.outputs), x.dtype)
        rows = c[start : start + len(some)]
        given[: len(rows)] = rows  # the inputs that fill up the last batch count nothing
        part = _vjp(function, some, given)
        total = part if total is None else _add(total, part)
    return total


def features(function: Function, x: np.ndarray, basis: Tree, batch: int) -> np.ndarray:
    """J(x) V, forwards, for the directions along the first axis of every leaf of `basis`:
    (n, outputs, directions)."""
    made = _over_batches(lambda some: _features(function, some, basis), x, batch)
    return demand_finite(made, "slopes")


def matvec(function: Function, x: np.ndarray, batch: int) -> Callable[[Rows], Rows]:
    """c ↦ J (Jᵀ c)."""

    def times(c: Rows) -> Rows:
        return jvp(function, x, vjp(function, x, c, batch), batch)

    return times


def batches(x: np.ndarray, batch: int) -> Iterator[tuple[int, np.ndarray]]:
    """The same number of inputs at a time, with the number of the first. Where fewer are left, the last one is
    repeated, so that one program serves all."""
    size = -(-len(x) // -(-len(x) // batch))
    for start in range(0, len(x), size):
        yield start, x[np.minimum(np.arange(start, start + size), len(x) - 1)]


def _over_batches(
    f: Callable[[np.ndarray], Array], x: np.ndarray, batch: int
) -> Float[np.ndarray, "n ..."]:
    made = [np.asarray(f(some)) for _, some in batches(x, batch)]
    return np.concatenate(made)[: len(x)]


@jax.jit
def _jvp(function: Function, x: Array, v: Tree) -> Array:
    return jax.jvp(lambda params: function.on(params, x), (function.params,), (v,))[1]


@jax.jit
def _vjp(function: Function, x: Array, c: Array) -> Tree:
    out, back = jax.vjp(lambda params: function.on(params, x), function.params)
    return back(c.astype(out.dtype))[0]


@jax.jit
def _features(function: Function, x: Array, basis: Tree) -> Array:
    _, forward = jax.linearize(lambda params: function.on(params, x), function.params)
    return jnp.moveaxis(jax.vmap(forward)(basis), 0, -1)


@jax.jit
def _add(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)
