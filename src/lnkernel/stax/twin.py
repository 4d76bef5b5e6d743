"""`init_fn` and `apply_fn`: the Flax twin of an architecture as two pure functions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float, PyTree

from lnkernel.arch import Node
from lnkernel.errors import InputError
from lnkernel.finite.build import Network, network
from lnkernel.precision import is_traced, x64_is_on
from lnkernel.types import Points


def initialise(
    arch: Node, rng: jax.Array, input_shape: tuple[int, ...], parameterization: str
) -> tuple[tuple[int, ...], PyTree]:
    """The shape of the output, and parameters as nested dictionaries of arrays."""
    shape = tuple(input_shape)
    if len(shape) != 2 or not all(isinstance(size, Integral) for size in shape):
        _refuse_shape("input_shape", shape)
    points, dimension = (int(size) for size in shape)
    dtype = jnp.float64 if x64_is_on() else jnp.float32
    made = network(arch, dimension, rngs=rng, parameterization=parameterization, dtype=dtype)
    output = jax.eval_shape(made, jax.ShapeDtypeStruct((1, dimension), dtype))
    return (points, output.shape[1]), nnx.to_pure_dict(nnx.state(made, nnx.Param))


def apply(
    arch: Node, params: PyTree, inputs: Points, parameterization: str
) -> Float[jax.Array, "n k"]:
    """The output of the twin with these parameters, in their precision."""
    shape = np.shape(inputs)
    if len(shape) != 2:
        _refuse_shape("inputs", shape)
    leaves = jax.tree.leaves(params)
    dtype = jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    def made() -> Network:
        return network(arch, shape[1], rngs=0, parameterization=parameterization, dtype=dtype)

    # only its structure is needed; but a hyperparameter that is being traced is part of that
    twin = made() if is_traced(arch) else nnx.eval_shape(made)
    graph, state, *(rest,) = nnx.split(twin, nnx.Param, ...)
    _check_params(nnx.to_pure_dict(state), params)
    nnx.replace_by_pure_dict(state, params)
    return nnx.merge(graph, state, rest)(inputs)


def _check_params(expected: Any, params: Any) -> None:
    wanted, came = (jax.tree.map(jnp.shape, tree) for tree in (expected, params))
    if wanted != came:
        raise InputError(
            "params",
            f"what init_fn of this network gives for such inputs, of shapes {wanted}",
            f"shapes {came}",
            "Call init_fn(key, inputs.shape) of the same network",
        )


def _refuse_shape(name: str, shape: tuple[Any, ...]) -> None:
    raise InputError(
        name,
        "two axes, (points, dimension)",
        f"{shape}",
        "For one point write x[None, :]; for images x.reshape(len(x), -1)",
    )
