r"""How Θ(x, x) behaves as |x| → ∞ and as |x| → 0: its leading term, exactly.

The rules of the calculus run here on one more number system: leading terms $c\,R^k$ of
functions of $R \to \infty$. A sum keeps the larger power, a product adds the powers. On the
diagonal all the rules add are non-negative terms, so no leading term ever cancels, and what
comes out is the limit, or the power law, of Θ(x, x) itself and not of a sample of it.

The far end puts $|x|^2/d = R$ in at the start, the near end $|x|^2/d = 1/R$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from lnkernel.arch import Node
from lnkernel.arch.flow import check_network
from lnkernel.calculus import gaussian
from lnkernel.calculus.arithmetic import Cosines, Softened, Spherical, Tails
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import at_input
from lnkernel.errors import InputError

SAME_POWER = 1e-12  # powers are products of degrees, each rounded; no two that differ are so close


class Growth(NamedTuple):
    r"""$\Theta(x, x) \sim \text{coefficient} \cdot (|x|/\sqrt d)^{\text{exponent}}$ as |x| → ∞."""

    exponent: float
    coefficient: float


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
        return Term(product, _tidy(self.power + other.power) if product else 0.0, whole)

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


class LeadingTerms:
    """The arithmetic of leading terms, for a pair of equal inputs: every angle is zero."""

    def sqrt(self, x: Any) -> Term:
        x = as_term(x)
        return Term(math.sqrt(x.coefficient), x.power / 2, x.whole)

    def power(self, x: Any, degree: float) -> Term:
        x = as_term(x)
        return Term(x.coefficient**degree, _tidy(x.power * degree), x.whole)

    def real(self, x: float) -> float:
        return float(x)

    def squared(self, x: Any) -> Term:
        return as_term(x) * x

    def moment(self, degree: float) -> float:
        return gaussian.moment(degree)

    def mean_share(self, degree: float) -> float:
        below = 2 * math.sqrt(math.pi) * math.gamma(degree + 0.5)
        return math.gamma((degree + 1) / 2) / math.sqrt(below)

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

    def tails(self, degree: float, m: Any) -> Tails:
        """At angle zero F_p is 1 on the near side and 0 on the far side, for every degree."""
        return Tails(far=0.0, gap=0.0, far_slope=0.0, near_slope=1.0)

    def spherical(self, freedom: int, m: Any) -> Spherical:
        slope = 0.0 if freedom == 1 else (freedom - 1) / (freedom - 2)
        return Spherical(gap=0.0, value=1.0, slope=slope)

    def where(self, condition: bool, yes: Any, no: Any) -> Any:
        return yes if condition else no

    def either(self, one: bool, other: bool) -> bool:
        return one or other

    def as_number(self, truth: Any) -> Any:
        return truth if isinstance(truth, Term) else float(truth)


def far(arch: Node) -> Term:
    """The leading term of Θ(x, x) in R = |x|²/d → ∞."""
    return _through(arch, Term(1.0, 1.0))


def near(arch: Node) -> Term:
    """The leading term of Θ(x, x) in R = d/|x|² → ∞: what it tends to as x → 0, x not 0."""
    return _through(arch, Term(1.0, -1.0))


def at_zero(arch: Node) -> float:
    """Θ(0, 0), by the same rules. It is the limit as x → 0 if the first bias is not zero; without
    one it is another number, and infinite where a later layer divides by a length that is 0."""
    try:
        return _through(arch, Term(0.0)).coefficient
    except ZeroDivisionError:
        return math.inf


def growth(arch: Node) -> Growth:
    """The power law of Θ(x, x) in |x|/√d; exponent 0 where it tends to a constant.

    >>> import lnkernel as lnk
    >>> from lnkernel.evaluate.leading.growth import growth
    >>> growth(lnk.mlp(hidden=2, W_std=2**0.5))           # Θ ~ 3 |W x|²/d: degree 1, three layers
    Growth(exponent=2.0, coefficient=6.0...)
    >>> growth(lnk.mlp(hidden=2, activation=lnk.RectifiedPower(3), W_std=1.0)).exponent
    18.0
    """
    term = far(arch)
    return Growth(2 * term.power, term.coefficient)


def concrete(arch: Node) -> Node:
    """`arch` with plain numbers for hyperparameters; inside a transformation there are none."""
    check_network(arch)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arch)):
        raise InputError(
            "arch",
            "plain numbers for hyperparameters",
            "tracers of a jax.jit, jax.grad or jax.vmap around this call",
            "Call it outside of the transformation: a supremum is not differentiated here",
        )
    made: Node = jax.tree.map(float, arch)
    return made


def _through(arch: Node, square: Term) -> Term:
    num = LeadingTerms()
    length = Length(square, live=square.coefficient > 0)
    start = Covariance(length, length, w=0.0, z=1.0, c=1.0, e=0.0)
    return as_term(rule(concrete(arch), at_input(start, start), num).kernels(num).ntk)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME_POWER, abs_tol=SAME_POWER)


def _tidy(power: float) -> float:
    """Powers that cancel do so exactly, and whole or half powers are that: k/2 + k/2 = k."""
    nearest = round(2 * power) / 2
    return nearest if _same(power, nearest) else power
