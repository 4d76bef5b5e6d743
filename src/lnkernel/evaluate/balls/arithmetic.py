"""Balls as an arithmetic of the calculus: every result encloses the exact number."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flint import arb

from lnkernel.arch import Node
from lnkernel.calculus.arithmetic import Cosines, Softened
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.balls.numbers import BITS, Ball, Truth, balls, elementwise, exact, select


class BallOperations:
    """What is the same for balls and for balls along a ray."""

    rounds_angles = False

    def real(self, x: float) -> Ball:
        return arb(x)

    def either(self, one: Any, other: Any) -> Any:
        if one is True or other is True:
            return True
        (yes1, no1), (yes2, no2) = (_both_sides(x) for x in (one, other))
        return Truth(np.logical_or(yes1, yes2), np.logical_and(no1, no2))

    def as_number(self, truth: Any) -> Ball:
        """1 where it holds, 0 where it does not, and where that is undecided the ball of both."""
        if isinstance(truth, Truth):
            return select(truth, arb(1), arb(0))
        return balls(np.asarray(truth, int)) if isinstance(truth, bool) else balls(truth)


class Balls(BallOperations):
    """Balls of `bits` bits, single ones or arrays. Run it under `working_precision(bits)`.

    A comparison of balls may be undecided; `where` then gives the hull of both branches, so
    the result encloses the truth whichever holds.
    """

    name, purpose = "balls", "certificate"

    def __init__(self, bits: int = BITS):
        self.bits = bits

    def squared(self, x: Ball) -> Ball:
        x = balls(x)
        return x * x

    def sqrt(self, x: Ball) -> Ball:
        return _sqrt(x)

    def power(self, x: Ball, degree: float) -> Ball:
        if float(degree).is_integer() and 1 <= degree <= 16:
            out = x
            for _ in range(int(degree) - 1):
                out = out * x
            return out
        return _power(x, exact(degree))

    def cosines(self, leg_square: Ball, other: Ball) -> Cosines:
        square = leg_square + self.squared(other)
        return Cosines(_sqrt(leg_square / square), other / _sqrt(square), square)

    def softened(self, square: Ball, eps: Ball) -> Softened:
        total = square + eps
        return Softened(_sqrt(square / total), _sqrt(total))

    def divide(self, x: Ball, y: Ball) -> Ball:
        return _divide(x, y)

    def powered_difference(self, e: Ball, degree: float, first: Ball, second: Ball) -> Ball:
        return e if degree == 1 else _powered(e, exact(degree), first, second)

    def combined_difference(self, e: Ball, change: Ball, first: Ball, second: Ball) -> Ball:
        if known_zero(e) and known_zero(change):
            return 0.0
        return _combined(e, change, first, second)

    def length_difference(self, first: Ball, second: Ball) -> Ball:
        return _direct(first, second)

    def where(self, condition: Any, yes: Ball, no: Ball) -> Ball:
        if condition is True or condition is False:
            return yes if condition else no
        return select(condition, yes, no)


def exactly(arch: Node) -> Any:
    """`arch` with balls as hyperparameters: products of them are then not rounded to float64.

    The hyperparameters are the leaves of the architecture as a pytree, whatever their names. Zeros
    stay plain zeros, which are facts about the structure; so do static fields, the degrees.
    """
    return jax.tree.map(lambda leaf: arb(float(leaf)) if float(leaf) else 0.0, arch)


def _both_sides(truth: Any) -> Truth:
    return truth if isinstance(truth, Truth) else Truth(truth, np.logical_not(truth))


def _sqrt_one(x: arb) -> arb:
    """The square root of a number that is not negative, though its ball may reach below zero."""
    return x.sqrt() if x >= 0 else x.nonnegative_part().sqrt()


def _power_one(x: arb, degree: arb) -> arb:
    if x > 0:
        return (degree * x.log()).exp()
    if degree > 0:
        return arb(0) if x.is_zero() else arb(0).union((degree * x.upper().log()).exp())
    return arb(1) if degree.is_zero() else arb.pos_inf() if x.is_zero() else arb.nan()


def _divide_one(x: arb, y: arb) -> arb:
    return x if y.is_zero() else x / y


def _powered_one(e: arb, degree: arb, first: arb, second: arb) -> arb:
    """Near ±1 a ball of e has lost the ratio of the lengths, which tell it without cancellation."""
    return (degree * e.atanh()).tanh() if abs(e) < 0.5 else _direct_one(first, second)


def _combined_one(e: arb, change: arb, first: arb, second: arb) -> arb:
    close = abs(e) < 0.5 and abs(change) < 0.5
    return (e + change) / (1 + e * change) if close else _direct_one(first, second)


def _direct_one(first: arb, second: arb) -> arb:
    """e from the squared lengths."""
    if first.is_zero() and second.is_zero():
        return arb(0)
    r1, r2 = _sqrt_one(first), _sqrt_one(second)
    value = (r1 - r2) / (r1 + r2)
    return value if value.is_finite() else arb(0, 1)


_sqrt = elementwise(_sqrt_one, 1)
_power = elementwise(_power_one, 2)
_divide = elementwise(_divide_one, 2)
_powered = elementwise(_powered_one, 4)
_combined = elementwise(_combined_one, 4)
_direct = elementwise(_direct_one, 2)
