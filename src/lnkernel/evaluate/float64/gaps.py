"""Angles from their cosines, and differences of lengths from the lengths, where that is exact enough."""

from __future__ import annotations

from jax import Array

from lnkernel.evaluate.float64 import namespace

DELICATE = 2.0**-8  # angles below which the quick way leaves a pair to the careful one


def with_gap(c: Array) -> tuple[Array, Array, Array]:
    """(w, z, c); w and z are NaN where too few digits would be left of a small one.

    Both are, so that no rule takes the angle for an obtuse one and goes on with the other.
    """
    w, z = 0.5 - 0.5 * c, 0.5 + 0.5 * c
    good, xp = (w > DELICATE) & (z > DELICATE), namespace.of(c)
    return xp.where(good, w, xp.nan), xp.where(good, z, xp.nan), c


def relative_difference(one: Array, two: Array) -> Array:
    """(one - two)/(one + two) of numbers that are not negative; 0 where both are 0."""
    long, xp = one + two, namespace.of(one, two)
    return xp.where(long > 0, (one - two) / xp.where(long > 0, long, 1.0), 0.0)
