r"""The part of one vector orthogonal to another, exact to the last digits.

$y - \lambda x$ cancels where $y$ is nearly a multiple of $x$. Here $\lambda$ is found in three steps
of 26 bits, and $x$ is split into two halves of 26 bits, so every product is exact and every
subtraction that cancels is exact too (Sterbenz). None of this depends on whether the
compiler contracts a multiplication and an addition into one operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax


class Projection(NamedTuple):
    r"""$y = \lambda x + $ `rest`, and `excess` $= f\lambda - 1$, which is exact where it is small."""

    rest: Array
    excess: Array


def centred(x: Array) -> Array:
    """x less its mean; twice, so that a large mean leaves no rounding error behind."""
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x - jnp.mean(x, axis=-1, keepdims=True)


def rounded_to_26_bits(x: Array) -> Array:
    bits = lax.bitcast_convert_type(x, jnp.int64) + (1 << 26)
    return lax.bitcast_convert_type(bits & ~((1 << 27) - 1), jnp.float64)


def project(x: Array, y: Array, f: Array, centre: bool) -> Projection:
    """One pair of vectors (d,). With `centre`, means over the coordinates are taken off both."""
    return _projection(centre)(x, y, f)


def _projection(centre: bool) -> Any:
    centring = centred if centre else lambda v: v

    @jax.custom_jvp
    def projection(x: Array, y: Array, f: Array) -> Projection:
        direction = centring(x)
        square = _positive(jnp.sum(direction * direction))
        high = rounded_to_26_bits(x)
        low = x - high

        def multiple(v: Array) -> Array:
            return rounded_to_26_bits(jnp.sum(centring(v) * direction) / square)

        first = multiple(y)
        main, small = two_sum(y - first * high, -(first * low))
        if centre:
            main, small = centring(main + small), jnp.zeros_like(main)
        second = multiple(main)
        rest = centring((main - second * high) + (small - second * low))
        third = jnp.sum(rest * direction) / square
        rest = rest - third * direction
        return Projection(rest, (f * first - 1) + f * (second + third))

    @projection.defjvp
    def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Any, Any]:
        (x, y, f), (dx, dy, _) = primals, tangents
        rest, excess = out = projection(x, y, f)
        direction, dx, dy = centring(x), centring(dx), centring(dy)
        factor = (excess + 1) / f
        square = _positive(jnp.sum(direction * direction))
        change = jnp.sum(dx * rest) + jnp.sum(direction * dy) - factor * jnp.sum(direction * dx)
        change = change / square
        return out, Projection(dy - factor * dx - change * direction, f * change)

    return projection


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _positive(x: Array) -> Array:
    return jnp.where(x > 0, x, 1.0)
