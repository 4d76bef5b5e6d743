"""Angles from their cosines, and differences of lengths from the lengths, where that is exact enough."""

from __future__ import annotations

from jax import Array

from lnkernel.evaluate.float64 import namespace

DELICATE = 2.0**-8  # angles (w or z) below which the quick way leaves a pair to the careful one
DELICATE_DEEP = 2.0**-4  # the same in deep networks
DEEP = 3  # closed forms
NOTHING_DELICATE = (
    -1.0
)  # below every w and z: where only the cosine counts, and the function of it is not steep


def delicate_angle(layers: int) -> float:
    """The least w or z that is taken from a rounded cosine, in a network with so many closed forms.

    The error of w is one of the cosine's last digit. Where layers widen the angle until it is of size 1 (erf with
    weights of variance 2, for example), they multiply that error by up to 1/w.
    """
    return DELICATE if layers < DEEP else DELICATE_DEEP


def with_gap(c: Array, least: float) -> tuple[Array, Array, Array]:
    """(w, z, c); w and z are NaN where one of them is below `least`, so that too few of its digits would be left.

    Both are, so that no rule takes the angle for an obtuse one and goes on with the other.
    """
    w, z = 0.5 - 0.5 * c, 0.5 + 0.5 * c
    if least == NOTHING_DELICATE:
        return w, z, c
    good, xp = (w > least) & (z > least), namespace.of(c)
    return xp.where(good, w, xp.nan), xp.where(good, z, xp.nan), c


def relative_difference(one: Array, two: Array) -> Array:
    """(one - two)/(one + two) of numbers that are not negative; 0 where both are 0."""
    long, xp = one + two, namespace.of(one, two)
    return xp.where(long > 0, (one - two) / xp.where(long > 0, long, 1.0), 0.0)
