"""What activations and norms need, at angle zero."""

from __future__ import annotations

import math
from typing import Any

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.smooth import Smooth
from lnkernel.calculus import homogeneous
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.homogeneous import Tails, integer_moment
from lnkernel.calculus.series import expectations
from lnkernel.calculus.spherical import Spherical, spherical
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.leading.activations import image
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


@expectations.register
def _(num: LeadingTerms, layer: Smooth, cov: Covariance, terms: int, *more: Any) -> Dual:
    return dual_by_moments(num, layer, cov)


def dual_by_moments(num: LeadingTerms, layer: Elementwise, cov: Covariance) -> Dual:
    """The dual of an activation whose moments are known at every length."""
    made = image(layer, as_term(cov.first.q))
    num.amplified.append(made.slope.power > 0)
    length = Length(made.square, live=made.square.coefficient > 0)
    rest = Length(made.variance, live=made.variance.coefficient != 0)
    return Dual(
        total=Covariance(length, length, 0.0, 1.0, 1.0, 0.0),
        mean=Mean(made.share, made.share, 0.0, Both(made.rest, made.rest)),
        slope=made.slope,
        euler=made.euler,
        derivative=lambda: (made.slopes,),
        centred=Covariance(rest, rest, 0.0, 1.0, 1.0, 0.0),
    )
