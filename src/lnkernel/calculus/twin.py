r"""Numbers at two places, with their difference to full relative accuracy.

Where two inputs are close, $E\,\phi(u)^2$ and $E\,\phi(u)\phi(v)$ agree in most of their digits, and the small angle
behind the activation is made of their difference. A formula that is run on twins gives both numbers, and their
difference by the rules of finite differences, in which nothing cancels: $xy - x'y' = (x - x')\,y + x'\,(y - y')$.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.elementary import (
    arcsine,
    arcsine_ratio,
    arcsine_ratio_gap,
    fallen,
    falling,
    sharper,
)


@dataclass(frozen=True)
class Twin:
    """A number at one place and at another, and the one less the other."""

    one: Number
    other: Number
    gap: Number

    __array_ufunc__ = None  # NumPy's arrays leave `array * twin` to us

    def __add__(self, more: Any) -> Twin:
        if isinstance(more, Twin):
            return Twin(self.one + more.one, self.other + more.other, self.gap + more.gap)
        return Twin(self.one + more, self.other + more, self.gap)

    __radd__ = __add__

    def __neg__(self) -> Twin:
        return Twin(-self.one, -self.other, -self.gap)

    def __sub__(self, less: Any) -> Twin:
        return self + (-less)

    def __rsub__(self, more: Any) -> Twin:
        return -self + more

    def __mul__(self, by: Any) -> Twin:
        if isinstance(by, Twin):
            gap = self.gap * by.one + self.other * by.gap
            return Twin(self.one * by.one, self.other * by.other, gap)
        return Twin(self.one * by, self.other * by, self.gap * by)

    __rmul__ = __mul__


class Elementary:
    """Functions of plain numbers, for formulas that run on these and on twins."""

    def __init__(self, num: Arithmetic):
        self.num = num

    def sqrt(self, x: Any) -> Any:
        return self.num.sqrt(x)

    def inverse(self, x: Any) -> Any:
        """1/x for x > 0."""
        return self.num.divide(1.0, x)

    def arcsine(self, sine: Any, cosine: Any) -> Any:
        return arcsine(self.num, sine, cosine)

    def arcsine_ratio(self, sine: Any, cosine: Any) -> Any:
        return arcsine_ratio(self.num, sine, cosine)

    def falling(self, x: Any) -> Any:
        return falling(self.num, x)

    def fallen(self, x: Any) -> Any:
        return fallen(self.num, x)


class OfTwins(Elementary):
    """The same functions of twins."""

    def sqrt(self, x: Any) -> Any:
        one, other = self.num.sqrt(x.one), self.num.sqrt(x.other)
        return Twin(one, other, self.num.divide(x.gap, one + other))

    def inverse(self, x: Any) -> Any:
        one, other = (self.num.divide(1.0, side) for side in (x.one, x.other))
        return Twin(one, other, -x.gap * one * other)

    def arcsine(self, sine: Any, cosine: Any) -> Any:
        """sin(a - b) = (sin a - sin b)(sin a + sin b)/(sin a cos b + cos a sin b), for sines >= 0."""
        one, other = (
            arcsine(self.num, s, c) for s, c in ((sine.one, cosine.one), (sine.other, cosine.other))
        )
        crossed = sine.one * cosine.other + cosine.one * sine.other
        turned = self.num.divide(sine.gap * (sine.one + sine.other), crossed)
        along = cosine.one * cosine.other + sine.one * sine.other
        return Twin(one, other, arcsine(self.num, turned, along))

    def arcsine_ratio(self, sine: Any, cosine: Any) -> Any:
        one, other = (
            arcsine_ratio(self.num, s, c)
            for s, c in ((sine.one, cosine.one), (sine.other, cosine.other))
        )
        turned = self.arcsine(sine, cosine).gap - other * sine.gap
        by_rule = self.num.divide(turned, sine.one)
        sines = sine.one, sine.other, sine.gap
        return Twin(one, other, arcsine_ratio_gap(self.num, *sines, by_rule, one - other))

    def falling(self, x: Any) -> Any:
        one, other = (falling(self.num, side) for side in (x.one, x.other))
        return Twin(one, other, self._less(x, one, other))

    def fallen(self, x: Any) -> Any:
        low = self.falling(x)
        one, other = (fallen(self.num, side) for side in (x.one, x.other))
        return Twin(one, other, -low.gap)

    def _less(self, x: Any, one: Any, other: Any) -> Any:
        """exp(-x) - exp(-x'), from the larger of both."""
        gap = sharper(self.num, x.gap, x.one - x.other)
        change = fallen(self.num, abs(gap))
        return self.num.where(gap > 0, -other * change, one * change)
