"""Any Flax module as a pure function of its trained parameters and of one input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from lnkernel.check import as_points
from lnkernel.errors import InputError
from lnkernel.finite.training.arguments import check_module
from lnkernel.finite.training.data import convert
from lnkernel.precision import inside_jit, is_traced
from lnkernel.types import Inputs


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["params", "rest"],
    meta_fields=["graph", "outputs"],
)
@dataclass(frozen=True)
class Function:
    """A network's output at one input, as a function of the trained parameters."""

    graph: Any
    params: Any  # what is trained: every `nnx.Param`
    rest: Any  # all other variables
    outputs: int

    def merge(self, params: Any) -> nnx.Module:
        """The network with these parameters, a new one in every call."""
        made: nnx.Module = nnx.merge(self.graph, params, self.rest, copy=True)
        return made

    def __call__(self, params: Any, x: Float[Array, ...]) -> Float[Array, " outputs"]:
        """f(x) of one input, as a vector: (outputs,)."""
        return jnp.ravel(self.merge(params)(x[None]))

    def on(self, params: Any, x: Float[Array, "n ..."]) -> Float[Array, "n outputs"]:
        """f of each of the inputs on its own: (n, outputs)."""
        return jax.vmap(self, (None, 0))(params, x)

    def jacobian(self, x: Float[Array, "n ..."]) -> list[Piece]:
        """The derivatives at every input, in one piece for every parameter."""
        leaves = jax.tree.leaves(jax.vmap(jax.jacrev(self), (None, 0))(self.params, x))
        return [Piece(leaf, None) for leaf in leaves]


class Piece(NamedTuple):
    """A part of the Jacobian at some inputs: the outer product of the two, or `slopes` alone."""

    slopes: Float[Array, "n outputs ..."]
    features: Float[Array, "n features"] | None


@contextmanager
def open_function(
    network: nnx.Module, *inputs: tuple[str, Inputs]
) -> Iterator[tuple[Function, list[np.ndarray]]]:
    """The network as a function, and the named inputs in its precision, which holds in this scope.

    The precision is that of the parameters, whatever JAX's setting: float64 if one of them is, and
    float32 otherwise.
    """
    check_module(network)
    graph, params, *(rest,) = nnx.split(network, nnx.Param, ...)
    if is_traced(params, inputs) or inside_jit():
        raise InputError(
            "network",
            "a call outside of jax.jit, jax.grad and jax.vmap",
            "a call inside of one of them",
            "Call it outside of them: the matrix is computed in tiles, by compiled programs",
        )
    leaves = jax.tree.leaves(params)
    if not leaves:
        raise InputError(
            "network",
            "at least one trained parameter, an nnx.Param",
            f"{type(network).__name__} without any",
            "Make its parameters variables of type flax.nnx.Param",
        )
    dtype = jnp.result_type(*leaves)
    with jax.enable_x64(dtype == np.float64):
        given = [_in_precision(name, x, dtype) for name, x in inputs]
        sizes = [
            _outputs(Function(graph, params, rest, 0), name, x)
            for (name, _), x in zip(inputs, given, strict=True)
        ]
        yield Function(graph, params, rest, sizes[0]), given


def _in_precision(name: str, x: Inputs, dtype: Any) -> Float[np.ndarray, "n ..."]:
    """Inputs of any shape (n, ...) in the network's precision, checked."""
    shape = np.shape(x)
    flat = np.reshape(x, (shape[0], -1)) if len(shape) > 2 and 0 not in shape else x
    points = np.asarray(as_points(name, flat))
    return convert(name, points, dtype).reshape(shape)


def _outputs(function: Function, name: str, x: np.ndarray) -> int:
    """The number of the network's outputs for such inputs."""
    try:
        made = evaluate.eval_shape(function, x[:1])
    except (TypeError, ValueError) as problem:
        raise InputError(
            name,
            "inputs that the network accepts",
            f"shape {x.shape}, at which it raises {type(problem).__name__}: {problem}",
            "Give the points the dimension that the network was built for",
        ) from problem
    return int(made.shape[1])


@jax.jit
def evaluate(function: Function, x: Float[Array, "n ..."]) -> Float[Array, "n outputs"]:
    """f of each of the inputs. Its trace is kept, so that a shape costs little."""
    return function.on(function.params, x)
