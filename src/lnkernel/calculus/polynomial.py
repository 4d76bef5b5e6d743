r"""The dual of a polynomial, as an orthogonal sum of Hermite polynomials, in every number system.

$\sum_j c_j (ru)^j = \sum_n A_n(r)\,h_n(u)$ with

    A_n(r) = 1/sqrt(n!) sum_j c_j j!/(2^i i!) r^j,   j = n + 2i.

The part $n$ of a pair has lengths $|A_n(r_1)|$ and $|A_n(r_2)|$ and an angle of cosine $\pm\rho^n$.
Nothing is divided by a length, and only coefficients of different signs can cancel, as they do in $\phi$ itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import NamedTuple

from lnkernel.arch.polynomial import Hermite, Polynomial
from lnkernel.calculus.arithmetic import Arithmetic, Number, Truth
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.state import Mean
from lnkernel.check.plain import known_zero


@dual.register
def _(layer: Polynomial, cov: Covariance, num: Arithmetic) -> Dual:
    return polynomial_dual(num, layer.coefficients, cov)


@dual.register
def _(layer: Hermite, cov: Covariance, num: Arithmetic) -> Dual:
    """He_n has whole coefficients; its square is divided by n!."""
    divisor = math.factorial(layer.degree)
    made = polynomial_dual(num, layer.integers, cov, divisor)
    assert made.derivative is not None
    derivative = made.derivative
    return made._replace(derivative=lambda: (1 / num.real(divisor), *derivative()))


@singledispatch
def exact_squares(
    num: Arithmetic, coefficients: Sequence[Number], q: Number, divisor: int
) -> tuple[Number, Number] | None:
    r"""$E\,\phi^2$ and the variance of $\phi$, both over a whole number, where the number system has more digits for
    squared lengths than for others; a cubic makes three of one relative error of a length, two of them nine."""
    return None


def _with_squares(
    num: Arithmetic,
    coefficients: Sequence[Number],
    cov: Covariance,
    divisor: int,
    total: Covariance,
    centred: Covariance,
) -> list[Covariance]:
    """The images divided by the root of a whole number, with exact lengths if there are any."""
    sides = [exact_squares(num, coefficients, side.q, divisor) for side in (cov.first, cov.second)]
    factor = 1 / num.real(divisor)
    made = []
    for place, image in enumerate((total, centred)):
        first, second = (
            replace(side, q=side.q * factor if exact is None else exact[place])
            for side, exact in zip((image.first, image.second), sides, strict=True)
        )
        made.append(image.with_lengths(first, second, image.e))
    return made


def polynomial_dual(
    num: Arithmetic, coefficients: Sequence[Number], cov: Covariance, divisor: int = 1
) -> Dual:
    """The dual of a polynomial over the root of `divisor`."""
    monomials = {
        j: Monomial(num.where(c < 0, -1.0, 1.0), abs(c))
        for j, c in enumerate(coefficients)
        if not known_zero(c)
    }
    sides = _scaled_sides(num, monomials, cov)
    angles = _powers_of_cosine(cov, max(monomials))
    orders = [n for n in range(max(monomials) + 1) if _degrees(monomials, n)]
    parts = [_part(num, n, monomials, sides, cov, angles[n]) for n in orders]
    total, shares = _join(num, parts, sides)
    centred, _ = _join(num, [part for part in parts if part.n > 0], sides)
    lengths = [
        num.sqrt(num.divide(whole.q, side.square))
        for whole, side in zip((total.first, total.second), sides, strict=True)
    ]
    slope = sum(
        part.n * (share * part.sign) * angles[part.n - 1][2]
        for part, share in zip(parts, shares, strict=True)
        if part.n > 0
    )
    euler = sum(
        num.divide(part.euler[0], lengths[0])
        * num.divide(part.euler[1], lengths[1])
        * angles[part.n][2]
        for part in parts
    )
    mean = None
    if orders[0] == 0:
        constant = parts[0]
        one, two = (num.divide(abs(x), r) for x, r in zip(constant.features, lengths, strict=True))
        first = num.where(constant.features[0] < 0, -1.0, 1.0)
        mean = Mean(first * one, first * constant.sign * two, constant.covariance.e)
    total, centred = _with_squares(num, coefficients, cov, divisor, total, centred)
    return Dual(
        total=total,
        mean=mean,
        slope=slope,
        euler=euler,
        derivative=lambda: (_derivative(num, monomials, cov, angles),),
        centred=centred,
    )


class Monomial(NamedTuple):
    """c u^j: the sign of c, and |c|."""

    sign: Number
    size: Number


class Side(NamedTuple):
    r"""One input. The sum $M = \sum_j |c_j|\,r^j$ may leave the range of float64; what is divided by it does not."""

    square: Number  # M²
    own: dict[int, Number]  # |c_j| r^j/M, by degree
    common: dict[int, Number]  # the same over the sum of both inputs' M
    live: Truth  # of the input; the constant is alive in any case


def _scaled_sides(
    num: Arithmetic, monomials: dict[int, Monomial], cov: Covariance
) -> tuple[Side, Side]:
    lengths = cov.first, cov.second
    sizes = [
        {j: _power(num, side.q, j) * each.size for j, each in monomials.items()} for side in lengths
    ]
    sums = [_sum(list(some.values())) for some in sizes]
    both = sums[0] + sums[1]
    one, two = (
        Side(
            whole * whole,
            {j: num.divide(size, whole) for j, size in some.items()},
            {j: num.divide(size, both) for j, size in some.items()},
            side.live,
        )
        for some, whole, side in zip(sizes, sums, lengths, strict=True)
    )
    return one, two


def _power(num: Arithmetic, q: Number, degree: int) -> Number:
    """r^degree, with the range of squared lengths."""
    even = num.power(q, degree // 2) if degree > 1 else num.squared(num.real(1.0))
    return even * num.sqrt(q) if degree % 2 else even


def _sum(numbers: list[Number]) -> Number:
    return sum(numbers[1:], numbers[0])


def _degrees(monomials: dict[int, Monomial], n: int) -> list[int]:
    return [j for j in monomials if j >= n and (j - n) % 2 == 0]


def hermite_integer(j: int, n: int) -> float:
    """j!/(2^i i!) with j = n + 2i: a whole number."""
    i = (j - n) // 2
    return float(math.factorial(j) // (2**i * math.factorial(i)))


def _powers_of_cosine(cov: Covariance, highest: int) -> list[tuple[Number, Number, Number]]:
    """(w, z, c) of angles with the cosines rho^n: 1 - rho^(n+2) = (1 - rho^n) + 4wz rho^n."""
    turn = 2 * (cov.w * cov.z)  # (1 - rho²)/2
    found = [(0.0, 1.0, 1.0), (cov.w, cov.z, cov.c)]
    while len(found) <= highest:
        w, z, c = found[-2]
        found.append((w + turn * c, z - turn * c, c * (cov.c * cov.c)))
    return found


@dataclass(frozen=True)
class Part:
    """The n-th Hermite polynomial of both inputs, whose features are relative to M."""

    n: int
    covariance: Covariance
    sign: Number  # of the product of both features
    features: tuple[Number, Number]
    euler: tuple[Number, Number]  # those of u phi'(u)
    common: tuple[Number, Number]  # the features over the sum of both M


def _part(
    num: Arithmetic,
    n: int,
    monomials: dict[int, Monomial],
    sides: tuple[Side, Side],
    cov: Covariance,
    angle: tuple[Number, Number, Number],
) -> Part:
    norm = 1 / num.sqrt(num.real(math.factorial(n)))
    weights = {
        j: monomials[j].sign * num.real(hermite_integer(j, n)) for j in _degrees(monomials, n)
    }
    features = tuple(norm * sum(x * side.own[j] for j, x in weights.items()) for side in sides)
    euler = tuple(norm * sum(j * x * side.own[j] for j, x in weights.items()) for side in sides)
    common = [norm * sum(x * side.common[j] for j, x in weights.items()) for side in sides]
    opposite = features[0] * features[1] < 0
    long = abs(common[0]) + abs(common[1])
    # |A_n(r1)| - |A_n(r2)|, from the differences of the powers of the lengths where the signs are equal
    apart = 0.0
    for j, x in weights.items():
        if j and not known_zero(cov.e):
            squares = (num.power(side.q, j) for side in (cov.first, cov.second))
            e = num.powered_difference(cov.e, j, *squares)
            apart = apart + norm * x * e * (sides[0].common[j] + sides[1].common[j])
    turned = num.where(features[0] < 0, -1.0, 1.0) * apart
    e = num.divide(num.where(opposite, abs(common[0]) - abs(common[1]), turned), long)
    alive = n == 0 and 0 in monomials
    first, second = (
        Length(x * x, True if alive else side.live) for x, side in zip(features, sides, strict=True)
    )
    w, z, c = angle
    flipped = [num.where(opposite, yes, no) for yes, no in ((z, w), (w, z), (-c, c))]
    return Part(
        n,
        Covariance(first, second, flipped[0], flipped[1], flipped[2], e),
        num.where(opposite, -1.0, 1.0),
        (features[0], features[1]),
        (euler[0], euler[1]),
        (common[0], common[1]),
    )


def _join(
    num: Arithmetic, parts: list[Part], sides: tuple[Side, Side]
) -> tuple[Covariance, list[Number]]:
    """The orthogonal sum, in the lengths that it has; and the shares of the parts."""
    total, shares = orthogonal_sum(num, [part.covariance for part in parts])
    first, second = (
        replace(length, q=side.square * length.q)
        for length, side in zip((total.first, total.second), sides, strict=True)
    )
    # e' = sum e_n ((|A_n1| + |A_n2|)/(L_1 + L_2))², with all lengths over one and the same number
    long = sum(
        num.sqrt(sum(x * x for x in column))
        for column in zip(*(p.common for p in parts), strict=True)
    )
    e = 0.0
    for part in parts:
        ratio = num.divide(abs(part.common[0]) + abs(part.common[1]), long)
        e = e + part.covariance.e * (ratio * ratio)
    return total.with_lengths(first, second, e), shares


def _derivative(
    num: Arithmetic,
    monomials: dict[int, Monomial],
    cov: Covariance,
    angles: list[tuple[Number, Number, Number]],
) -> Number:
    r"""$E\,\phi'\phi'$ itself: the lengths may be 0."""
    lengths = [num.sqrt(side.q) for side in (cov.first, cov.second)]
    total = 0.0
    for n in range(1, len(angles)):
        features = [
            sum(
                monomials[j].sign
                * (monomials[j].size * num.real(hermite_integer(j, n)))
                * math.prod([r] * (j - 1), start=1.0)
                for j in _degrees(monomials, n)
            )
            for r in lengths
        ]
        weight = num.real(n) / num.real(math.factorial(n))
        total = total + (features[0] * features[1]) * angles[n - 1][2] * weight
    return total
