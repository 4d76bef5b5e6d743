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
from lnkernel.arch.facts import acts_on_positions
from lnkernel.errors import InputError
from lnkernel.finite.build import Network, network
from lnkernel.precision import is_traced, x64_is_on
from lnkernel.types import Points


def initialise(
    arch: Node, rng: jax.Array, input_shape: tuple[int, ...], parameterization: str
) -> tuple[tuple[int, ...], PyTree]:
    """The shape of the output, and parameters as nested dictionaries of arrays."""
    shape = tuple(input_shape)
    _check_shape("input_shape", arch, shape)
    points, *one = (int(size) for size in shape)
    dtype = jnp.float64 if x64_is_on() else jnp.float32
    made = network(arch, _in_dim(one), rngs=rng, parameterization=parameterization, dtype=dtype)
    output = jax.eval_shape(made, jax.ShapeDtypeStruct((1, *one), dtype))
    return (points, output.shape[1]), nnx.to_pure_dict(nnx.state(made, nnx.Param))


def apply(
    arch: Node, params: PyTree, inputs: Points, parameterization: str
) -> Float[jax.Array, "n k"]:
    """The output of the twin with these parameters, in their precision."""
    shape = np.shape(inputs)
    _check_shape("inputs", arch, shape)
    leaves = jax.tree.leaves(params)
    dtype = jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    def made() -> Network:
        one = _in_dim(list(shape[1:]))
        return network(arch, one, rngs=0, parameterization=parameterization, dtype=dtype)

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


def _in_dim(one: list[int]) -> int | tuple[int, ...]:
    """The shape of one input, of a point the number of its coordinates."""
    return one[0] if len(one) == 1 else tuple(one)


def _check_shape(name: str, arch: Node, shape: tuple[Any, ...]) -> None:
    if not all(isinstance(size, Integral) for size in shape):
        _refuse_shape(name, shape)
    if len(shape) != 2 if not acts_on_positions(arch) else len(shape) < 3:
        _refuse_shape(name, shape)


def _refuse_shape(name: str, shape: tuple[Any, ...]) -> None:
    raise InputError(
        name,
        "two axes, (points, dimension), or those of images and sequences where the network acts on positions",
        f"{shape}",
        "For one input write x[None]; for a dense network on images start it with stax.Flatten(), or give "
        "x.reshape(len(x), -1)",
    )
