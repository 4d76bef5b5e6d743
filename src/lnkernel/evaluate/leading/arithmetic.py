"""Leading terms as an arithmetic of the calculus."""

from __future__ import annotations

import math
from typing import Any

from lnkernel.calculus.arithmetic import Cosines, Softened
from lnkernel.evaluate.leading.terms import Term, as_term, tidy


class LeadingTerms:
    """The arithmetic of leading terms, for a pair of equal inputs: every angle is zero.

    `amplified` notes of each activation, but for homogeneous ones and polynomials, in the order of the
    data, whether it multiplies Θ/q by a number that grows without limit.
    """

    name, purpose = "leading terms", "law of growth"
    rounds_angles = False

    def __init__(self) -> None:
        self.amplified: list[bool] = []

    def sqrt(self, x: Any) -> Term:
        x = as_term(x)
        return Term(math.sqrt(x.coefficient), x.power / 2, x.whole)

    def power(self, x: Any, degree: float) -> Term:
        x = as_term(x)
        return Term(x.coefficient**degree, tidy(x.power * degree), x.whole)

    def real(self, x: float) -> float:
        return float(x)

    def squared(self, x: Any) -> Term:
        return as_term(x) * x

    def cosines(self, leg_square: Any, other: Any) -> Cosines:
        square = leg_square + self.squared(other)
        leg, rest = (self.sqrt(part / square) for part in (leg_square, self.squared(other)))
        return Cosines(leg, rest, square)

    def softened(self, square: Any, eps: Any) -> Softened:
        total = as_term(square) + eps
        return Softened(self.sqrt(square / total), self.sqrt(total))

    def divide(self, x: Any, y: Any) -> Term:
        return as_term(x) if as_term(y).coefficient == 0 else as_term(x) / y

    def powered_difference(self, e: Any, degree: float, first: Any, second: Any) -> float:
        return 0.0

    def combined_difference(self, e: Any, change: Any, first: Any, second: Any) -> float:
        return 0.0

    def length_difference(self, first: Any, second: Any) -> float:
        return 0.0

    def where(self, condition: bool, yes: Any, no: Any) -> Any:
        return yes if condition else no

    def either(self, one: bool, other: bool) -> bool:
        return one or other

    def as_number(self, truth: Any) -> Any:
        return truth if isinstance(truth, Term) else float(truth)
