r"""The part of one vector orthogonal to another, exact to the last digits.

$y - \lambda x$ cancels where $y$ is nearly a multiple of $x$. Here $\lambda$ is found in three steps
of 26 bits, and $x$ is split into two halves of 26 bits, so every product is exact and every
subtraction that cancels is exact too (Sterbenz). None of this depends on whether the
compiler contracts a multiplication and an addition into one operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jax import Array

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.namespace import differentiable, from_bits, to_bits


class Projection(NamedTuple):
    r"""$y = \lambda x + $ `rest`, and `excess` $= f\lambda - 1$, which is exact where it is small."""

    rest: Array
    excess: Array


def centred(x: Array) -> Array:
    """x less its mean; twice, so that a large mean leaves no rounding error behind."""
    xp = namespace.of(x)
    x = x - xp.mean(x, axis=-1, keepdims=True)
    return x - xp.mean(x, axis=-1, keepdims=True)


def rounded_to_26_bits(x: Array) -> Array:
    return from_bits((to_bits(x) + (1 << 26)) & ~((1 << 27) - 1))


def project(x: Array, y: Array, f: Array, centre: bool) -> Projection:
    """Pairs of vectors (..., d), with f (...). With `centre`, means over the coordinates are taken off both."""
    return _projection(centre)(x, y, f)


def _projection(centre: bool) -> Any:
    centring = centred if centre else lambda v: v

    @differentiable
    def projection(x: Array, y: Array, f: Array) -> Projection:
        direction = centring(x)
        square = _positive(_along(direction, direction))
        high = rounded_to_26_bits(x)
        low = x - high

        def multiple(v: Array) -> Array:
            return rounded_to_26_bits(_along(centring(v), direction) / square)[..., None]

        first = multiple(y)
        main, small = two_sum(y - first * high, -(first * low))
        if centre:
            main, small = centring(main + small), namespace.of(main).zeros_like(main)
        second = multiple(main)
        rest = centring((main - second * high) + (small - second * low))
        third = _along(rest, direction) / square
        rest = rest - third[..., None] * direction
        first, second = first[..., 0], second[..., 0]
        return Projection(rest, (f * first - 1) + f * (second + third))

    @projection.defjvp
    def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Any, Any]:
        (x, y, f), (dx, dy, _) = primals, tangents
        rest, excess = out = projection(x, y, f)
        direction, dx, dy = centring(x), centring(dx), centring(dy)
        factor = (excess + 1) / f
        square = _positive(_along(direction, direction))
        change = _along(dx, rest) + _along(direction, dy) - factor * _along(direction, dx)
        change = change / square
        turned = dy - factor[..., None] * dx - change[..., None] * direction
        return out, Projection(turned, f * change)

    return projection


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _along(x: Array, y: Array) -> Array:
    """The scalar product."""
    return (x * y).sum(axis=-1)


def _positive(x: Array) -> Array:
    return namespace.of(x).where(x > 0, x, 1.0)
