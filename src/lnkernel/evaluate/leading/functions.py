"""What activations and norms need, at angle zero."""

from __future__ import annotations

import math
from typing import Any

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus import homogeneous
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.homogeneous import Tails, integer_moment
from lnkernel.calculus.series import hermite_series
from lnkernel.calculus.spherical import Spherical, spherical
from lnkernel.calculus.state import Mean
from lnkernel.errors import GrowthError
from lnkernel.evaluate.float64.moments import moments_of
from lnkernel.evaluate.leading.arithmetic import LeadingTerms
from lnkernel.evaluate.leading.terms import as_term


@homogeneous.tails.register
def _(num: LeadingTerms, degree: float, m: Any) -> Tails:
    """F_p is 1 on the near side and 0 on the far side, for every degree."""
    return Tails(far=0.0, gap=0.0, far_slope=0.0, near_slope=1.0)


@homogeneous.moment.register
def _(num: LeadingTerms, degree: float) -> float:
    if float(degree).is_integer() and degree >= 0:
        return integer_moment(int(degree))
    return 2 ** (degree - 1) * math.gamma(degree + 0.5) / math.sqrt(math.pi)


@homogeneous.half_share.register
def _(num: LeadingTerms, degree: float) -> float:
    below = 2 * math.sqrt(math.pi) * math.gamma(degree + 0.5)
    return math.gamma((degree + 1) / 2) / math.sqrt(below)


@spherical.register
def _(num: LeadingTerms, freedom: int, m: Any) -> Spherical:
    slope = 0.0 if freedom == 1 else (freedom - 1) / (freedom - 2)
    return Spherical(gap=0.0, value=1.0, slope=slope)


@hermite_series.register
def _(num: LeadingTerms, layer: Smooth, cov: Covariance, terms: int, degrees: Any = None) -> Dual:
    """Behind a normalisation without eps all lengths are one and the same number."""
    q = as_term(cov.first.q)
    if not (q.whole and q.power == 0):
        raise GrowthError(type(layer).__name__)
    found = moments_of(layer, math.sqrt(q.coefficient))
    length, share = (
        Length(found.square, live=found.square > 0),
        found.mean / math.sqrt(found.square),
    )
    rest = Length(found.variance, live=found.variance > 0)
    return Dual(
        total=Covariance(length, length, 0.0, 1.0, 1.0, 0.0),
        mean=Mean(share, share, 0.0),
        slope=q.coefficient * found.slopes / found.square,
        euler=found.euler / found.square,
        derivative=lambda: (found.slopes,),
        centred=Covariance(rest, rest, 0.0, 1.0, 1.0, 0.0),
    )
