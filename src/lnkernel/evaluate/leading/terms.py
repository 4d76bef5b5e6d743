r"""Leading terms $c\,R^k$ of functions of $R \to \infty$, as numbers.

A sum keeps the larger power, a product adds the powers. On the diagonal all the rules add are
non-negative terms, so no leading term ever cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

SAME_POWER = 1e-12  # powers are products of degrees, each rounded; no two that differ are so close


@dataclass(frozen=True)
class Term:
    """The leading term coefficient * R^power of a function of R; `whole`: there is no other."""

    coefficient: float
    power: float = 0.0
    whole: bool = True

    @property
    def limit(self) -> float:
        """The function's limit as R → ∞."""
        if self.coefficient == 0 or self.power < 0:
            return 0.0
        return self.coefficient if self.power == 0 else math.copysign(math.inf, self.coefficient)

    def __add__(self, other: Any) -> Term:
        other = as_term(other)
        if other.coefficient == 0 or self.coefficient == 0:
            larger = self if other.coefficient == 0 else other
            return Term(larger.coefficient, larger.power, self.whole and other.whole)
        if _same(self.power, other.power):
            total = self.coefficient + other.coefficient
            return Term(total, self.power, self.whole and other.whole)
        larger = self if self.power > other.power else other
        return Term(larger.coefficient, larger.power, whole=False)

    __radd__ = __add__

    def __neg__(self) -> Term:
        return Term(-self.coefficient, self.power, self.whole)

    def __sub__(self, other: Any) -> Term:
        return self + (-as_term(other))

    def __rsub__(self, other: Any) -> Term:
        return as_term(other) + (-self)

    def __mul__(self, other: Any) -> Term:
        other = as_term(other)
        product = self.coefficient * other.coefficient
        # nothing times anything is exactly nothing, whatever the anything
        nothing = any(t.coefficient == 0 and t.whole for t in (self, other))
        whole = nothing or (self.whole and other.whole)
        return Term(product, tidy(self.power + other.power) if product else 0.0, whole)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Term:
        other = as_term(other)
        if other.coefficient == 0:
            raise ZeroDivisionError("a leading term cannot be divided by one that vanishes")
        return self * Term(1 / other.coefficient, -other.power, other.whole)

    def __rtruediv__(self, other: Any) -> Term:
        return as_term(other) / self

    def __abs__(self) -> Term:
        return Term(abs(self.coefficient), self.power, self.whole)

    def __lt__(self, other: Any) -> bool:
        return (self - other).coefficient < 0

    def __le__(self, other: Any) -> bool:
        return (self - other).coefficient <= 0

    def __gt__(self, other: Any) -> bool:
        return (self - other).coefficient > 0

    def __ge__(self, other: Any) -> bool:
        return (self - other).coefficient >= 0

    def __eq__(self, other: object) -> bool:
        return (self - other).coefficient == 0

    __hash__ = None  # type: ignore[assignment]  # equal here means: equal up to smaller terms


def as_term(x: Any) -> Term:
    return x if isinstance(x, Term) else Term(float(x))


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME_POWER, abs_tol=SAME_POWER)


def tidy(power: float) -> float:
    """Powers that cancel do so exactly, and whole or half powers are that: k/2 + k/2 = k."""
    nearest = round(2 * power) / 2
    return nearest if _same(power, nearest) else power
