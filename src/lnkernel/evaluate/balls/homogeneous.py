r"""$F_p$ of a ball, for every degree.

With $s = p + \frac12$, all series below have terms whose ratio is at most the argument, so what is
cut off is at most the first term left out, over one minus the argument.

* $F_p(-\rho) = m^s\,{}_2F_1(\frac12, \frac12; s+1; m)/B$ at $m = (1-\rho)/2$: positive terms,
  nothing cancels, and the relative width of the result is about that of m.
* $1 - F_p(\rho)$ by the connection formula (DLMF 15.8.4) in powers of m; for integers p it ends in
  a polynomial, at half-integers it has a logarithm, and near those, where its two parts cancel,
  flint's ${}_2F_1$ takes over.

Both are increasing in m, for every real p > -1/2, so the ends of a wide ball enclose them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from flint import arb, arb_poly, ctx

from lnkernel.calculus import homogeneous
from lnkernel.calculus.homogeneous import Tails
from lnkernel.evaluate.balls.arithmetic import BallOperations, Balls
from lnkernel.evaluate.balls.numbers import (
    GUARD,
    Ball,
    elementwise,
    exact,
    lower_end,
    upper_end,
    working_precision,
)

WIDEST = 0.51  # the largest m for the power series: a little beyond a right angle
STEEP = 0.02  # distance of s from an integer below which the connection formula cancels too much


class Series(NamedTuple):
    """A power series cut off: for 0 <= x <= `end` its value is polynomial(x) plus `rest`."""

    end: float
    polynomial: arb_poly
    rest: arb


def expectation(degree: float, bits: int) -> Callable[[arb], tuple[arb, arb]]:
    r"""m -> $F_p(-\rho)$ and $1 - F_p(\rho)$ at $\rho = 1 - 2m$, for real p > -1/2 and m in [0, 1]."""
    far, elementary = _far_series(degree, bits), ELEMENTARY.get(degree)
    distance = abs(degree + 0.5 - round(degree + 0.5))
    steep = 0 < distance < STEEP
    if float(degree).is_integer():
        gap = _integer_gap(int(degree), bits)
    elif distance == 0:
        gap = _logarithmic_gap(round(degree + 0.5), bits)
    else:
        gap = _branched_gap(degree, bits)
    with working_precision(bits + GUARD):
        power = _power(Fraction(degree) + Fraction(1, 2))

    def at(m: arb) -> tuple[arb, arb]:
        if not (m > 0 and m <= WIDEST):
            return _by_ends(degree, m, bits)
        value = elementary(m) if elementary and m > MODERATE else power(m) * _evaluate(far, m)
        return value, (_general(degree, m, bits)[1] if steep else gap(m, value))

    return at


def _far_of_degree_0(m: arb) -> arb:
    r"""$F_0(-\rho) = \theta/\pi$ with $\sin(\theta/2) = \sqrt m$."""
    return 2 * m.sqrt().asin() / arb.pi()


def _far_of_degree_1(m: arb) -> arb:
    r"""$F_1(-\rho) = (\sin\theta - \theta\cos\theta)/\pi$, whose derivative is $\theta\sin\theta/\pi$.

    By the mean value theorem at the midpoint: with the ball of θ in both terms, each layer
    would multiply its width by 1/θ.
    """
    with ctx.extraprec(GUARD):
        angle = 2 * m.sqrt().asin()
        middle = angle.mid()
        sine, cosine = middle.sin_cos()
        value = sine - middle * cosine + angle * angle.sin() * (angle - middle)
        return value / arb.pi()


# a few microseconds where the power series takes its most terms; the loss at MODERATE is within GUARD
ELEMENTARY: dict[float, Callable[[arb], arb]] = {0: _far_of_degree_0, 1: _far_of_degree_1}
MODERATE = 2.0**-6


def _power(s: Fraction) -> Callable[[arb], arb]:
    if s.denominator == 2 and 0 <= s.numerator <= 64:
        whole = s.numerator // 2

        def half_integer(m: arb) -> arb:
            value = m.sqrt()
            for _ in range(whole):
                value = value * m
            return value

        return half_integer
    exponent = exact(s)
    return lambda m: (exponent * m.log()).exp()


# ---------------------------------------------------------------- power series


def _bands(terms: Callable[[int], list[arb]], start: int, bits: int) -> tuple[Series, ...]:
    """The series cut off for m up to 0.51, 2^-2, 2^-4, ...: short where m is small."""
    bands = []
    for width in (1, 2, 4, 8, 16, 32, 64):
        end = WIDEST if width == 1 else 2.0**-width
        count = max(start, (bits + 8) // width + 2)
        coefficients = terms(count + 1)
        cut = abs(coefficients[count]) * arb(end) ** count / (1 - arb(end))
        bands.append(Series(end, arb_poly(coefficients[:count]), arb(0, cut.upper())))
    return tuple(bands)


def _evaluate(bands: tuple[Series, ...], m: arb) -> arb:
    series = bands[0]
    for narrower in bands[1:]:
        if not m <= narrower.end:
            break
        series = narrower
    return series.polynomial(m) + series.rest


def _terms(a: arb, b: arb, c: arb, scale: arb, count: int) -> list[arb]:
    """The first coefficients of scale * 2F1(a, b; c; x)."""
    out, term = [], scale
    for k in range(count):
        out.append(term)
        term = term * (a + k) * (b + k) / ((c + k) * (k + 1))
    return out


@lru_cache(maxsize=64)
def _far_series(degree: float, bits: int) -> tuple[Series, ...]:
    with working_precision(bits + GUARD):
        half = arb(0.5)
        s = exact(degree) + half
        return _bands(lambda n: _terms(half, half, s + 1, 1 / _norm(s), n), 2, bits)


def _norm(s: arb) -> arb:
    r"""$B = {}_2F_1(\frac12, \frac12; s+1; 1) = \Gamma(s+1)\Gamma(s)/\Gamma(s+\frac12)^2$."""
    root = (s + arb(0.5)).gamma()
    return (s + 1).gamma() * s.gamma() / (root * root)


@lru_cache(maxsize=64)
def _integer_gap(degree: int, bits: int) -> Callable[[arb, arb], arb]:
    r"""$1 - F_p(\rho) = 1 - Q_p(m) \pm F_p(-\rho)$ with a polynomial $Q_p$, $Q_p(0) = 1$."""
    term, rest = Fraction(1), []
    for k in range(degree):
        term = term * (k - degree) ** 2 / ((Fraction(1, 2) - degree + k) * (k + 1))
        rest.append(exact(-term))
    with working_precision(bits + GUARD):
        polynomial = arb_poly([exact(0), *rest])
    odd = degree % 2 == 1
    if degree == 0:
        return lambda m, far: far
    return lambda m, far: polynomial(m) - far if odd else polynomial(m) + far


@lru_cache(maxsize=64)
def _branched_gap(degree: float, bits: int) -> Callable[[arb, arb], arb]:
    r"""$1 - F_p = -\sum_{k \ge 1} c_k m^k + F_p(-\rho)/\sin(\pi s)$, $c_k = (\frac12-s)_k^2/((1-s)_k\,k!)$."""
    with working_precision(bits + 2 * GUARD):
        half = arb(0.5)
        s = exact(degree) + half
        top = max(2, int(degree + 0.5) + 2)

        def terms(count: int) -> list[arb]:
            return _terms(half - s, half - s, 1 - s, arb(-1), count + 1)[1:]

        bands = _bands(terms, top, bits + GUARD)
        sine = 1 / s.sin_pi()
    return lambda m, far: m * _evaluate(bands, m) + far * sine


@lru_cache(maxsize=64)
def _logarithmic_gap(N: int, bits: int) -> Callable[[arb, arb], arb]:
    r"""The limit of the connection formula at an integer $s = N$ (DLMF 15.8.10): $1 - F_p$ is
    $-\sum_{0<k<N} c_k m^k - m^N \sum_k E_k m^k + \frac{(-1)^N}{\pi} \log m\; F_p(-\rho)$, where
    $E_k = \frac{(-1)^N}{\pi B} \frac{(1/2)_k^2}{(N+1)_k k!}
    [\psi(k+1) + \psi(N+k+1) - 2\psi(k+\tfrac12)]$.
    """
    with working_precision(bits + 2 * GUARD):
        half, sign = arb(0.5), (-1) ** N
        head = [-c for c in _terms(half - N, half - N, arb(1 - N), arb(1), N)[1:]]

        def terms(count: int) -> list[arb]:
            scale = -sign / (arb.pi() * _norm(arb(N)))
            D = _terms(half, half, arb(N + 1), scale, max(0, count - len(head)))
            return head[:count] + [
                d * (arb(k + 1).digamma() + arb(N + k + 1).digamma() - 2 * (half + k).digamma())
                for k, d in enumerate(D)
            ]

        bands = _bands(terms, N + 1, bits + GUARD)
        factor = sign / arb.pi()
    return lambda m, far: m * _evaluate(bands, m) + factor * m.log() * far


# ---------------------------------------------------------------- any ball, by its ends


def _by_ends(degree: float, m: arb, bits: int) -> tuple[arb, arb]:
    if m.is_zero():
        return arb(0), arb(0)
    if not m.is_finite():
        return arb(0).union(arb(1)), arb(0).union(arb(1))
    low, high = max(lower_end(m), arb(0)), min(upper_end(m), arb(1))
    ends = [_general(degree, end, bits) for end in (low, high)]
    return ends[0][0].union(ends[1][0]), ends[0][1].union(ends[1][1])


def _general(degree: float, m: arb, bits: int) -> tuple[arb, arb]:
    """Both functions by flint's 2F1, for any m in [0, 1]; an inexact m by its ends."""
    if m.is_zero() or m == 1:
        return arb(m), arb(m)
    if not m.is_exact():
        return _by_ends(degree, m, bits)
    small = max(0, -int(m.log().lower().mid().floor().fmpz()) if m < 0.5 else 0) * 3 // 2
    with working_precision(bits + GUARD + int((degree + 1.5) * small)):
        s = exact(degree) + arb(0.5)
        far, near = (_direct(s, x) for x in (m, 1 - m))
        return far, 1 - near


def _direct(s: arb, m: arb) -> arb:
    half = arb(0.5)
    return (s * m.log()).exp() * m.hypgeom_2f1(half, half, s + 1) / _norm(s)


# ---------------------------------------------------------------- for the calculus


@homogeneous.tails.register
def _(num: Balls, degree: float, m: Ball) -> Tails:
    return Tails(*_tails(float(degree), num.bits)(m))


@homogeneous.moment.register
def _(num: BallOperations, degree: float) -> Ball:
    p = exact(degree)
    return ((p - 1) * arb(2).log()).exp() * (p + arb(0.5)).gamma() / arb.pi().sqrt()


@homogeneous.half_share.register
def _(num: BallOperations, degree: float) -> Ball:
    p = exact(degree)
    return ((p + 1) / 2).gamma() / (2 * arb.pi().sqrt() * (p + arb(0.5)).gamma()).sqrt()


@lru_cache(maxsize=64)
def _tails(degree: float, bits: int) -> Callable[[Ball], tuple[Ball, Ball, Ball, Ball]]:
    value, slope = (expectation(p, bits) for p in (degree, degree - 1))

    def one(m: arb) -> tuple[arb, arb, arb, arb]:
        (far, gap), (far_slope, slope_gap) = value(m), slope(m)
        return far, gap, far_slope, 1 - slope_gap

    return elementwise(one, 1, 4)
