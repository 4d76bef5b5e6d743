"""The rules on the diagonal, as a function of the length of x: Θ(x, x) on a box of lengths."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb

from lnkernel.calculus import homogeneous
from lnkernel.calculus.arithmetic import Cosines, Softened
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.homogeneous import Tails
from lnkernel.calculus.rules import rule
from lnkernel.calculus.spherical import Spherical, spherical
from lnkernel.calculus.state import at_input
from lnkernel.evaluate.balls.arithmetic import BallOperations, Balls
from lnkernel.evaluate.balls.numbers import exact
from lnkernel.evaluate.balls.on_ray import (
    NONE,
    ONE,
    ZERO,
    Box,
    Jet,
    OnRay,
    align,
    difference,
    is_zero,
)
from lnkernel.evaluate.balls.spherical import sphere_top


class Ray(BallOperations):
    """The arithmetic of the diagonal on one box: all angles are 0, exactly."""

    name, purpose = "balls along a ray", "certificate of the supremum"

    def __init__(self, box: Box, bits: int):
        self.box, self.bits = box, bits
        self._plain = Balls(bits)  # for numbers that do not depend on the length

    @cached_property
    def square(self) -> OnRay:
        r"""$|x|^2/d = \tau/(1-\tau)$."""
        return OnRay(Jet(arb(1), arb(0)), Fraction(1), Fraction(1), self.box)

    def lift(self, x: Any) -> OnRay:
        """A constant as a number on the ray."""
        return self.square.lift(x)

    def sqrt(self, x: Any) -> Any:
        if is_zero(x):
            return ZERO
        x = self.lift(x)  # also a constant: a plain ball would make a ball of an exact zero
        j, k = (power if power is NONE else power / 2 for power in (x.j, x.k))
        if x.v.value > 0:
            root = x.v.value.sqrt()
            return OnRay(Jet(root, x.v.slope / (2 * root)), j, k, self.box)
        # not negative, though its range may seem to reach below zero
        top = x.v.value.upper()
        unknown = arb(0, arb.pos_inf())
        root = arb(0).union(top.sqrt()) if top >= 0 and top.is_finite() else unknown
        return OnRay(Jet(root, unknown), j, k, self.box)

    def squared(self, x: Any) -> Any:
        return x * x if isinstance(x, OnRay) else self._plain.squared(x)

    def power(self, x: Any, degree: float) -> Any:
        if not isinstance(x, OnRay):
            return self._plain.power(x, degree)
        if degree == 1:
            return x
        p = exact(degree)

        def power_of(value: arb, q: arb) -> arb:
            return (q * value.log()).exp()

        v = x.v.through(lambda v: power_of(v, p), lambda v: p * power_of(v, p - 1))
        j, k = (power if power is NONE else power * Fraction(degree) for power in (x.j, x.k))
        return OnRay(v, j, k, self.box)

    def cosines(self, leg_square: Any, other: Any) -> Cosines:
        square = self.squared(other)
        leg, rest = self._share(leg_square, square), self._share(square, leg_square)
        return Cosines(self.sqrt(leg), self.sqrt(rest), leg_square + square)

    def softened(self, square: Any, eps: Any) -> Softened:
        return Softened(self.sqrt(self._share(square, eps)), self.sqrt(square + eps))

    def _share(self, x: Any, y: Any) -> Any:
        """x/(x + y) of positive numbers, with y/x in it once."""
        x, y = self.lift(x), self.lift(y)
        one, two, j, k = align(x, y)
        ratio = y.v * x.v.inverse()
        below = (ONE if one is None else one) + (ratio if two is None else ratio * two)
        j, k = difference(x.j, j), difference(x.k, k)
        return OnRay(below.inverse(), j, k, self.box)

    def divide(self, x: Any, y: Any) -> Any:
        if is_zero(x):
            return ZERO
        return self.lift(x) / y

    def powered_difference(self, e: Any, degree: float, first: Any, second: Any) -> Any:
        return ZERO

    def combined_difference(self, e: Any, change: Any, first: Any, second: Any) -> Any:
        return ZERO

    def length_difference(self, first: Any, second: Any) -> Any:
        return ZERO

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(condition, bool):
            return yes if condition else no
        if condition.yes or condition.no:
            return yes if condition.yes else no
        one, two = (self.lift(x).flat() for x in (yes, no))
        union = Jet(one.value.union(two.value), one.slope.union(two.slope))
        return OnRay(union, NONE, NONE, self.box)


@homogeneous.tails.register
def _(num: Ray, degree: float, m: Any) -> Tails:
    _expect_zero(m)
    return Tails(ZERO, ZERO, ZERO, 1.0)


@spherical.register
def _(num: Ray, freedom: int, m: Any) -> Spherical:
    _expect_zero(m)
    return Spherical(ZERO, 1.0, sphere_top(freedom, num.bits)[1])


def _expect_zero(m: Any) -> None:
    if not is_zero(m):
        raise ArithmeticError("on the diagonal every angle is zero, but a rule made another one")


def diagonal(network: Any, box: Box, bits: int) -> OnRay:
    """Θ(x, x) for all x whose τ lies in the box; `network` as `exactly` makes it."""
    num = Ray(box, bits)
    length = Length(num.square)
    cov = Covariance(length, length, ZERO, 1.0, 1.0, ZERO)
    theta = rule(network, at_input(cov, cov), num).kernels(num).ntk
    return num.lift(theta)
