"""The activations of Flax, JAX and Python that are layers of an architecture, and the twins' own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch import (
    Abs,
    Clip,
    Cos,
    Elu,
    Erf,
    Gelu,
    Homogeneous,
    Identity,
    LeakyRelu,
    Node,
    Polynomial,
    RectifiedPower,
    Relu,
    Scale,
    Selu,
    Shift,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Softplus,
    Step,
    Tanh,
)
from lnkernel.finite.modules import (
    HermiteActivation,
    HomogeneousActivation,
    LeakyReluActivation,
    PolynomialActivation,
    ScaledBy,
    ShiftedBy,
    SmoothActivation,
    StepActivation,
)
from lnkernel.finite.reading.arithmetic import SQUARE, clipped, maximum
from lnkernel.finite.reading.functions import register_function
from lnkernel.finite.reading.registry import Found, Reading, read_module


def _leaky_relu(negative_slope: float = 0.01) -> Node:
    return LeakyRelu(float(negative_slope))


def _elu(alpha: float = 1.0) -> Node:
    return Elu(float(alpha))


def _gelu(approximate: bool = True) -> Node:
    return Gelu(approximate=bool(approximate))


register_function(jax.nn.relu, Relu(), name="nnx.relu")
register_function(jax.nn.gelu, _gelu(), with_keywords=_gelu, name="nnx.gelu")
register_function(jax.nn.silu, Silu(), name="nnx.silu")
register_function(jax.nn.swish, Silu())
register_function(jnp.tanh, Tanh(), name="jnp.tanh")
register_function(jax.nn.tanh, Tanh())
register_function(jax.lax.tanh, Tanh())
register_function(jax.nn.sigmoid, Sigmoid(), name="nnx.sigmoid")
register_function(jax.scipy.special.expit, Sigmoid())
register_function(jax.lax.logistic, Sigmoid())
register_function(jax.nn.softplus, Softplus(), name="nnx.softplus")
register_function(jnp.sin, Sin(), name="jnp.sin")
register_function(jnp.cos, Cos(), name="jnp.cos")
register_function(jax.scipy.special.erf, Erf(), name="jax.scipy.special.erf")
register_function(jax.lax.erf, Erf())
register_function(
    jax.nn.leaky_relu, _leaky_relu(), with_keywords=_leaky_relu, name="nnx.leaky_relu"
)
register_function(jax.nn.elu, _elu(), with_keywords=_elu, name="nnx.elu")
register_function(jax.nn.selu, Selu(), name="nnx.selu")
register_function(jax.nn.hard_tanh, Clip(-1.0, 1.0), name="nnx.hard_tanh")
register_function(jax.nn.relu6, Clip(0.0, 6.0), name="nnx.relu6")
register_function(jnp.sign, Sign(), name="jnp.sign")
register_function(jnp.abs, Abs(), name="jnp.abs")
register_function(jnp.absolute, Abs())
register_function(jax.lax.abs, Abs())
register_function(abs, Abs())
register_function(jnp.square, SQUARE, name="jnp.square")
for _maximum in (jnp.maximum, jax.lax.max, np.maximum):
    register_function(_maximum, None, with_keywords=maximum)
for _clip in (jnp.clip, np.clip):
    register_function(_clip, None, with_keywords=clipped)
register_function(jax.nn.identity, Identity(), name="nnx.identity")


@read_module.register
def _(part: LeakyReluActivation, reading: Reading) -> Found:
    return LeakyRelu(part.slope), reading.width


@read_module.register
def _(part: SmoothActivation, reading: Reading) -> Found:
    return part.layer, reading.width


@read_module.register
def _(part: HermiteActivation, reading: Reading) -> Found:
    return part.layer, reading.width


@read_module.register
def _(part: ScaledBy, reading: Reading) -> Found:
    return Scale(part.factor), reading.width


@read_module.register
def _(part: ShiftedBy, reading: Reading) -> Found:
    return Shift(part.offset), reading.width


@read_module.register
def _(part: PolynomialActivation, reading: Reading) -> Found:
    return Polynomial(part.coefficients), reading.width


@read_module.register
def _(part: StepActivation, reading: Reading) -> Found:
    return Step(), reading.width


@read_module.register
def _(part: HomogeneousActivation, reading: Reading) -> Found:
    if part.a == 1 and part.b == 0:
        return RectifiedPower(part.degree), reading.width
    return Homogeneous(part.degree, part.a, part.b), reading.width
