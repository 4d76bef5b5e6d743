r"""The linearized model $\bar f(\theta, x) = f(\theta_0, x) + J(x)\,(\theta - \theta_0)$."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from lnkernel.precision import inside_jit, is_traced
from lnkernel.tangents import products
from lnkernel.tangents.differential import Differential, PerInput, one_or_all
from lnkernel.tangents.function import Function
from lnkernel.tangents.inputs import as_direction
from lnkernel.tangents.model import Tree
from lnkernel.types import Inputs


@dataclass(frozen=True, eq=False)
class Linearized:
    r"""$\bar f(\theta, x) = f(\theta_0, x) + J(x)\,(\theta - \theta_0)$, or without $f(\theta_0, x)$.

    `Tangent.linear` and `Tangent.linear_without_start` are these. It is a function of parameters and
    inputs, which can be differentiated and compiled; `module()` is a module that `finite.train` trains.
    """

    _tangent: Differential
    with_start: bool

    def __call__(self, params: Tree, x: Inputs) -> PerInput | Float[Array, "n ..."]:
        """At these parameters, the chosen ones or all of the model's: (n,), or (n, k)."""
        start = self._tangent.params
        chosen = self._tangent.chosen(params)
        if is_traced(chosen, x) or inside_jit():
            made = _at(self._tangent.function, self.with_start, chosen, jnp.asarray(x))
            return made[:, 0] if made.shape[1] == 1 else made
        with self._tangent.open(("x", x)) as (function, (points,)):
            given = as_direction("params", chosen, start)
            change = jax.tree.map(jnp.subtract, given, start)
            batch = self._tangent.batch_size
            out = products.jvp(function, points, change, batch)
            if self.with_start:
                out = out + products.values(function, points, batch)
            return one_or_all(np.asarray(out))

    def module(self) -> LinearizedModule:
        """A new module of NNX, (n, ...) to (n, k), whose `nnx.Param`s start at θ₀."""
        return LinearizedModule(self._tangent.function, self.with_start)


class LinearizedModule(nnx.Module):
    """A linearized model as a module; its parameters are in `weights`, in the order of the leaves."""

    def __init__(self, function: Function, with_start: bool):
        leaves, self.tree = jax.tree.flatten(function.params)
        others, self.rest_tree = jax.tree.flatten(function.rest)
        self.weights = nnx.List([nnx.Param(jnp.array(leaf)) for leaf in leaves])
        self.start = nnx.List([nnx.Variable(leaf) for leaf in leaves])
        self.rest = nnx.List([nnx.Variable(leaf) for leaf in others])
        self.apply, self.with_start = function.apply, with_start

    def __call__(self, x: Float[Array, "n ..."]) -> Float[Array, "n k"]:
        start, rest = (
            jax.tree.unflatten(tree, [variable[...] for variable in variables])
            for tree, variables in ((self.tree, self.start), (self.rest_tree, self.rest))
        )
        function = Function(self.apply, start, rest, 0)
        weights = jax.tree.unflatten(self.tree, [weight[...] for weight in self.weights])
        return _at(function, self.with_start, weights, x)

    @property
    def params(self) -> Tree:
        """The parameters as they are now, a tree like `Tangent.params`."""
        return jax.tree.unflatten(self.tree, [weight[...] for weight in self.weights])


def _at(function: Function, with_start: bool, params: Any, x: Array) -> Array:
    change = jax.tree.map(jnp.subtract, params, function.params)
    out, along = jax.jvp(lambda p: function.on(p, x), (function.params,), (change,))
    return out + along if with_start else along
