r"""What the calculus needs of an activation: its Gaussian expectations for one pair.

For a pair of Gaussian coordinates $u, v$ with $r_1^2 = E u^2$, $r_2^2 = E v^2$, and $r_1'^2 = E\,\phi(u)^2$,
$r_2'^2 = E\,\phi(v)^2$ behind the activation, every activation has the same rule,

    t' = t * slope + g * euler.

An activation registers its `dual`. It is written over an abstract arithmetic, as all rules are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.state import Mean
from lnkernel.errors import ArchitectureError

Factors = tuple[Number, ...]


class Dual(NamedTuple):
    r"""The image of one pair of Gaussian states.

    The last three may be left out. A factor of `slope` that depends on single inputs alone can be kept
    apart as `gain`. `derivative` gives $E\,\phi'\phi'$ itself, as factors that are multiplied one after
    another; it is asked for only behind trainable biases, and needed where a length may be zero.
    `centred` is the pair less its mean features, where the general formula would lose digits.
    """

    total: Covariance  # lengths r1', r2', and the angle of K' = E phi(u)phi(v)
    mean: Mean | None  # E phi of each input, as shares of r1', r2'; None where both are zero
    slope: Number  # r1 r2 E[phi'(u)phi'(v)]/(r1' r2'), but for `gain`
    # E[u phi'(u) v phi'(v)]/(r1' r2'), or what gives it: it is asked for only behind trainable scales
    euler: Number | Callable[[], Number]
    gain: Number = 1.0
    derivative: Callable[[], Factors] | None = None
    centred: Covariance | None = None


@singledispatch
def dual(layer: Elementwise, cov: Covariance, num: Arithmetic) -> Dual:
    """The Gaussian expectations of one activation at a pair with this covariance."""
    raise ArchitectureError(
        type(layer).__name__,
        "",
        "this activation has no dual",
        "Register one in lnkernel.calculus.dual, or subclass lnkernel.PositivelyHomogeneous with "
        "degree, a and b",
    )


def derivative_factors(num: Arithmetic, cov: Covariance, made: Dual) -> Factors:
    r"""$E\,\phi'\phi'$, as factors."""
    if made.derivative is not None:
        return made.derivative()
    sides = (
        num.divide(num.sqrt(new.q), num.sqrt(old.q))
        for new, old in (
            (made.total.first, cov.first),
            (made.total.second, cov.second),
        )
    )
    return made.gain, made.slope, *sides


def without_mean(num: Arithmetic, total: Covariance, mean: Mean | None) -> Covariance:
    r"""The pair less its mean features. With shares $s_i = \sin\alpha_i$ of the lengths,
    $c = \cos\alpha_1\cos\alpha_2\, c_c + \sin\alpha_1\sin\alpha_2$, and so

        w_c = (w - sin^2((a1 - a2)/2))/(cos a1 cos a2),   z_c = (z - sin^2((a1 + a2)/2))/(cos a1 cos a2).
    """
    if mean is None:
        return total
    if mean.first is mean.second:  # one and the same share of all lengths
        share = mean.first
        rest = 1 - share * share  # what the mean leaves of E phi^2
        return Covariance(
            first=Length(total.first.q * rest, total.first.live),
            second=Length(total.second.q * rest, total.second.live),
            w=total.w / rest,
            z=(total.z - share * share) / rest,
            c=(total.c - share * share) / rest,
            e=total.e,
        )
    return _without_means(num, total, mean)


def _without_means(num: Arithmetic, total: Covariance, mean: Mean) -> Covariance:
    """Where the shares differ. The sine of the difference comes from the relative differences
    of the means and of the lengths, which do not cancel for inputs that are close."""
    s1, s2 = mean.first, mean.second
    squares = 1 - s1 * s1, 1 - s2 * s2
    u1, u2 = (num.sqrt(square) for square in squares)
    both = u1 * u2
    first, second = (
        Length(side.q * square, side.live)
        for side, square in zip((total.first, total.second), squares, strict=True)
    )
    same_sign, long = s1 * s2 > 0, abs(s1) + abs(s2)
    change = num.combined_difference(mean.e, -total.e, s1 * s1, s2 * s2)
    apart = num.where(same_sign, change * (long * long), s1 * s1 - s2 * s2)  # s1² - s2²
    turned = num.divide(apart, abs(s1) * u2 + abs(s2) * u1)  # sin(|a1| - |a2|)
    sine = num.where(same_sign, turned, s1 * u2 - s2 * u1)
    half = num.divide(0.5 * (sine * sine), 1 + (both + s1 * s2))
    w, c = (total.w - half) / both, (total.c - s1 * s2) / both
    z = (total.z - 0.5 * (1 - (both - s1 * s2))) / both
    # the lengths are r u, and u1 - u2 = (s2² - s1²)/(u1 + u2)
    grown = num.divide(-apart, (u1 + u2) * (u1 + u2))
    e = num.combined_difference(total.e, grown, first.q, second.q)
    return Covariance(first, second, w, z, c, e)
