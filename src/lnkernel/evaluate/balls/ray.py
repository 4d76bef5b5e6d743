r"""Numbers along a ray: the diagonal Θ(x, x) as a function of the length of x, enclosed.

With $r = |x|^2/d$ and $\tau = r/(1+r)$, all lengths from 0 to infinity are a box in [0, 1]. A number
is carried as $v\,\tau^j (1-\tau)^{-k}$, where v stays away from 0 and infinity: so neither a
vanishing nor an infinite length is special, and quotients of the two kinds cancel exactly.
Of v, its range over the box and the range of its derivative are enclosed; by the mean value
theorem the error of a box then falls like the square of its width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb

from lnkernel.arch.node import known_zero
from lnkernel.calculus.arithmetic import Cosines, Softened, Spherical, Tails
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import at_input
from lnkernel.evaluate.balls import functions
from lnkernel.evaluate.balls.arithmetic import Balls
from lnkernel.evaluate.balls.numbers import Truth, balls


@dataclass(frozen=True)
class Box:
    """All τ from `low` to `high`, both exact."""

    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        return (self.low + self.high) / 2

    @cached_property
    def tau(self) -> arb:
        return functions.exact(self.low).union(functions.exact(self.high))

    @cached_property
    def rest(self) -> arb:
        return functions.exact(1 - self.low).union(functions.exact(1 - self.high))

    def weight(self, j: Fraction, k: Fraction) -> Jet:
        """tau^j (1 - tau)^k."""
        if (j, k) not in self._weights:
            one = _monomial(self.low, self.high, j, 1)
            two = _monomial(1 - self.high, 1 - self.low, k, -1)
            self._weights[j, k] = one if k == 0 else two if j == 0 else one * two
        return self._weights[j, k]

    @cached_property
    def _weights(self) -> dict[tuple[Fraction, Fraction], Jet]:
        return {}


@dataclass(frozen=True)
class Jet:
    """A function on the box: the ranges of its value and of its derivative."""

    value: arb
    slope: arb

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Jet) -> Jet:
        slope = self.slope * other.value + self.value * other.slope
        return Jet(self.value * other.value, slope)

    def inverse(self) -> Jet:
        value = 1 / self.value
        return Jet(value, -self.slope * value * value)

    def through(self, f: Callable[[arb], arb], derivative: Callable[[arb], arb]) -> Jet:
        """f of the function, by the chain rule."""
        return Jet(f(self.value), derivative(self.value) * self.slope)


def _monomial(low: Fraction, high: Fraction, exponent: Fraction, sign: int) -> Jet:
    """x^exponent on [low, high] in [0, 1] and its derivative, times the sign of dx/dtau."""
    if exponent == 0:
        return Jet(arb(1), arb(0))
    slope = _range(low, high, exponent - 1) * functions.exact(exponent)
    return Jet(_range(low, high, exponent), sign * slope)


def _range(low: Fraction, high: Fraction, exponent: Fraction) -> arb:
    if exponent == 0:
        return arb(1)
    if low == 0 and exponent < 0:
        return arb(0, arb.pos_inf())
    ends = [_real_power(end, exponent) for end in (low, high)]
    return ends[0] if low == high else ends[0].union(ends[1])


def _real_power(x: Fraction, exponent: Fraction) -> arb:
    base = functions.exact(x)
    if exponent == 1:
        return base
    return arb(0) if x == 0 else (functions.exact(exponent) * base.log()).exp()


class ZeroAngle(float):
    """w = sin²(θ/2) = 0 exactly, as everywhere on the diagonal; then z = 1, and θ is acute.

    The range of z over a box may be too wide to tell.
    """

    def __le__(self, other: Any) -> bool:
        return True

    def __add__(self, other: Any) -> Any:
        return self if is_zero(other) else other

    __radd__ = __add__

    def __mul__(self, other: Any) -> ZeroAngle:
        return self

    __rmul__ = __truediv__ = __mul__


ZERO = ZeroAngle(0.0)


@dataclass(frozen=True)
class OnRay:
    """The number v tau^j (1 - tau)^-k on a box. A product with an exact zero is exactly zero."""

    v: Jet
    j: Fraction
    k: Fraction
    box: Box

    def flat(self) -> Jet:
        """The plain function; its range is infinite where it diverges."""
        if self.j is NONE and self.k is NONE:
            return self.v
        return self.v * self.box.weight(self.j, -self.k)

    def inverse(self) -> OnRay:
        j, k = (power if power is NONE else -power for power in (self.j, self.k))
        return OnRay(self.v.inverse(), j, k, self.box)

    def _lifted(self, x: Any) -> OnRay:
        if isinstance(x, OnRay):
            return x
        return OnRay(Jet(balls(x), arb(0)), NONE, NONE, self.box)

    def __mul__(self, other: Any) -> Any:
        if is_zero(other):
            return ZERO
        if not isinstance(other, OnRay):
            factor = balls(other)
            v = Jet(self.v.value * factor, self.v.slope * factor)
            return OnRay(v, self.j, self.k, self.box)
        j, k = _sum(self.j, other.j), _sum(self.k, other.k)
        return OnRay(self.v * other.v, j, k, self.box)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * self._lifted(other).inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __add__(self, other: Any) -> Any:
        if is_zero(other):
            return self
        other = self._lifted(other)
        one, two, j, k = _aligned(self, other)
        v = self.v if one is None else self.v * one
        return OnRay(v + (other.v if two is None else other.v * two), j, k, self.box)

    __radd__ = __add__

    def __neg__(self) -> OnRay:
        return OnRay(Jet(-self.v.value, -self.v.slope), self.j, self.k, self.box)

    def __sub__(self, other: Any) -> Any:
        return self + (-1) * other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __abs__(self) -> OnRay:
        if self.v.value >= 0:
            return self
        if self.v.value <= 0:
            return -self
        slope = self.v.slope.union(-self.v.slope)
        return OnRay(Jet(abs(self.v.value), slope), self.j, self.k, self.box)

    def __lt__(self, other: Any) -> Truth:
        sign = _sign_of(self - other)
        return Truth(sign < 0, sign >= 0)

    def __le__(self, other: Any) -> Truth:
        sign = _sign_of(self - other)
        return Truth(sign <= 0, sign > 0)

    def __gt__(self, other: Any) -> Truth:
        yes, no = self <= other
        return Truth(no, yes)

    def __ge__(self, other: Any) -> Truth:
        yes, no = self < other
        return Truth(no, yes)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        sign = _sign_of(self - other)
        return Truth(sign != 0, sign == 0)


NONE = Fraction(0)  # the power of most numbers; told apart by identity, which is quick
ONE = Jet(arb(1), arb(0))


def _sum(one: Fraction, two: Fraction) -> Fraction:
    if one is NONE:
        return two
    return one if two is NONE else (one + two) or NONE


def _difference(one: Fraction, two: Fraction) -> Fraction:
    return NONE if one is two else (one - two) or NONE


def _aligned(one: OnRay, two: OnRay) -> tuple[Jet | None, Jet | None, Fraction, Fraction]:
    """What the v of each is multiplied by to have common powers j and k; None for 1."""
    if one.j is two.j and one.k is two.k:
        return None, None, one.j, one.k
    j, k = min(one.j, two.j), max(one.k, two.k)
    weights = []
    for x in (one, two):
        powers = _difference(x.j, j), _difference(k, x.k)
        plain = powers[0] is NONE and powers[1] is NONE
        weights.append(None if plain else x.box.weight(*powers))
    return weights[0], weights[1], j, k


def is_zero(x: Any) -> bool:
    if isinstance(x, OnRay):
        return False
    return bool(x.is_zero()) if isinstance(x, arb) else known_zero(x)


def _sign_of(x: Any) -> Any:
    return x.v.value if isinstance(x, OnRay) else balls(x)


class RayArithmetic(Balls):
    """The arithmetic of the diagonal on one box: all angles are 0, exactly."""

    def __init__(self, box: Box, bits: int):
        super().__init__(bits)
        self.box = box

    @cached_property
    def square(self) -> OnRay:
        r"""$|x|^2/d = \tau/(1-\tau)$."""
        return OnRay(Jet(arb(1), arb(0)), Fraction(1), Fraction(1), self.box)

    def lifted(self, x: Any) -> OnRay:
        """A constant as a number on the ray."""
        return self.square._lifted(x)

    def sqrt(self, x: Any) -> Any:
        if is_zero(x):
            return ZERO
        x = self.lifted(x)  # also a constant: a plain ball would make a ball of an exact zero
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
        return x * x if isinstance(x, OnRay) else super().squared(x)

    def power(self, x: Any, degree: float) -> Any:
        if not isinstance(x, OnRay):
            return super().power(x, degree)
        if degree == 1:
            return x
        p = functions.exact(degree)
        raise_to = lambda q: lambda value: (q * value.log()).exp()  # noqa: E731
        v = x.v.through(raise_to(p), lambda value: p * raise_to(p - 1)(value))
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
        x, y = self.lifted(x), self.lifted(y)
        one, two, j, k = _aligned(x, y)
        ratio = y.v * x.v.inverse()
        below = (ONE if one is None else one) + (ratio if two is None else ratio * two)
        j, k = _difference(x.j, j), _difference(x.k, k)
        return OnRay(below.inverse(), j, k, self.box)

    def divide(self, x: Any, y: Any) -> Any:
        if is_zero(x):
            return ZERO
        return self.lifted(x) / y

    def powered_difference(self, e: Any, degree: float, first: Any, second: Any) -> Any:
        return ZERO

    def combined_difference(self, e: Any, change: Any, first: Any, second: Any) -> Any:
        return ZERO

    def tails(self, degree: float, m: Any) -> Tails:
        _expect_zero(m)
        return Tails(ZERO, ZERO, ZERO, 1.0)

    def spherical(self, freedom: int, m: Any) -> Spherical:
        _expect_zero(m)
        return Spherical(ZERO, 1.0, functions.sphere_top(freedom, self.bits)[1])

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(condition, bool):
            return yes if condition else no
        if condition.yes or condition.no:
            return yes if condition.yes else no
        one, two = (self.lifted(x).flat() for x in (yes, no))
        union = Jet(one.value.union(two.value), one.slope.union(two.slope))
        return OnRay(union, NONE, NONE, self.box)


def _expect_zero(m: Any) -> None:
    if not is_zero(m):
        raise ArithmeticError("on the diagonal every angle is zero, but a rule made another one")


def diagonal(network: Any, box: Box, bits: int) -> OnRay:
    """Θ(x, x) for all x whose τ lies in the box; `network` as `exactly` makes it."""
    num = RayArithmetic(box, bits)
    length = Length(num.square)
    cov = Covariance(length, length, ZERO, 1.0, 1.0, ZERO)
    theta = rule(network, at_input(cov, cov), num).kernels(num).ntk
    return num.lifted(theta)
