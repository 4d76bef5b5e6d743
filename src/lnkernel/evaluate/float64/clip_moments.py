r"""Gaussian moments of a clip at one length r: integrals over the interval where it has a slope.

$\phi' = 1$ between `low` and `high`, and beyond them $\phi$ is a constant. Closed forms by the error function would
cancel at long inputs, where the interval is short beside r. Here every term of a sum is positive, and the panels end
where the interval does, so that the derivatives by `low` and `high` are right.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jax import Array

from lnkernel.arch.piecewise import Clip
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.functions import density, normal_below
from lnkernel.evaluate.float64.moments import (
    NOTHING_LEFT,
    WIDEST,
    Moments,
    Rule,
    moments_rule,
    unit_rule,
)


@moments_rule.register
def _(layer: Clip) -> Rule:
    return partial(_of_clip, layer.low, layer.high)


def _of_clip(low: Any, high: Any, length: Array) -> Moments:
    xp = namespace.of(length, low, high)
    left, right = low / length, high / length
    first, last = _ends(left, right)
    points, shares = unit_rule()
    width = (last - first)[..., None]
    x = first[..., None] + width * points
    weights = width * shares * density(x)
    u = length[..., None] * x
    below, above = normal_below(left), normal_below(-right)
    # what is taken off phi: at short inputs phi(0), beside which the rest would be lost
    start = xp.where(length < 1, xp.clip(0.0, low, high), 0.0)

    def total(inside: Array, under: Array, over: Array) -> Array:
        return xp.sum(weights * inside, axis=-1) + (below * under + above * over)

    shift = total(u - start[..., None], low - start, high - start)
    mean = start + shift
    variance = total(
        xp.square((u - start[..., None]) - shift[..., None]),
        xp.square((low - start) - shift),
        xp.square((high - start) - shift),
    )
    return Moments(
        mean,
        variance + xp.square(mean),
        variance,
        slopes=xp.sum(weights, axis=-1),
        euler=xp.sum(weights * xp.square(u), axis=-1),
    )


def _ends(left: Array, right: Array) -> tuple[Array, Array]:
    """The ends of the part of the interval in which float64 can tell the density from nothing. If 0 lies outside,
    that is the part beyond the nearer end where the density is not much smaller than at that end."""
    xp = namespace.of(left, right)
    left, right = (xp.clip(end, -NOTHING_LEFT, NOTHING_LEFT) for end in (left, right))
    nearest = xp.maximum(0.0, xp.maximum(left, -right))
    most = xp.sqrt(WIDEST * WIDEST + xp.square(nearest))
    return xp.maximum(left, -most), xp.minimum(right, most)
