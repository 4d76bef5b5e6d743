"""Squared lengths to twice the digits of float64, and of any size.

A deep network multiplies a length by the same factors in every layer, so their rounding
errors lean the same way and add up; an activation of degree p multiplies a relative error by
p, and may take a length of 1e150 out of the range of float64. There is one length per input,
not per pair: twice the digits, and where needed an exponent, cost nothing that can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.namespace import constant, differentiable, from_bits, to_bits
from lnkernel.evaluate.float64.projection import rounded_to_26_bits, two_sum

FAR = 1000  # binary digits; two numbers so far apart do not know of one another


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Precise:
    """(high + low) 2^exponent, with `low` below the last digit of `high`.

    The exponent is a whole number; None, if only degree 1 occurs, stands for 0. Derivatives are
    those of `high`: the others are constant, or too small to matter.
    """

    high: Array
    low: Array
    exponent: Array | None = None

    __array_ufunc__ = None  # NumPy's arrays leave `array * precise` to us

    def __mul__(self, other: Any) -> Precise:
        other = as_precise(other)
        product = self.high * other.high
        error = _product_error(self.high, other.high, product)
        error = error + (self.high * other.low + self.low * other.high)
        return _precise(product, error, _sum(self.exponent, other.exponent))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Precise:
        x, y = self, as_precise(other)
        if x.exponent is None and y.exponent is None:
            return _added(x, y, None)
        e1, e2, xp = exponent_or_zero(x), exponent_or_zero(y), namespace.of(x.high, y.high)
        top = xp.where(y.high == 0, e1, xp.where(x.high == 0, e2, xp.maximum(e1, e2)))
        one, two = two_to(_clipped(e1 - top)), two_to(_clipped(e2 - top))
        x, y = Precise(x.high * one, x.low * one), Precise(y.high * two, y.low * two)
        return normalised(_added(x, y, top))

    __radd__ = __add__

    def root(self) -> Array:
        """The square root as a float64 number, rounded once."""
        if self.exponent is None:
            return root_of(self.high, self.low)
        half = self.exponent >> 1
        rest = two_to(self.exponent - 2 * half)
        root = root_of(self.high * rest, self.low * rest)
        first = _clipped(half >> 1)
        # a division comes last: XLA then computes it once per input, not once per pair
        return root * two_to(first) / two_to(-_clipped(half - first))


def as_precise(x: Any) -> Precise:
    """x with all digits that it has."""
    if isinstance(x, Precise):
        return x
    xp = namespace.of(x)
    x = xp.asarray(x, np.float64)
    return Precise(x, xp.zeros_like(x))


def plain(x: Any) -> Any:
    """x as an ordinary float64 number; beyond their range infinite, or 0."""
    if not isinstance(x, Precise):
        return x
    return x.high if x.exponent is None else shifted(x.high, x.exponent)


def quotient(x: Precise, y: Precise) -> Array:
    """x/y as a float64 number, for y > 0; and x for y = 0."""
    zero = y.high == 0
    xp = namespace.of(x.high, y.high)
    ratio = x.high / xp.where(zero, 1.0, y.high)
    if x.exponent is None and y.exponent is None:
        return ratio
    return shifted(ratio, exponent_or_zero(x) - xp.where(zero, 0, exponent_or_zero(y)))


def normalised(x: Precise) -> Precise:
    """The same number with an exponent, and `high` of size 1 to 2.

    XLA copies what it holds for cheap into every use, and each of these numbers is used several
    times by the next, so that programs would grow exponentially with depth. Divisions it
    holds for dear, and computes them once.
    """
    shift = _exponent_of(x.high)
    scale = two_to(shift)
    exponent = exponent_or_zero(x) + shift
    if isinstance(exponent, jax.Array):
        exponent = lax.div(3 * exponent, jnp.int64(3))
    return Precise(x.high / scale, x.low / scale, exponent)


def _added(x: Precise, y: Precise, exponent: Array | None) -> Precise:
    """If the high parts cancel, the low ones are not small: hence the second sum."""
    total, error = two_sum(x.high, y.high)
    return rounded_sum(total, error + (x.low + y.low), exponent)


def rounded_sum(first: Array, second: Array, exponent: Array | None) -> Precise:
    """Both together, where the second one is a correction of the first and has no derivative."""
    return _precise(*two_sum(first, constant(second)), exponent)


def _precise(high: Array, low: Array, exponent: Array | None) -> Precise:
    """The correction is below every derivative; beyond the range of float64 there is none."""
    xp = namespace.of(high, low)
    usable = xp.isfinite(high) & (xp.abs(high) > 1e-290) & xp.isfinite(low)
    return Precise(high, constant(xp.where(usable, low, 0.0)), exponent)


def exponent_or_zero(x: Precise) -> Array:
    """Its exponent as an array."""
    if x.exponent is not None:
        return x.exponent
    return namespace.of(x.high).zeros(np.shape(x.high), np.int64)


def _sum(one: Array | None, two: Array | None) -> Array | None:
    if one is None or two is None:
        return two if one is None else one
    return one + two


def shifted(x: Array, exponent: Array) -> Array:
    """x 2^k, in two factors so that each is in range."""
    first = _clipped(exponent >> 1)
    return x * two_to(first) * two_to(_clipped(exponent - first))


def two_to(exponent: Array) -> Array:
    """2^k exactly, for |k| <= 1022."""
    return from_bits((exponent.astype(np.int64) + 1023) << 52)


def _clipped(exponent: Array) -> Array:
    return namespace.of(exponent).clip(exponent, -FAR, FAR)


def _exponent_of(x: Array) -> Array:
    """k with 2^k <= |x| < 2^(k+1); 0 for zero and infinity."""
    x, xp = constant(x), namespace.of(x)
    exponent = ((to_bits(x) >> 52) & 0x7FF) - 1023
    ordinary = (x != 0) & xp.isfinite(x)
    return xp.where(ordinary, xp.maximum(exponent, -FAR), 0)


@differentiable
def root_of(high: Array, low: Array) -> Array:
    """sqrt(high + low) as a float64 number."""
    xp = namespace.of(high, low)
    root = xp.sqrt(high)
    usable = (root > 0) & (root < xp.inf)
    return root + xp.where(usable, 0.5 * low / xp.where(usable, root, 1.0), 0.0)


@root_of.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """At 0 it is taken as 0: lengths enter the kernels by their squares."""
    root = root_of(*primals)
    usable = (root > 0) & (root < jnp.inf)
    return root, jnp.where(usable, 0.5 / jnp.where(usable, root, 1.0), 0.0) * tangents[0]


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """x y - product, exactly (Dekker); x and y are split into halves whose products are exact."""
    xp = namespace.of(x, y)
    x, y, product = (constant(xp.asarray(v, np.float64)) for v in (x, y, product))
    x_high, y_high = rounded_to_26_bits(x), rounded_to_26_bits(y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
