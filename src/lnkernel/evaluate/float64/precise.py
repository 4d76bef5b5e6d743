"""Squared lengths to twice the digits of float64, and of any size.

A deep network multiplies a length by the same factors in every layer, so their rounding
errors lean the same way and add up; an activation of degree p multiplies a relative error by
p, and may take a length of 1e150 out of the range of float64. There is one length per input,
not per pair: twice the digits, and where needed an exponent, cost nothing that can be measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.namespace import constant, differentiable, from_bits, to_bits
from lnkernel.evaluate.float64.projection import rounded_to_26_bits, two_sum

ZERO = np.float64(0.0)
SPLIT = np.float64((1 << 27) + 1)
FAR = 1000  # binary digits; two numbers so far apart do not know of one another


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Precise:
    """(high + low) 2^exponent, with `low` below the last digit of `high`.

    The exponent is a whole number; None, if only degree 1 occurs, stands for 0. Derivatives are
    those of `high`: the others are constant, or too small to matter.
    """

    high: Any  # an array, or a single number of NumPy's
    low: Any
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
            return _add(x, y, None)
        e1, e2, xp = exponent_or_zero(x), exponent_or_zero(y), namespace.of(x.high, y.high)
        top = xp.where(y.high == 0, e1, xp.where(x.high == 0, e2, xp.maximum(e1, e2)))
        one, two = two_to(_clip(e1 - top)), two_to(_clip(e2 - top))
        x, y = Precise(x.high * one, x.low * one), Precise(y.high * two, y.low * two)
        return normalised(_add(x, y, top))

    __radd__ = __add__

    def root(self) -> Array:
        """The square root as a float64 number, rounded once."""
        if self.exponent is None:
            return root_of(self.high, self.low)
        half = self.exponent >> 1
        rest = two_to(self.exponent - 2 * half)
        root = root_of(self.high * rest, self.low * rest)
        first = _clip(half >> 1)
        # a division comes last: XLA then computes it once per input, not once per pair
        return root * two_to(first) / two_to(-_clip(half - first))


def as_precise(x: Any) -> Precise:
    """x with all digits that it has."""
    if isinstance(x, Precise):
        return x
    if isinstance(x, float | int):  # a single number, NumPy's too, takes a tenth of an array's time
        return Precise(np.float64(x), ZERO)
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
    shift = exponent_of(x.high)
    scale = two_to(shift)
    exponent = exponent_or_zero(x) + shift
    if isinstance(exponent, jax.Array):
        exponent = lax.div(3 * exponent, jnp.int64(3))
    return Precise(x.high / scale, x.low / scale, exponent)


def _add(x: Precise, y: Precise, exponent: Array | None) -> Precise:
    """If the high parts cancel, the low ones are not small: hence the second sum."""
    total, error = two_sum(x.high, y.high)
    return rounded_sum(total, error + (x.low + y.low), exponent)


def rounded_sum(first: Array, second: Array, exponent: Array | None) -> Precise:
    """The sum of both, where the second one is a correction of the first and has no derivative."""
    return _precise(*two_sum(first, constant(second)), exponent)


def _precise(high: Array, low: Array, exponent: Array | None) -> Precise:
    """The correction is below every derivative; beyond the range of float64 there is none."""
    if is_single(high) and is_single(low):
        usable = abs(high) > 1e-290 and math.isfinite(low)
        return Precise(high, low if usable else ZERO, exponent)
    xp = namespace.of(high, low)
    usable = (xp.abs(high) > 1e-290) & xp.isfinite(low)  # beside an infinite `high`, `low` is NaN
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
    first = _clip(exponent >> 1)
    return x * two_to(first) * two_to(_clip(exponent - first))


def two_to(exponent: Array) -> Array:
    """2^k exactly, for |k| <= 1022."""
    return from_bits((exponent.astype(np.int64) + 1023) << 52)


def _clip(exponent: Array) -> Array:
    return namespace.of(exponent).clip(exponent, -FAR, FAR)


def exponent_of(x: Array) -> Array:
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
    """The derivative at 0 is taken as 0: lengths enter the kernels by their squares."""
    root = root_of(*primals)
    usable = (root > 0) & (root < jnp.inf)
    return root, jnp.where(usable, 0.5 / jnp.where(usable, root, 1.0), 0.0) * tangents[0]


def is_single(x: Any) -> bool:
    """Whether it is one of NumPy's numbers, and no array: its own functions take a tenth of the time."""
    return type(x) is np.float64


def _half_of_the_digits(x: Array) -> Array:
    """The upper 26 (Veltkamp): fewer steps than by the bits, where no compiler simplifies them away."""
    wide = x * SPLIT
    return wide - (wide - x)


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """x y - product, exactly (Dekker); x and y are split into halves whose products are exact."""
    if namespace.of(x, y) is np:
        x_high, y_high = _half_of_the_digits(x), _half_of_the_digits(y)
    else:
        x, y, product = (constant(jnp.asarray(v, jnp.float64)) for v in (x, y, product))
        x_high, y_high = rounded_to_26_bits(x), rounded_to_26_bits(y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
