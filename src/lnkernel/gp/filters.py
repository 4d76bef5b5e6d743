r"""Functions of a symmetric matrix through its eigenvalues: how far training has come, and square roots.

With $A = V \Lambda V^T$, $\varphi(A) = V \varphi(\Lambda) V^T$. Its derivative in the direction $E$ is
$V (F \circ V^T E V) V^T$, where F holds the divided differences of $\varphi$ at pairs of eigenvalues (Daleckii and
Krein 1965); unlike that of the eigenvectors it exists where eigenvalues coincide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.types import Array

CLOSE = 1e-5  # relative distance of eigenvalues up to which the slope between them replaces the quotient
SMALL = 1e-3  # of tλ, below which a slope is summed, because its closed form cancels


class SpectralFunction(Protocol):
    """A function of eigenvalues with one parameter, hashable, because programs are compiled for it."""

    def weights(self, parameter: Any, values: Array) -> Array:
        """φ(λ), of NumPy's or JAX's numbers."""
        ...

    def quotients(self, parameter: Any, values: Array) -> Array:
        """(φ(λ_i) - φ(λ_j))/(λ_i - λ_j) for all pairs of JAX's numbers; φ′ where they coincide."""
        ...


@dataclass(frozen=True)
class Flow:
    r"""$\varphi(\lambda) = (1 - e^{-\lambda t})/\lambda$, and $t$ at $\lambda = 0$."""

    def weights(self, parameter: Any, values: Array) -> Array:
        xp = _namespace(values)
        with np.errstate(over="ignore"):  # a time so long that e^-λt is 0
            return _divided(-xp.expm1(-parameter * values), values, parameter)

    def slope(self, parameter: Any, values: Array) -> Array:
        t, u = parameter, parameter * values
        series = t * t * (-1 / 2 + u / 3 - u * u / 8 + u**3 / 30)
        few = jnp.abs(u) < SMALL
        rest = jnp.where(few, 1.0, values)
        closed = (t * jnp.exp(-t * rest) + jnp.expm1(-t * rest) / rest) / rest
        return jnp.where(few, series, closed)

    def quotients(self, parameter: Any, values: Array) -> Array:
        return _quotients(self.weights(parameter, values), values, partial(self.slope, parameter))


@dataclass(frozen=True)
class Descent:
    r"""$\varphi(\lambda) = (1 - (1 - \eta\lambda)^k)/\lambda$, and $\eta k$ at 0; $\eta$ is the parameter."""

    steps: int

    def weights(self, parameter: Any, values: Array) -> Array:
        xp, steps = _namespace(values), self.steps
        if steps < 2:
            return steps * parameter * xp.ones_like(values)
        rate = parameter * values
        near = xp.where(rate <= 1, rate, 2 - rate)  # |1 - rate| is 1 - near
        arrives = near == 1  # in one step, whose logarithm is that of 0
        with np.errstate(over="ignore"):
            logarithm = float(steps) * xp.log1p(-xp.where(arrives, 0.0, near))
        # 1 - (1 - rate)^k, each case in the form that does not cancel
        overshot = (rate > 1) & (steps % 2 == 1)
        reached = xp.where(overshot, 1 + xp.exp(logarithm), -xp.expm1(logarithm))
        return _divided(xp.where(arrives, 1.0, reached), values, parameter * float(steps))

    def slope(self, parameter: Any, values: Array) -> Array:
        k, u = float(self.steps), parameter * values
        pairs = k * (k - 1) / 2
        series = pairs * (-1 + (k - 2) * u * (2 / 3 - (k - 3) * u / 4))
        few = k * jnp.abs(u) < SMALL
        rest = jnp.where(few, 1.0, values)
        left = 1 - parameter * rest
        power = jnp.abs(left) ** (k - 1) * (jnp.sign(left) if self.steps % 2 == 0 else 1.0)
        closed = (k * parameter * power - self.weights(parameter, rest)) / rest
        return jnp.where(few, parameter * parameter * series, closed)

    def quotients(self, parameter: Any, values: Array) -> Array:
        if self.steps < 2:  # φ is constant
            return jnp.zeros((len(values), len(values)))
        return _quotients(self.weights(parameter, values), values, partial(self.slope, parameter))


@dataclass(frozen=True)
class Root:
    r"""$\sqrt\lambda$, and 0 for eigenvalues that rounding made negative; the parameter is a factor."""

    def weights(self, parameter: Any, values: Array) -> Array:
        xp = _namespace(values)
        return parameter * xp.sqrt(xp.where(values > 0, values, 0.0))

    def quotients(self, parameter: Any, values: Array) -> Array:
        roots = jnp.sqrt(jnp.where(values > 0, values, 0.0))
        both = roots[:, None] + roots[None, :]
        return jnp.where(both > 0, parameter / jnp.where(both > 0, both, 1.0), 0.0)


@dataclass(frozen=True)
class Filter:
    """A spectral function with its parameter: eigenvalues in, weights out."""

    function: SpectralFunction
    parameter: Any

    def __call__(self, values: Array) -> Array:
        return self.function.weights(self.parameter, values)


def gradient_flow(time: Any) -> Filter:
    """What a time of gradient flow makes of each eigenvalue."""
    return Filter(Flow(), time)


def gradient_descent(steps: int, learning_rate: Any) -> Filter:
    """What so many steps of gradient descent make of each eigenvalue."""
    return Filter(Descent(steps), learning_rate)


def symmetric_root(matrix: np.ndarray) -> np.ndarray:
    """The symmetric square root of a positive semi-definite matrix: of all roots the one that is unique."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * Root().weights(1.0, values)) @ vectors.T)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def matrix_function(function: SpectralFunction, parameter: Array, matrix: Array) -> Array:
    """φ(A) of a symmetric matrix, inside a user's transformation; differentiable at all eigenvalues."""
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * function.weights(parameter, values)) @ vectors.T


@matrix_function.defjvp
def _(function: SpectralFunction, primals: Any, tangents: Any) -> tuple[Array, Array]:
    parameter, matrix = primals
    values, vectors = jnp.linalg.eigh(matrix)
    weights, change = jax.jvp(lambda p: function.weights(p, values), (parameter,), (tangents[0],))
    turned = vectors.T @ tangents[1] @ vectors
    inner = function.quotients(parameter, values) * turned + jnp.diag(change)
    return (vectors * weights) @ vectors.T, vectors @ inner @ vectors.T


def _namespace(values: Array) -> Any:
    return jnp if isinstance(values, jax.Array) else np


def _divided(x: Array, values: Array, at_zero: Any) -> Array:
    xp = _namespace(values)
    zero = values == 0
    made: Array = xp.where(zero, at_zero, x / xp.where(zero, 1.0, values))
    return made


def _quotients(weights: Array, values: Array, slope: Any) -> Array:
    first, second = values[:, None], values[None, :]
    gap = first - second
    close = jnp.abs(gap) <= CLOSE * (jnp.abs(first) + jnp.abs(second))
    quotient = (weights[:, None] - weights[None, :]) / jnp.where(close, 1.0, gap)
    return jnp.where(close, slope((first + second) / 2), quotient)
