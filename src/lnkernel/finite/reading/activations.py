"""The activations of Flax, JAX and Python that are layers of an architecture, and the twins' own."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from lnkernel.arch import Abs, Homogeneous, Identity, LeakyRelu, Node, RectifiedPower, Relu
from lnkernel.finite.modules import HomogeneousActivation, LeakyReluActivation
from lnkernel.finite.reading.functions import register_function
from lnkernel.finite.reading.registry import Found, Reading, read_module


def _leaky_relu(negative_slope: float = 0.01) -> Node:
    return LeakyRelu(float(negative_slope))


register_function(jax.nn.relu, Relu(), name="nnx.relu")
register_function(
    jax.nn.leaky_relu, _leaky_relu(), with_keywords=_leaky_relu, name="nnx.leaky_relu"
)
register_function(jnp.abs, Abs(), name="jnp.abs")
register_function(jnp.absolute, Abs())
register_function(jax.lax.abs, Abs())
register_function(abs, Abs())
register_function(jnp.square, Homogeneous(2, 1.0, 1.0), name="jnp.square")
register_function(jax.nn.identity, Identity(), name="nnx.identity")


@read_module.register
def _(part: LeakyReluActivation, reading: Reading) -> Found:
    return LeakyRelu(part.slope), reading.width


@read_module.register
def _(part: HomogeneousActivation, reading: Reading) -> Found:
    if part.a == 1 and part.b == 0:
        return RectifiedPower(part.degree), reading.width
    return Homogeneous(part.degree, part.a, part.b), reading.width
