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

from lnkernel.check.plain import known_zero
from lnkernel.evaluate.balls.numbers import Truth, balls, exact


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
        return exact(self.low).union(exact(self.high))

    @cached_property
    def rest(self) -> arb:
        return exact(1 - self.low).union(exact(1 - self.high))

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
    slope = _range(low, high, exponent - 1) * exact(exponent)
    return Jet(_range(low, high, exponent), sign * slope)


def _range(low: Fraction, high: Fraction, exponent: Fraction) -> arb:
    if exponent == 0:
        return arb(1)
    if low == 0 and exponent < 0:
        return arb(0, arb.pos_inf())
    ends = [_real_power(end, exponent) for end in (low, high)]
    return ends[0] if low == high else ends[0].union(ends[1])


def _real_power(x: Fraction, exponent: Fraction) -> arb:
    base = exact(x)
    if exponent == 1:
        return base
    return arb(0) if x == 0 else (exact(exponent) * base.log()).exp()


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

    def lift(self, x: Any) -> OnRay:
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
        return self * self.lift(other).inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __add__(self, other: Any) -> Any:
        if is_zero(other):
            return self
        other = self.lift(other)
        one, two, j, k = align(self, other)
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

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]  # it may be undecided
        sign = _sign_of(self - other)
        return Truth(sign != 0, sign == 0)


NONE = Fraction(0)  # the power of most numbers; told apart by identity, which is quick
ONE = Jet(arb(1), arb(0))


def _sum(one: Fraction, two: Fraction) -> Fraction:
    if one is NONE:
        return two
    return one if two is NONE else (one + two) or NONE


def difference(one: Fraction, two: Fraction) -> Fraction:
    return NONE if one is two else (one - two) or NONE


def align(one: OnRay, two: OnRay) -> tuple[Jet | None, Jet | None, Fraction, Fraction]:
    """What the v of each is multiplied by to have common powers j and k; None for 1."""
    if one.j is two.j and one.k is two.k:
        return None, None, one.j, one.k
    j, k = min(one.j, two.j), max(one.k, two.k)
    weights = []
    for x in (one, two):
        powers = difference(x.j, j), difference(k, x.k)
        plain = powers[0] is NONE and powers[1] is NONE
        weights.append(None if plain else x.box.weight(*powers))
    return weights[0], weights[1], j, k


def is_zero(x: Any) -> bool:
    if isinstance(x, OnRay):
        return False
    return bool(x.is_zero()) if isinstance(x, arb) else known_zero(x)


def _sign_of(x: Any) -> Any:
    return x.v.value if isinstance(x, OnRay) else balls(x)
