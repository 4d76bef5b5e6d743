r"""The activations without homogeneity as functions: $\phi(0)$, and $\phi(u) - \phi(0)$ without a cancellation.

Where the inputs are short, $\phi$ is nearly constant, and what is left behind a LayerNorm is the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial, singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.arch.activate import Activate, apply_to_each
from lnkernel.arch.node import Node
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
from lnkernel.check.plain import known, known_zero
from lnkernel.errors import ArchitectureError
from lnkernel.evaluate.float64 import namespace

FEW = 1 << 16  # numbers
PIECE = 1 << 12


class Function(NamedTuple):
    """phi(u) = at_zero + rest(u).

    Between its kinks it is analytic, near a kink and near 0 within a distance of about `scale`, and elsewhere
    within a distance that grows in proportion; a `scale` of inf says that it is a polynomial there. Panels whose
    ends are in this `ratio` resolve it: the smaller, the closer its singularities are to the real line far out.
    """

    at_zero: Any
    rest: Callable[[Array], Array]
    kinks: tuple[Any, ...] = ()
    scale: Any = 1.0
    ratio: float = 4.0
    derivative: Callable[[Array], Array] | None = None  # None: as JAX finds it

    def __call__(self, u: Array) -> Array:
        return self.at_zero + self.rest(u)

    def with_slope(self, u: Array) -> tuple[Array, Array]:
        """phi - phi(0) and phi'."""
        if self.derivative is not None:
            return self.rest(u), self.derivative(u)
        return jax.jvp(self.rest, (u,), (jnp.ones_like(u),))

    @property
    def vanishes(self) -> bool:
        """Whether phi(0) = 0, known before any number is."""
        return known_zero(self.at_zero)


@singledispatch
def function_of(layer: Node) -> Function:
    """The function that an activation is, of arrays of NumPy or JAX."""
    raise ArchitectureError(
        type(layer).__name__,
        "",
        "its function is not known",
        "Register one in lnkernel.evaluate.float64.functions",
    )


@function_of.register
def _(layer: Erf) -> Function:
    return Function(
        0.0,
        lambda u: erf(u),
        derivative=lambda u: 2 / math.sqrt(math.pi) * namespace.of(u).exp(-u * u),
    )


@function_of.register
def _(layer: Gelu) -> Function:
    if layer.approximate:
        factor = math.sqrt(2 / math.pi)

        def rest(u: Array) -> Array:
            return 0.5 * u * (1 + _tanh(factor * (u + 0.044715 * (u * u * u))))

        def derivative(u: Array) -> Array:
            inner = factor * (u + 0.044715 * (u * u * u))
            slope = factor * (1 + 3 * 0.044715 * (u * u))
            return 0.5 * (1 + _tanh(inner)) + 0.5 * u * (_sech_square(inner) * slope)

        # Its poles at a + ib lie on b² = 7.46 + a²/3, where the cubic is imaginary: not above 0 alone.
        return Function(0.0, rest, scale=2.0, ratio=2.0, derivative=derivative)
    return Function(
        0.0,
        lambda u: u * normal_below(u),
        derivative=lambda u: normal_below(u) + u * density(u),
    )


@function_of.register
def _(layer: Silu) -> Function:
    def derivative(u: Array) -> Array:
        v = layer.beta * u
        return _expit(v) * (1 + v * _expit(-v))

    return Function(
        0.0,
        lambda u: u * _expit(layer.beta * u),
        scale=_width(layer.beta),
        derivative=derivative,
    )


@function_of.register
def _(layer: Tanh) -> Function:
    return Function(0.0, _tanh, derivative=_sech_square)


@function_of.register
def _(layer: Sigmoid) -> Function:
    return Function(
        0.5, lambda u: 0.5 * _tanh(0.5 * u), derivative=lambda u: 0.25 * _sech_square(0.5 * u)
    )


@function_of.register
def _(layer: Softplus) -> Function:
    """log((1 + e^v)/2) = v/2 + log cosh(v/2); far out without the difference of large numbers."""

    def rest(u: Array) -> Array:
        half, xp = 0.5 * layer.beta * u, namespace.of(u)
        size = xp.abs(half)
        near = half + xp.log1p(2 * xp.square(xp.sinh(0.5 * half)))
        far = (half + size) + (xp.log1p(xp.exp(-2 * size)) - math.log(2))
        return xp.where(size < 0.5, near, far) / layer.beta

    return Function(
        math.log(2) / layer.beta,
        rest,
        scale=_width(layer.beta),
        derivative=lambda u: _expit(layer.beta * u),
    )


@function_of.register
def _(layer: Sin) -> Function:
    """sin(v + c) - sin c = 2 cos(v/2 + c) sin(v/2)."""

    def rest(u: Array) -> Array:
        half, xp = 0.5 * layer.omega * u, namespace.of(u)
        return 2 * xp.cos(half + layer.phase) * xp.sin(half)

    phase = layer.phase
    return Function(
        0.0 if known_zero(phase) else namespace.of(phase).sin(phase),
        rest,
        derivative=lambda u: layer.omega * namespace.of(u).cos(layer.omega * u + phase),
    )


@function_of.register
def _(layer: Cos) -> Function:
    return Function(
        1.0,
        lambda u: -2 * namespace.of(u).sin(0.5 * layer.omega * u) ** 2,
        derivative=lambda u: -layer.omega * namespace.of(u).sin(layer.omega * u),
    )


@function_of.register
def _(layer: Gaussian) -> Function:
    return Function(
        1.0,
        lambda u: namespace.of(u).expm1(-u * u),
        derivative=lambda u: -2 * u * namespace.of(u).exp(-u * u),
    )


def _tanh(u: Array) -> Array:
    return namespace.of(u).tanh(u)


def _sech_square(u: Array) -> Array:
    r"""$1/\cosh^2$, of which nothing cancels or overflows."""
    xp = namespace.of(u)
    once = xp.exp(-2 * xp.abs(u))
    return 4 * once / (1 + once) ** 2


def normal_below(u: Array) -> Array:
    """The probability that a unit Gaussian is below u."""
    return 0.5 * _erfc(-u * math.sqrt(0.5))


def density(u: Array) -> Array:
    """The density of a unit Gaussian."""
    return namespace.of(u).exp(-0.5 * u * u) / math.sqrt(2 * math.pi)


def erf(u: Array) -> Array:
    """The error function."""
    return _of_library("erf", u)


def _erfc(u: Array) -> Array:
    return _of_library("erfc", u)


def _expit(v: Array) -> Array:
    r"""$1/(1 + e^{-v})$, of which nothing overflows."""
    if namespace.of(v) is not np:
        return jax.scipy.special.expit(v)
    small = np.exp(-np.abs(v))
    return np.where(v >= 0, 1.0, small) / (1 + small)


def _of_library(name: str, u: Array) -> Array:
    """A special function of JAX's or of NumPy's numbers. SciPy takes a while to import, so few go through Python's."""
    made: Any
    if namespace.of(u) is not np:
        made = getattr(jax.scipy.special, name)(u)
    elif np.size(u) <= FEW:
        made = np.asarray(np.frompyfunc(getattr(math, name), 1, 1)(u), np.float64)
    else:
        from scipy import special

        made = getattr(special, name)(u)
    value: Array = made
    return value


def _width(beta: Any) -> Any:
    """The poles of 1/(1 + exp(-beta u)) nearest to 0 lie at a distance of pi/|beta|."""
    return math.inf if known_zero(beta) else 2.0 / abs(beta)


# ---------------------------------------------------------------- with kinks


@function_of.register
def _(layer: Elu) -> Function:
    return Function(
        0.0,
        lambda u: _exponential_unit(layer.alpha, u),
        (0.0,),
        scale=4.0,
        derivative=lambda u: _exponential_slope(layer.alpha, u),
    )


@function_of.register
def _(layer: Selu) -> Function:
    return Function(
        0.0,
        lambda u: layer.scale * _exponential_unit(layer.alpha, u),
        (0.0,),
        scale=4.0,
        derivative=lambda u: layer.scale * _exponential_slope(layer.alpha, u),
    )


def _exponential_unit(alpha: Any, u: Array) -> Array:
    below, xp = u <= 0, namespace.of(u)
    return xp.where(below, alpha * xp.expm1(xp.where(below, u, 0.0)), u)


def _exponential_slope(alpha: Any, u: Array) -> Array:
    below, xp = u <= 0, namespace.of(u)
    return xp.where(below, alpha * xp.exp(xp.where(below, u, 0.0)), 1.0)


@function_of.register
def _(layer: Clip) -> Function:
    """Shifted by phi(0), the bounds are those of the difference."""
    start: Any = 0.0
    if not (known(layer.low) and known(layer.high) and layer.low <= 0 <= layer.high):
        start = namespace.of(layer.low, layer.high).clip(0.0, layer.low, layer.high)
    rest = partial(_between, low=layer.low, high=layer.high, start=start)
    return Function(
        start,
        rest,
        (layer.low, layer.high),
        scale=math.inf,
        derivative=lambda u: namespace.of(u).where((u > layer.low) & (u < layer.high), 1.0, 0.0),
    )


def _between(u: Array, low: Any, high: Any, start: Any) -> Array:
    xp = namespace.of(u)
    return xp.where(u < low, low - start, xp.where(u > high, high - start, u - start))


@function_of.register
def _(layer: Activate) -> Function:
    derivative = layer.derivative or _slope_of(layer.fn)
    start, _ = (float(_program_of(each)(np.zeros(PIECE))[0]) for each in (layer.fn, derivative))
    return Function(
        start,
        lambda u: _of_user(layer.fn, u) - start,
        layer.kinks,
        derivative=partial(_of_user, derivative),
    )


@lru_cache(maxsize=64)
def _slope_of(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative, as JAX finds it."""
    return lambda u: jax.jvp(fn, (u,), (jnp.ones_like(u),))[1]


def _of_user(fn: Callable[[Any], Any], u: Array) -> Array:
    """A function of the user's. NumPy's numbers go through one program, some at a time: each shape would be another."""
    if namespace.of(u) is not np:
        return apply_to_each(fn, u)
    flat = np.ravel(u)
    made: Any = np.empty(flat.shape)
    program = _program_of(fn)
    for start in range(0, flat.size, PIECE):
        some = flat[start : start + PIECE]
        made[start : start + PIECE] = program(np.resize(some, PIECE))[: some.size]
    return made.reshape(np.shape(u))


@lru_cache(maxsize=64)
def _program_of(fn: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Compiled once, wherever it is asked for: `jax.jit` would compile it anew inside of `ensure_compile_time_eval`,
    and not compute it inside of the user's own `jax.jit`."""
    with jax.enable_x64(True):
        program = jax.jit(jax.vmap(fn)).lower(jax.ShapeDtypeStruct((PIECE,), np.float64)).compile()

    def run(numbers: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(program(numbers))

    return run
