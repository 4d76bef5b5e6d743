"""float64 as an arithmetic of the calculus."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lnkernel.calculus.arithmetic import Cosines, Softened, Spherical, Tails
from lnkernel.evaluate.float64 import tails as gaussian
from lnkernel.evaluate.float64.elementary import divide
from lnkernel.evaluate.float64.precise import Precise, plain

Array = Any


class Float64:
    """JAX arrays of float64. Lengths may be 0 or infinite; see `lnkernel.calculus.covariance`."""

    def sqrt(self, x: Array) -> Array:
        if isinstance(x, Precise):
            return _precise_sqrt(x.high, x.low)
        return _sqrt(jnp.asarray(x, jnp.float64))

    def power(self, x: Array, degree: float) -> Array:
        if isinstance(x, Precise) and float(degree).is_integer() and 1 <= degree <= 8:
            return math.prod([x] * int(degree))
        return power(jnp.asarray(plain(x)), float(degree))

    def cosines(self, leg_square: Array, other: Array) -> Cosines:
        """An infinite leg is the limit; 0 and 0 count as (1, 0, 0)."""
        other = jnp.asarray(other, jnp.float64)
        total = Precise(other, jnp.zeros_like(other)) * other + leg_square
        square, leg_square = total.high, plain(leg_square)
        finite = (square > 0) & (square < jnp.inf)
        safe = jnp.where(finite, square, 1.0)
        # the roots come last: XLA then computes them once per input, not once per pair
        cosine = _sqrt(jnp.where(finite, leg_square, 1.0) / safe)
        sine = _sqrt(jnp.where(finite, other * other, 0.0) / safe)
        return Cosines(cosine, sine, total)

    def softened(self, square: Array, eps: Array) -> Softened:
        """Right at eps = 0 and at length 0, with derivatives; an infinite length has ratio 1."""
        square = plain(square)
        total = square + eps
        finite = (total > 0) & (total < jnp.inf)
        safe = jnp.where(finite, total, 1.0)
        ratio = _sqrt(jnp.where(finite, square, 1.0) / safe)
        norm = jnp.where(finite, jnp.sqrt(safe), total)
        return Softened(jnp.where(total > 0, ratio, 0.0), norm)

    def divide(self, x: Array, y: Array) -> Array:
        return divide(*jnp.broadcast_arrays(jnp.asarray(plain(x), jnp.float64), plain(y)))

    def powered_difference(self, e: Array, degree: float, first: Array, second: Array) -> Array:
        if degree == 1:
            return e
        apart = jnp.abs(e) > 0.5
        near = jnp.where(apart, 0.0, e)
        grown = jnp.expm1(degree * jnp.log1p(2 * near / (1 - near)))  # (r1/r2)^p - 1
        return jnp.where(apart, self.direct_difference(first, second, e), grown / (2 + grown))

    def combined_difference(self, e: Array, change: Array, first: Array, second: Array) -> Array:
        apart = (jnp.abs(e) > 0.5) | (jnp.abs(change) > 0.5)
        e, change = jnp.where(apart, 0.0, e), jnp.where(apart, 0.0, change)
        direct = self.direct_difference(first, second, jnp.zeros_like(e))
        return jnp.where(apart, direct, (e + change) / (1 + e * change))

    def direct_difference(self, first: Array, second: Array, otherwise: Array) -> Array:
        """e from the squared lengths; `otherwise` where they are zero or out of range."""
        r1, r2 = self.sqrt(first), self.sqrt(second)
        known = (r1 + r2 > 0) & (r1 + r2 < jnp.inf)
        return jnp.where(known, (r1 - r2) / jnp.where(known, r1 + r2, 1.0), otherwise)

    def tails(self, degree: float, m: Array) -> Tails:
        return gaussian.tails(degree, m)

    def spherical(self, freedom: int, m: Array) -> Spherical:
        return gaussian.spherical(freedom, m)

    def where(self, condition: Any, yes: Array, no: Array) -> Array:
        if condition is True or condition is False:
            return yes if condition else no
        return jnp.where(condition, yes, no)

    def either(self, one: Any, other: Any) -> Any:
        return True if one is True or other is True else jnp.logical_or(one, other)

    def as_number(self, truth: Any) -> Array:
        return jnp.asarray(truth, jnp.float64)


@jax.custom_jvp
def _precise_sqrt(high: Array, low: Array) -> Array:
    return Precise(high, low).root()


@_precise_sqrt.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return _precise_sqrt(*primals), jax.jvp(_sqrt, primals[:1], tangents[:1])[1]


@jax.custom_jvp
def _sqrt(x: Array) -> Array:
    """sqrt whose derivative at 0 is taken as 0: lengths enter the kernels by their squares."""
    return jnp.sqrt(x)


@_sqrt.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    value = _sqrt(x)
    usable = (value > 0) & (value < jnp.inf)
    return value, jnp.where(usable, 0.5 / jnp.where(usable, value, 1.0), 0.0) * dx


def power(length: Array, degree: float) -> Array:
    """length^degree, to the last digits however long or short it is.

    exp(p log r) loses |p log r| units in the last place: 500 at r = 1e150. Taking the
    exponent of r apart, as r = f 2^k, keeps the logarithm small.
    """
    if float(degree).is_integer() and abs(degree) <= 16:
        return length ** int(degree)
    return _real_power(length, degree)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _real_power(length: Array, degree: float) -> Array:
    fraction, exponent = jnp.frexp(length)
    coarse = round(degree * 2**20) / 2**20  # exponent * coarse is exact
    whole = jnp.round(exponent * coarse)
    rest = (exponent * coarse - whole) + exponent * (degree - coarse)
    value = jnp.exp(degree * jnp.log(jnp.where(fraction > 0, fraction, 1.0)) + rest * jnp.log(2.0))
    scaled = jnp.ldexp(value, whole.astype(jnp.int32))
    ends = (length == 0) | jnp.isinf(length)
    return jnp.where(ends, jnp.where((length == 0) == (degree > 0), 0.0, jnp.inf), scaled)


@_real_power.defjvp
def _(degree: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (length,), (change,) = primals, tangents
    positive = length > 0
    slope = degree * _real_power(jnp.where(positive, length, 1.0), degree - 1)
    return _real_power(length, degree), jnp.where(positive, slope, 0.0) * change
