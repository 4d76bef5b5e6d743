"""Square root and division from multiplications alone, for the numbers of a pair.

XLA refuses to fuse an operation it holds for expensive (divide, sqrt, every
transcendental function) into more than one consumer: it then cuts the kernel of a pair
into a dozen loops over memory, and evaluates shared parts again in each. Newton's
iteration from a bit pattern is cheap in its eyes; so the whole network stays one loop,
which vectorises. Both functions are accurate to about one unit in the last place.
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
    for _ in range(3):  # 1/sqrt(x): relative error 3e-2, 2e-3, 4e-6, 3e-11
        guess = guess * (1.5 - ((0.5 * x) * guess) * guess)
    near = x * guess
    return near + (0.5 * guess) * (x - near * near)


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
    for _ in range(3):  # 1/y: relative error 1e-1, 1e-3, 2e-9, 6e-27, cubically
        error = 1.0 - y * guess
        guess = guess + guess * (error + error * error)
    near = x * guess
    return jnp.where(y > 0, near + guess * (x - y * near), x)


@divide.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, y), (dx, dy) = primals, tangents
    value = divide(x, y)
    return value, jnp.where(y > 0, (dx - value * dy) / jnp.where(y > 0, y, 1.0), dx)


def polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial with these coefficients, lowest first (Horner)."""
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
