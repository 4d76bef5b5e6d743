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
from typing import NamedTuple

from lnkernel.arch.polynomial import Hermite, Polynomial
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.state import Mean
from lnkernel.check import known_zero


class Monomial(NamedTuple):
    """c u^j as part of the n-th Hermite polynomial: degree j, sign of c, and |c| j!/(2^i i!)."""

    degree: int
    sign: Number
    size: Number


@dataclass(frozen=True)
class Part:
    """The n-th Hermite polynomial of both inputs."""

    n: int
    covariance: Covariance
    sign: Number  # of the product A_n(r1) A_n(r2)
    first: Number  # the sign of A_n(r1)
    euler: tuple[
        Number, Number
    ]  # those of u phi'(u), over the lengths of the whole image, squared sizes apart
    bounds: tuple[
        Number, Number
    ]  # the sums of absolute values that `euler` is relative to, squared


@dual.register
def _(layer: Polynomial, cov: Covariance, num: Arithmetic) -> Dual:
    return polynomial_dual(num, layer.coefficients, cov)


@dual.register
def _(layer: Hermite, cov: Covariance, num: Arithmetic) -> Dual:
    """He_n has whole coefficients; its square is divided by n!."""
    made = polynomial_dual(num, layer.integers, cov)
    factor = 1 / num.real(math.factorial(layer.degree))
    assert made.centred is not None and made.derivative is not None
    derivative = made.derivative
    return made._replace(
        total=_shrunk(made.total, factor),
        centred=_shrunk(made.centred, factor),
        derivative=lambda: (factor, *derivative()),
    )


def _shrunk(cov: Covariance, factor: Number) -> Covariance:
    first, second = (replace(side, q=side.q * factor) for side in (cov.first, cov.second))
    return cov.with_lengths(first, second, cov.e)


def polynomial_dual(num: Arithmetic, coefficients: Sequence[Number], cov: Covariance) -> Dual:
    highest = max(j for j, c in enumerate(coefficients) if not known_zero(c))
    angles = _powers_of_cosine(cov, highest)
    parts = [
        _part(num, n, monomials, cov, angles[n], starts=not known_zero(coefficients[0]))
        for n in range(highest + 1)
        if (monomials := _monomials(num, coefficients, n))
    ]
    total, shares = orthogonal_sum(num, [part.covariance for part in parts])
    varying = [part for part in parts if part.n > 0]
    centred, _ = orthogonal_sum(num, [part.covariance for part in varying])
    slope = sum(
        part.n * (share * part.sign) * angles[part.n - 1][2]
        for part, share in zip(parts, shares, strict=True)
        if part.n > 0
    )
    euler = sum(_euler(num, part, total) * angles[part.n][2] for part in parts)
    mean = None if parts[0].n > 0 else _mean(num, parts[0], total)
    return Dual(
        total=total,
        mean=mean,
        slope=slope,
        euler=euler,
        derivative=lambda: (_derivative(num, coefficients, cov, angles),),
        centred=centred,
    )


def _powers_of_cosine(cov: Covariance, highest: int) -> list[tuple[Number, Number, Number]]:
    """(w, z, c) of angles with the cosines rho^n: 1 - rho^(n+2) = (1 - rho^n) + 4wz rho^n."""
    turn = 2 * (cov.w * cov.z)  # (1 - rho²)/2
    found = [(0.0, 1.0, 1.0), (cov.w, cov.z, cov.c)]
    while len(found) <= highest:
        w, z, c = found[-2]
        found.append((w + turn * c, z - turn * c, c * (cov.c * cov.c)))
    return found


def _monomials(num: Arithmetic, coefficients: Sequence[Number], n: int) -> list[Monomial]:
    return [
        Monomial(j, num.where(c < 0, -1.0, 1.0), abs(c) * num.real(_integer(j, n)))
        for j, c in enumerate(coefficients)
        if j >= n and (j - n) % 2 == 0 and not known_zero(c)
    ]


def _integer(j: int, n: int) -> float:
    """j!/(2^i i!) with j = n + 2i: a whole number."""
    i = (j - n) // 2
    return float(math.factorial(j) // (2**i * math.factorial(i)))


def _part(
    num: Arithmetic,
    n: int,
    monomials: list[Monomial],
    cov: Covariance,
    angle: tuple[Number, Number, Number],
    starts: bool,
) -> Part:
    sides = cov.first, cov.second
    norm = 1 / num.real(math.factorial(n))
    sizes = [[_size(num, each, side.q) for each in monomials] for side in sides]
    bounds = [sum(some[1:], some[0]) for some in sizes]  # sums of absolute values
    relative = [
        [num.divide(size, bound) for size in some]
        for some, bound in zip(sizes, bounds, strict=True)
    ]
    signed = [
        sum(each.sign * x for each, x in zip(monomials, some, strict=True)) for some in relative
    ]
    squares = [bound * bound * norm for bound in bounds]
    live = [True if starts and n == 0 else side.live for side in sides]
    first, second = (
        Length(square * (x * x), alive)
        for square, x, alive in zip(squares, signed, live, strict=True)
    )
    opposite = signed[0] * signed[1] < 0
    w, z, c = angle
    e = _difference(num, monomials, cov, sizes, bounds, signed, opposite)
    turned = [num.where(opposite, yes, no) for yes, no in ((z, w), (w, z), (-c, c))]
    euler = [
        sum(each.degree * (each.sign * x) for each, x in zip(monomials, some, strict=True))
        for some in relative
    ]
    return Part(
        n,
        Covariance(first, second, turned[0], turned[1], turned[2], e),
        num.where(opposite, -1.0, 1.0),
        num.where(signed[0] < 0, -1.0, 1.0),
        (euler[0], euler[1]),
        (squares[0], squares[1]),
    )


def _size(num: Arithmetic, monomial: Monomial, q: Number) -> Number:
    """|c| j!/(2^i i!) r^j, as a number with the range of squared lengths."""
    if monomial.degree == 0:
        return num.squared(num.sqrt(monomial.size))
    return num.power(q, monomial.degree / 2) * monomial.size


def _difference(
    num: Arithmetic,
    monomials: list[Monomial],
    cov: Covariance,
    sizes: list[list[Number]],
    bounds: list[Number],
    signed: list[Number],
    opposite: Number,
) -> Number:
    """(|A(r1)| - |A(r2)|)/(|A(r1)| + |A(r2)|), from the differences of the powers of the lengths."""
    if known_zero(cov.e):
        return 0.0
    both = bounds[0] + bounds[1]
    weights = [num.divide(bound, both) for bound in bounds]
    apart = 0.0
    for each, one, two in zip(monomials, *sizes, strict=True):
        if each.degree:
            squares = (num.power(side.q, each.degree) for side in (cov.first, cov.second))
            e = num.powered_difference(cov.e, each.degree, *squares)
            apart = apart + each.sign * e * (num.divide(one, both) + num.divide(two, both))
    long = [abs(x) * weight for x, weight in zip(signed, weights, strict=True)]
    grown = num.where(signed[0] < 0, -1.0, 1.0) * apart
    return num.divide(num.where(opposite, long[0] - long[1], grown), long[0] + long[1])


def _euler(num: Arithmetic, part: Part, total: Covariance) -> Number:
    """The product of the n-th features of u phi'(u), over the lengths of the images."""
    sizes = [
        num.sqrt(num.divide(square, side.q))
        for square, side in zip(part.bounds, (total.first, total.second), strict=True)
    ]
    return (part.euler[0] * sizes[0]) * (part.euler[1] * sizes[1])


def _mean(num: Arithmetic, part: Part, total: Covariance) -> Mean:
    cov = part.covariance
    one, two = (
        num.sqrt(num.divide(own.q, whole.q))
        for own, whole in ((cov.first, total.first), (cov.second, total.second))
    )
    return Mean(part.first * one, part.first * part.sign * two, cov.e)


def _derivative(
    num: Arithmetic,
    coefficients: Sequence[Number],
    cov: Covariance,
    angles: list[tuple[Number, Number, Number]],
) -> Number:
    r"""$E\,\phi'\phi'$ itself: the lengths may be 0."""
    lengths = [num.sqrt(side.q) for side in (cov.first, cov.second)]
    total = 0.0
    for n in range(1, len(angles)):
        features = []
        for r in lengths:
            value = 0.0
            for each in _monomials(num, coefficients, n):
                power = math.prod([r] * (each.degree - 1), start=1.0)
                value = value + each.sign * (each.size * power)
            features.append(value)
        weight = num.real(n) / num.real(math.factorial(n))
        total = total + (features[0] * features[1]) * angles[n - 1][2] * weight
    return total
