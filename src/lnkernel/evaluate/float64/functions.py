r"""The activations without homogeneity as functions: $\phi(0)$, and $\phi(u) - \phi(0)$ without a cancellation.

Where the inputs are short, $\phi$ is nearly constant, and what is left behind a LayerNorm is the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lnkernel.arch.activate import Activate, apply_to_each
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.piecewise import Clip, Elu, Selu
from lnkernel.arch.smooth import (
    Cos,
    Erf,
    Gaussian,
    Gelu,
    Sigmoid,
    Silu,
    Sin,
    Softplus,
    Tanh,
)
from lnkernel.check import known, known_zero
from lnkernel.errors import ArchitectureError


class Function(NamedTuple):
    """phi(u) = at_zero + rest(u).

    Between its kinks it is analytic, near a kink and near 0 within a distance of about `scale`, and elsewhere
    within a distance that grows in proportion; a `scale` of inf says that it is a polynomial there.
    """

    at_zero: Any
    rest: Callable[[Array], Array]
    kinks: tuple[Any, ...] = ()
    scale: Any = 1.0
    derivative: Callable[[Array], Array] | None = None  # None: as JAX finds it

    def __call__(self, u: Array) -> Array:
        return self.at_zero + self.rest(u)

    def with_slope(self, u: Array) -> tuple[Array, Array]:
        """phi - phi(0) and phi'."""
        if self.derivative is not None:
            return self.rest(u), self.derivative(u)
        value, slope = jax.jvp(self.rest, (u,), (jnp.ones_like(u),))
        return value, slope

    @property
    def vanishes(self) -> bool:
        """Whether phi(0) = 0, known before any number is."""
        return known_zero(self.at_zero)


@singledispatch
def function_of(layer: Elementwise) -> Function:
    """The function that an activation is, of JAX arrays."""
    raise ArchitectureError(
        type(layer).__name__,
        "",
        "its function is not known",
        "Register one in lnkernel.evaluate.float64.functions",
    )


@function_of.register
def _(layer: Erf) -> Function:
    return Function(0.0, jax.scipy.special.erf)


@function_of.register
def _(layer: Gelu) -> Function:
    if layer.approximate:
        scale = math.sqrt(2 / math.pi)
        return Function(
            0.0, lambda u: 0.5 * u * (1 + jnp.tanh(scale * (u + 0.044715 * (u * u * u))))
        )
    return Function(0.0, lambda u: 0.5 * u * jax.scipy.special.erfc(-u * math.sqrt(0.5)))


@function_of.register
def _(layer: Silu) -> Function:
    return Function(0.0, lambda u: u * jax.nn.sigmoid(layer.beta * u), scale=_width(layer.beta))


@function_of.register
def _(layer: Tanh) -> Function:
    return Function(0.0, jnp.tanh)


@function_of.register
def _(layer: Sigmoid) -> Function:
    return Function(0.5, lambda u: 0.5 * jnp.tanh(0.5 * u))


@function_of.register
def _(layer: Softplus) -> Function:
    """log((1 + e^v)/2) = v/2 + log cosh(v/2)."""

    def rest(u: Array) -> Array:
        half = 0.5 * layer.beta * u
        size = jnp.abs(half)
        log_cosh = jnp.where(
            size < 0.5,
            jnp.log1p(2 * jnp.square(jnp.sinh(0.5 * half))),
            size + jnp.log1p(jnp.exp(-2 * size)) - math.log(2),
        )
        return (half + log_cosh) / layer.beta

    return Function(math.log(2) / layer.beta, rest, scale=_width(layer.beta))


@function_of.register
def _(layer: Sin) -> Function:
    """sin(v + c) - sin c = 2 cos(v/2 + c) sin(v/2)."""

    def rest(u: Array) -> Array:
        half = 0.5 * layer.omega * u
        return 2 * jnp.cos(half + layer.phase) * jnp.sin(half)

    return Function(0.0 if known_zero(layer.phase) else jnp.sin(layer.phase), rest)


@function_of.register
def _(layer: Cos) -> Function:
    return Function(1.0, lambda u: -2 * jnp.square(jnp.sin(0.5 * layer.omega * u)))


@function_of.register
def _(layer: Gaussian) -> Function:
    return Function(1.0, lambda u: jnp.expm1(-u * u))


def _width(beta: Any) -> Any:
    """The poles of 1/(1 + exp(-beta u)) nearest to 0 lie at a distance of pi/|beta|."""
    return math.inf if known_zero(beta) else 2.0 / abs(beta)


# ---------------------------------------------------------------- with kinks


@function_of.register
def _(layer: Elu) -> Function:
    return Function(0.0, lambda u: _exponential_unit(layer.alpha, u), (0.0,), scale=4.0)


@function_of.register
def _(layer: Selu) -> Function:
    return Function(
        0.0, lambda u: layer.scale * _exponential_unit(layer.alpha, u), (0.0,), scale=4.0
    )


def _exponential_unit(alpha: Any, u: Array) -> Array:
    below = u <= 0
    return jnp.where(below, alpha * jnp.expm1(jnp.where(below, u, 0.0)), u)


@function_of.register
def _(layer: Clip) -> Function:
    """Shifted by phi(0), the bounds are those of the difference."""
    start: Any = 0.0
    if not (known(layer.low) and known(layer.high) and layer.low <= 0 <= layer.high):
        start = jnp.clip(0.0, layer.low, layer.high)
    rest = partial(_between, low=layer.low, high=layer.high, start=start)
    return Function(start, rest, (layer.low, layer.high), scale=math.inf)


def _between(u: Array, low: Any, high: Any, start: Any) -> Array:
    return jnp.where(u < low, low - start, jnp.where(u > high, high - start, u - start))


@function_of.register
def _(layer: Activate) -> Function:
    with jax.ensure_compile_time_eval():
        start = float(layer.fn(jnp.zeros(())))
    given = layer.derivative
    return Function(
        start,
        lambda u: apply_to_each(layer.fn, u) - start,
        layer.kinks,
        derivative=None if given is None else partial(apply_to_each, given),
    )
