"""Square root and division from multiplications alone, for the numbers of a pair.

XLA refuses to fuse an operation it holds for expensive (divide, sqrt, every
transcendental function) into more than one consumer: it then cuts the kernel of a pair
into a dozen loops over memory, and evaluates shared parts again in each. Newton's
iteration from a bit pattern is cheap in its eyes; so the whole network stays one loop,
which vectorises. Long chains of operations that wait for one another would be what costs
time there, hence steps of high order. All are accurate to about one unit in the last place.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Array = Any


def _bits(x: Array) -> Array:
    return lax.bitcast_convert_type(x, jnp.int64)


def _floats(bits: Array) -> Array:
    return lax.bitcast_convert_type(bits, jnp.float64)


@jax.custom_jvp
def root(x: Array) -> Array:
    """sqrt(x) for x >= 0; its derivative at 0 is taken as 0."""
    # of 0 the inverse root would be so large that its square overflows
    start = _bits(jnp.maximum(x, 1e-300))
    guess = _floats(0x5FE6EB50C7B537A9 - lax.shift_right_logical(start, jnp.int64(1)))
    error = 1.0 - (x * guess) * guess  # of 1/sqrt(x), squared: 7e-2
    guess = guess + (guess * error) * _root_series(error)
    near = x * guess
    error = 1.0 - near * guess  # 1e-5
    return near + (near * error) * _root_series(error)


def _root_series(error: Array) -> Array:
    """((1 - e)^(-1/2) - 1)/e up to e^2: four times the digits in one step."""
    return (0.5 + 0.375 * error) + 0.3125 * (error * error)


@root.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    value = root(x)
    positive = x > 0
    return value, jnp.where(positive, 0.5 / jnp.where(positive, value, 1.0), 0.0) * dx


@jax.custom_jvp
def divide(x: Array, y: Array) -> Array:
    """x/y for y > 0 (in the normal range of float64), and x for y = 0."""
    guess = _floats(0x7FDE623822FC16E6 - _bits(y))
    for _ in range(2):  # 1/y: relative error 1e-1, 2e-4, 2e-15; the last step squares it
        error = 1.0 - y * guess
        half = guess + guess * error
        guess = half + half * (error * error)
    near = x * guess
    return jnp.where(y > 0, near + guess * (x - y * near), x)


@divide.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, y), (dx, dy) = primals, tangents
    value = divide(x, y)
    return value, jnp.where(y > 0, (dx - value * dy) / jnp.where(y > 0, y, 1.0), dx)


def total(terms: list[Array]) -> Array:
    """Their sum, joined in pairs: a short chain of additions, and a small error."""
    while len(terms) > 1:
        pairs = [x + y for x, y in zip(terms[0::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial with these coefficients, lowest first.

    By Estrin's scheme: neighbours are joined in parallel, so that no operation has to wait
    for a long chain of others.
    """
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[0::2], terms[1::2], strict=False)
        joined = [low + high * x for low, high in pairs]
        terms = joined + ([terms[-1]] if len(terms) % 2 else [])
        x = x * x
    return terms[0]
