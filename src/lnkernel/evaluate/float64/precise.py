"""Squared lengths to twice the digits of float64.

A deep network multiplies a length by the same factors in every layer, so their rounding
errors lean the same way and add up. There is one length per input, not per pair: twice
the digits cost nothing that can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from lnkernel.evaluate.float64.projection import rounded_to_26_bits, two_sum

Array = Any


@dataclass(frozen=True)
class Precise:
    """The unevaluated sum of two float64 arrays, `low` below the last digit of `high`."""

    high: Array
    low: Array

    def __mul__(self, other: Any) -> Precise:
        x, x_low = _parts(other)
        product = self.high * x
        error = _product_error(self.high, x, product) + (self.high * x_low + self.low * x)
        return _precise(product, error)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Precise:
        x, x_low = _parts(other)
        total, error = two_sum(self.high, x)
        return _precise(total, error + (self.low + x_low))

    __radd__ = __add__

    def root(self) -> Array:
        """The square root, rounded once."""
        root = jnp.sqrt(self.high)
        return root + jnp.where(root > 0, 0.5 * self.low / jnp.where(root > 0, root, 1.0), 0.0)


def plain(x: Any) -> Any:
    """x as an ordinary float64 number."""
    return x.high if isinstance(x, Precise) else x


def _parts(x: Any) -> tuple[Any, Any]:
    return (x.high, x.low) if isinstance(x, Precise) else (x, 0.0)


def _precise(high: Array, low: Array) -> Precise:
    """The correction is below every derivative; beyond the range of float64 there is none."""
    usable = jnp.isfinite(high) & (jnp.abs(high) > 1e-290) & jnp.isfinite(low)
    return Precise(high, lax.stop_gradient(jnp.where(usable, low, 0.0)))


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """x y - product, exactly (Dekker); x and y are split into halves whose products are exact."""
    x, y, product = (lax.stop_gradient(jnp.asarray(v, jnp.float64)) for v in (x, y, product))
    x_high, y_high = rounded_to_26_bits(x), rounded_to_26_bits(y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
