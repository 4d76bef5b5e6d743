r"""What an activation makes of a length that grows, vanishes, or tends to a number.

As $r \to \infty$ an activation is its asymptotes, or a wave; as $r \to 0$ it is the first term of its power series, on
either side of a kink at 0. So
each moment is $c\,r^p\,(1 + O(r^{\mp 1}))$ with a whole number p: its values at two lengths, both so large or so
small that float64 does not see the rest, give p exactly and c to the last digits.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from lnkernel.arch.elementwise import Elementwise
from lnkernel.errors import GrowthError
from lnkernel.evaluate.float64.moments import Moments, moments_of, moments_rule
from lnkernel.evaluate.leading.terms import Term

LONG = 1e90, 1e100
SHORT = 1e-30, 1e-40  # where sixth powers are still in the range of float64
NO_SHARE = 1e-12  # a mean below so much of the length is rounding, or vanishes beside it


class Image(NamedTuple):
    """Behind the activation, as leading terms, or as numbers."""

    square: Term  # E phi²
    variance: Term
    slopes: Term  # E phi'²
    share: Term  # E phi over the root of E phi²
    rest: Term  # the root of the variance over that of E phi²
    slope: Term  # q E phi'²/E phi²
    euler: Term  # E (u phi')²/E phi²


def image(layer: Elementwise, q: Term) -> Image:
    """The image of Gaussian coordinates with this squared length."""
    if moments_rule(layer) is None:
        raise GrowthError(type(layer).__name__)
    if q.coefficient == 0:  # the zero vector: the limit of short ones
        return Image(*(Term(part.limit) for part in image(layer, Term(1.0, -1.0))))
    if q.power == 0:
        found = _at_number(layer, q)
    else:
        laws = _laws(layer, LONG if q.power > 0 else SHORT)
        found = Moments(*(_in_length(law, q) for law in laws))
    return _assemble(_without_underflow(layer, found), q)


def _without_underflow(layer: Elementwise, found: Moments) -> Moments:
    """Next to a short length, a clip that is constant at 0 has a variance below any power of it: no number, rather
    than 0, by which a norm would divide."""
    if found.variance.coefficient == 0 and moments_of(layer, 1.0).variance > 0:
        return found._replace(variance=Term(math.nan, 0.0, whole=False))
    return found


def _assemble(found: Moments, q: Term) -> Image:
    root = _root(found.square)
    return Image(
        found.square,
        found.variance,
        found.slopes,
        share=found.mean / root,
        rest=_root(found.variance) / root,
        slope=q * found.slopes / found.square,
        euler=found.euler / found.square,
    )


def _at_number(layer: Elementwise, q: Term) -> Moments:
    found = moments_of(layer, math.sqrt(q.coefficient))
    return Moments(*(Term(moment, 0.0, q.whole) for moment in found))


@lru_cache(maxsize=256)
def _laws(layer: Elementwise, lengths: tuple[float, float]) -> Moments:
    """The moments as leading terms in the length."""
    one, two = (moments_of(layer, length) for length in lengths)
    mean, *rest = zip(one, two, strict=True)
    # rounding errors may have either sign
    nothing = abs(two.mean) <= NO_SHARE * math.sqrt(two.square)
    law = Term(0.0, 0.0, whole=False) if nothing else _power_law(*mean, lengths)
    return Moments(law, *(_power_law(*pair, lengths) for pair in rest))


def _power_law(one: float, two: float, lengths: tuple[float, float]) -> Term:
    if one == 0 or two == 0:
        return Term(0.0)
    power = round(math.log(two / one) / math.log(lengths[1] / lengths[0]))
    # one factor after another, against overflow
    coefficient = two * math.prod([lengths[1] ** -math.copysign(1, power)] * abs(power))
    return Term(coefficient, float(power), whole=False)


def _in_length(law: Term, q: Term) -> Term:
    """A law in the length r, as one in R, where r² = q."""
    half = law.power / 2
    return law if not half else Term(law.coefficient * q.coefficient**half, q.power * half, False)


def _root(x: Term) -> Term:
    return Term(math.sqrt(x.coefficient), x.power / 2, x.whole)
