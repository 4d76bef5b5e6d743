r"""Quotients, roots and elementary functions of `Precise` numbers, to some twenty digits.

They are functions of single inputs. What is made of them is rounded once, so that ten layers in which a length has
become constant do not add up ten times one and the same error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.elementary import polynomial
from lnkernel.evaluate.float64.namespace import constant
from lnkernel.evaluate.float64.powers import LOG_2, exp_of_short
from lnkernel.evaluate.float64.precise import (
    Precise,
    as_precise,
    exponent_or_zero,
    root_of,
    rounded_sum,
    shifted,
    two_to,
)

PI = 3.141592653589793, 1.2246467991473532e-16
HALVINGS = 3  # of an angle: tan(π/32) is below 0.1
# (atan(y) - y)/y³ as a series in y² <= 0.0098: the first term left out is 1e-17, and the whole is 1 % of atan(y)/y
ARCTANGENT = tuple((-1) ** (k + 1) / (2 * k + 3) for k in range(8))
SHORT = 1e-6  # below it 1 - exp(-x) is x - x²/2 + x³/6
LONGEST = 800.0  # exp(-x) is 0 beyond


def constant_pi() -> Precise:
    """π."""
    high, low = (as_precise(part).high for part in PI)
    return Precise(high, low)


def ratio(x: Any, y: Any) -> Precise:
    """x/y for y > 0, and x for y = 0."""
    x, y = as_precise(x), as_precise(y)
    xp, zero = namespace.of(x.high, y.high), y.high == 0
    by = Precise(xp.where(zero, 1.0, y.high), y.low)
    first = x.high / by.high
    rest = Precise(x.high, x.low) + by * constant(-first)
    second = (rest.high + rest.low) / by.high
    exponent = None
    if x.exponent is not None or y.exponent is not None:
        exponent = exponent_or_zero(x) - xp.where(zero, 0, exponent_or_zero(y))
    return _correct(first, second, exponent)


def root(x: Precise) -> Precise:
    """The square root; its derivative at 0 is taken as 0."""
    half = None
    if x.exponent is not None:
        half = x.exponent >> 1
        rest = two_to(x.exponent - 2 * half)
        x = Precise(x.high * rest, x.low * rest)
    first = root_of(x.high, namespace.of(x.high).zeros_like(x.high))
    square = as_precise(constant(first))
    square = square * square
    left = Precise(constant(x.high), x.low) + square * -1.0
    xp = namespace.of(first)
    usable = (first > 0) & (first < xp.inf)
    second = xp.where(usable, 0.5 * (left.high + left.low) / xp.where(usable, first, 1.0), 0.0)
    return _correct(first, second, half)


def _correct(first: Any, second: Any, exponent: Any) -> Precise:
    """The sum of both; an infinite number has no correction."""
    xp = namespace.of(first)
    return rounded_sum(first, xp.where(xp.isfinite(second), second, 0.0), exponent)


def without_exponent(x: Precise) -> Precise:
    """The same number as a sum of two float64 numbers; beyond their range infinite, or 0."""
    if x.exponent is None:
        return x
    return Precise(shifted(x.high, x.exponent), shifted(x.low, x.exponent))


def arctangent(x: Precise) -> Precise:
    """The arc tangent for 0 <= x <= 1: atan(x) = 2 atan(x/(1 + sqrt(1 + x²))), until the series is short."""
    x = without_exponent(x)
    for _ in range(HALVINGS):
        x = ratio(x, root(x * x + 1.0) + 1.0)
    square = x.high * x.high
    rest = x.high * (square * polynomial(ARCTANGENT, square))
    return (x + rest) * 2.0**HALVINGS


def falling(x: Precise) -> Precise:
    """exp(-x) for x >= 0."""
    x = without_exponent(x)
    xp = namespace.of(x.high)
    far = x.high > LONGEST
    near = Precise(xp.where(far, LONGEST, x.high), xp.where(far, 0.0, x.low))
    whole = constant(xp.round(near.high / LOG_2[0]))
    short = near * -1.0 + Precise(*map(xp.asarray, LOG_2)) * whole
    value = exp_of_short(short)
    # a power of two below the range of float64 in two steps
    powers = -whole.astype(np.int64)
    value = Precise(shifted(value.high, powers), shifted(value.low, powers))
    return Precise(xp.where(far, 0.0, value.high), xp.where(far, 0.0, value.low))


def falling_and_fallen(x: Precise) -> tuple[Precise, Precise]:
    """exp(-x) and 1 - exp(-x) for x >= 0."""
    x = without_exponent(x)
    left = falling(x)
    xp = namespace.of(x.high)
    short = x.high < SHORT
    near = Precise(xp.where(short, x.high, 0.0), xp.where(short, x.low, 0.0))
    series = near + near * (near * (near * (1 / 6) + -0.5))
    direct = left * -1.0 + 1.0
    return left, Precise(
        xp.where(short, series.high, direct.high), xp.where(short, series.low, direct.low)
    )
