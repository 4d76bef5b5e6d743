"""Square root, division and polynomials of the numbers of a pair.

A whole network should become one loop over the pairs, which vectorises. XLA cuts it where an
operation that it holds for expensive (divide, sqrt, every transcendental function) has
more than one user, and evaluates what the pieces share again in each: so here the
result of each such operation is used once, by a cheap operation. Operations that wait for
one another cost time, and so do coefficients that have to be loaded: hence polynomials are
evaluated as four short chains.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import cheb2poly

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.namespace import differentiable


def root(x: Array) -> Array:
    """sqrt(x) for x >= 0; its derivative at 0 is taken as 0."""
    return half_root(4.0 * x)


@differentiable
def half_root(x: Array) -> Array:
    """sqrt(x)/2 for x >= 0; its derivative at 0 is taken as 0."""
    return 0.5 * namespace.of(x).sqrt(x)


@half_root.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    value = half_root(x)
    positive = x > 0
    return value, jnp.where(positive, 0.125 / jnp.where(positive, value, 1.0), 0.0) * dx


@differentiable
def divide(x: Array, y: Array) -> Array:
    """x/y for y > 0, and x for y = 0."""
    xp = namespace.of(x, y)
    return xp.where(y > 0, x / xp.where(y > 0, y, 1.0), x)


@divide.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, y), (dx, dy) = primals, tangents
    value = divide(x, y)
    return value, jnp.where(y > 0, (dx - value * dy) / jnp.where(y > 0, y, 1.0), dx)


@differentiable
def computed_once(x: Array) -> Array:
    """x, behind a division by 1 that XLA cannot see through.

    XLA copies additions and multiplications into every loop that uses their result, and divisions into none. A
    derivative has many such loops, each with copies of the network before it, which all have to be compiled.
    """
    is_number = x == x
    return x / jnp.where(is_number, 1.0, 2.0) if namespace.of(x) is jnp else x


@computed_once.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return computed_once(*primals), tangents[0]


def total(terms: list[Array]) -> Array:
    """Their sum, joined in pairs: a short chain of additions, and a small error."""
    while len(terms) > 1:
        pairs = [x + y for x, y in zip(terms[0::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def product_sum(pairs: list[tuple[Array, Array]]) -> Array:
    """Sum of products, as a few short chains side by side: that is fastest."""
    chains = 4 if len(pairs) > 8 else math.isqrt(len(pairs))
    return total([chain_products(pairs[k::chains]) for k in range(chains)])


def chain_products(pairs: list[tuple[Array, Array]]) -> Array:
    """Sum of products, one after the other: a fused multiplication and addition each."""
    products = [x * y for x, y in pairs]
    return sum(products[1:], products[0])


def polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial with these coefficients, lowest first: four interleaved ones in x^4."""
    if len(coefficients) <= 4:
        return _horner(coefficients, x)
    square = x * x
    a, b, c, d = (_horner(coefficients[k::4], square * square) for k in range(4))
    return (a + b * x) + (c + d * x) * square


@lru_cache(maxsize=1)
def _arctangent_coefficients() -> tuple[float, ...]:
    """Those of arctan(t)/t in powers of 2t² - 1; they fall like 3^-k, since the nearest singularity is at t² = -1."""
    places = np.arccos(np.longdouble(-1)) * (np.arange(48) + np.longdouble(0.5)) / 48
    t = np.sqrt((1 + np.cos(places)) / 2)
    waves = np.cos(np.outer(np.arange(24), places))
    series = waves @ (np.arctan(t) / t) / 24
    series[0] /= 2
    return tuple(float(c) for c in cheb2poly(series))


def arctangent_ratio(square: Array) -> Array:
    """arctan(t)/t from t², for t in [-1, 1]."""
    return polynomial(_arctangent_coefficients(), 2 * square - 1)


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = coefficient + value * x
    return value


def divided_difference(coefficients: tuple[float, ...], x: Array, y: Array) -> Array:
    """(p(x) - p(y))/(x - y) of a polynomial p, lowest coefficient first; nothing cancels where all are positive."""
    slope: Any = 0.0
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        slope = slope * x + value
        value = value * y + coefficient
    return slope


def chebyshev(coefficients: Any, x: Array) -> Array:
    """A Chebyshev series on [-1, 1], the even and the odd terms each for themselves.

    That halves the chain of dependent steps. XLA moves a change of shape along such a chain by one
    step in each of its passes, and after 50 passes it complains on the standard error.
    """
    second = 2 * x * x - 1
    even = _recurrence(coefficients[0::2], 2 * second, 1.0, second)
    return even + _recurrence(coefficients[1::2], 2 * second, x, x * (2 * second - 1))


def _recurrence(coefficients: Any, factor: Array, zeroth: Any, first: Array) -> Array:
    r"""$\sum_k c_k f_k$ for functions with $f_{k+1} = \mathrm{factor}\cdot f_k - f_{k-1}$ (Clenshaw 1955)."""
    above: Any = 0.0
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        above, value = value, factor * value - above + coefficient
    return first * value + zeroth * (coefficients[0] - above)
