r"""Coefficients that turn hypergeometric functions into a few multiplications.

A function with a branch point at $w = 0$ is split, by the connection formula (DLMF 15.8.4),
into analytic parts,

    F(w) = 2F1(A, B; 1-s; w) - d w^s 2F1(A', B'; 1+s; w),    F(0) = 1.

Where $s$ is near an integer $N$ both terms are huge and cancel; so, with $\delta = s - N$,
they are recombined into

    F(w) = sum_{k<N} c_k w^k + w^N [E(w) - L(w) D(w)],     L(w) = (w^delta - 1)/delta,

where N >= 1, and E and D are analytic and of moderate size whatever delta is. Their coefficients are
computed once per degree, with balls of 600 bits (python-flint), and rounded to float64.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from flint import arb, arb_poly

BITS = 600
TERMS = 400  # terms of a power series on |w| <= 1/2: the rest is below 2^-400
FEW = (
    160  # terms where they do not grow: the rest is below 2^-160, and changes no number of float64
)
LOWEST = 12  # degree of an interpolating polynomial
DEGREE = (
    23  # the highest one: interpolates on [0, 1/2] to 1e-18: the branch point at 1 is far enough
)


class Branched(NamedTuple):
    """F(w) = 1 + head(w) + w^N [E(w) - L(w) D(w)] for 0 <= w <= the interval's end."""

    order: int  # N
    delta: float
    head: tuple[float, ...]  # c_1 ... c_{N-1}, lowest first
    E: tuple[float, ...]
    D: tuple[float, ...]


def _high_precision(build: Callable[..., Any]) -> Callable[..., Any]:
    """Run `build` once per argument, with flint's working precision set to BITS."""

    @lru_cache(maxsize=256)
    def cached(*args: Any) -> Any:
        from flint import ctx

        with ctx.workprec(BITS):
            return build(*args)

    return cached


@_high_precision
def moment(degree: float) -> tuple[float, float]:
    r"""$c_p = 2^{p-1}\,\Gamma(p + 1/2)/\sqrt{\pi}$, as a sum of two float64 numbers."""
    from flint import arb

    p = arb(degree)
    value = arb(2) ** (p - 1) * (p + arb(0.5)).gamma() / arb.pi().sqrt()
    high = float(value)
    return high, float(value - high)


@_high_precision
def mean_share(degree: float) -> float:
    r"""$\Gamma(\frac{p+1}{2})/\sqrt{2\sqrt\pi\,\Gamma(p+\frac12)}$."""
    from flint import arb

    p = arb(degree)
    square = 2 * arb.pi().sqrt() * (p + arb(0.5)).gamma()
    return float(((p + 1) / 2).gamma() / square.sqrt())


@_high_precision
def far_factor(degree: float) -> tuple[float, ...]:
    r"""The analytic factor G of $F_p(-|\rho|) = m^{p+1/2}\,G(m)$, $G = {}_2F_1(\frac12, \frac12; p + \frac32; m)/B$.

    As a polynomial on [0, 1/2]; $B = \Gamma(s+1)\Gamma(s)/\Gamma(s+\frac12)^2$ with $s = p + \frac12$.
    """
    from flint import arb

    half = arb(1) / 2
    s = arb(degree) + half
    scale = (s + half).gamma() ** 2 / ((s + 1).gamma() * s.gamma())
    return _interpolate(_series(half, half, s + 1, FEW) * scale, arb(1) / 2)


@_high_precision
def near_factor(degree: float) -> Branched:
    r"""$F_p(\rho)$ as a branched function of $w = (1-\rho)/2 \le 1/2$, branch exponent $s = p + \frac12$."""
    from flint import arb

    half = arb(1) / 2
    s = _off_integer(arb(degree) + half)
    d = (s + half).gamma() ** 2 / ((s + 1).gamma() * s.gamma() * s.sin_pi())
    return _build_branched(s, (half - s, half - s), (half, half), d, arb(1) / 2, FEW)


@_high_precision
def sphere_near(freedom: int, end: float) -> tuple[Branched, Branched]:
    r"""$\kappa_\nu(\rho)/\rho$ and $\kappa_\nu'(\rho)$, each over its value at 1, in $y = 1 - \rho^2 \le$ `end`."""
    from flint import arb

    half = arb(1) / 2
    s = _off_integer(arb(freedom) / 2)
    pi = arb.pi()
    value = -(-s).gamma() * (s + half).gamma() ** 2 / (s.gamma() * pi)
    # 2F1(1/2, 3/2; s+1; 1-y): branch exponent s - 1, Gamma(1/2) Gamma(3/2) = pi/2
    slope = -(1 - s).gamma() * (s + half).gamma() * (s - half).gamma()
    slope = slope / ((s - 1).gamma() * pi / 2)
    return (
        _build_branched(s, (half, half), (s + half, s + half), value, arb(end)),
        _build_branched(s - 1, (half, half + 1), (s + half, s - half), slope, arb(end)),
    )


@_high_precision
def sphere_rest(freedom: int, start: float, degree: int = 56) -> tuple[tuple[float, ...], ...]:
    r"""Chebyshev coefficients of the same two functions for $y$ from `start` to 1."""
    from flint import arb

    half, s = arb(1) / 2, arb(freedom) / 2
    one = arb(1)
    at_one = (s + 1).gamma() * s.gamma() / (s + half).gamma() ** 2

    value, slope = (_series(half, b, s + 1) * (1 / at_one) for b in (half, half + 1))
    turned = (lambda y: value(one - y)), (lambda y: slope(one - y))
    return tuple(_chebyshev(f, arb(start), one, degree) for f in turned)


def _off_integer(s: arb) -> arb:
    """s itself, or an s so close to it that no digit of the result differs, but no integer."""
    from flint import arb

    return s + arb(2) ** -140 if (s - s.floor()).is_zero() else s


def _build_branched(
    s: arb,
    regular: tuple[arb, arb],
    singular: tuple[arb, arb],
    d: arb,
    end: arb,
    count: int = TERMS,
) -> Branched:
    from flint import arb, arb_poly

    order = max(1, round(float(s)))
    delta = s - order
    c = _terms(*regular, 1 - s, order + count)
    ds = [d * term for term in _terms(*singular, 1 + s, count)]
    E = [x - y for x, y in zip(c[order:], ds, strict=True)]
    D = [delta * y for y in ds]
    head = tuple(float(x.mid()) for x in c[1:order])
    enough = math.ceil(64 / -math.log2(float(end)))  # powers of `end` beyond are below rounding
    if order > enough:
        return Branched(1, 0.0, head[:enough], (0.0,), (0.0,))
    small = abs(float(delta)) < 2.0**-100
    return Branched(
        order,
        0.0 if small else float(delta),
        head,
        _interpolate(arb_poly(E), arb(end)),
        _interpolate(arb_poly(D), arb(end)),
    )


def _terms(a: arb, b: arb, c: arb, count: int) -> list[arb]:
    """The first coefficients of 2F1(a, b; c; w)."""
    from flint import arb

    terms, term = [], arb(1)
    for k in range(count):
        terms.append(term)
        term = term * (a + k) * (b + k) / ((c + k) * (k + 1))
    return terms


def _series(a: arb, b: arb, c: arb, count: int = TERMS) -> arb_poly:
    """2F1(a, b; c; w) as a polynomial in w."""
    from flint import arb_poly

    return arb_poly(_terms(a, b, c, count))


def _nodes(start: arb, end: arb, count: int) -> list[arb]:
    """Chebyshev points of the interval."""
    from flint import arb

    angles = [(arb(2 * k + 1) / (2 * count)).cos_pi() for k in range(count)]
    return [(start + end) / 2 + (end - start) / 2 * angle for angle in angles]


def _interpolate(f: arb_poly, end: arb) -> tuple[float, ...]:
    """Power-basis coefficients of a polynomial that is f on [0, end] to below float64's rounding.

    It goes through the Chebyshev points; its degree is the lowest that suffices.
    """
    from flint import arb, arb_poly

    probes = [(x, f(x)) for x in _nodes(arb(0), end, 2 * DEGREE)]
    size = max(abs(float(value)) for _, value in probes)

    def suffices(degree: int) -> bool:
        polynomial = arb_poly(_through(f, end, degree))
        errors = (abs(float(polynomial(x) - value)) for x, value in probes)
        return max(errors) < 2.0**-56 * size

    # the error falls with every degree, so that it need not be asked for all of them
    coefficients = _through(f, end, bisect_left(range(DEGREE), True, LOWEST, key=suffices))
    return tuple(float(c.mid()) for c in coefficients)


def _through(f: arb_poly, end: arb, degree: int) -> list[arb]:
    """The polynomial through the Chebyshev points of [0, end]."""
    from flint import arb, arb_mat

    points = _nodes(arb(0), end, degree + 1)
    powers = arb_mat([[x**k for k in range(degree + 1)] for x in points])
    solution = powers.solve(arb_mat([[f(x)] for x in points]))
    return [solution[k, 0] for k in range(degree + 1)]


def _chebyshev(f: Callable[[arb], arb], start: arb, end: arb, degree: int) -> tuple[float, ...]:
    from flint import arb

    count = degree + 1
    values = [f(x) for x in _nodes(start, end, count)]
    coefficients = []
    for k in range(count):
        total = sum(
            (v * (arb(k * (2 * j + 1)) / (2 * count)).cos_pi() for j, v in enumerate(values)),
            arb(0),
        )
        coefficients.append(float((total * (1 if k == 0 else 2) / count).mid()))
    return tuple(coefficients)


@lru_cache(maxsize=256)
def integer_gap(degree: int) -> tuple[float, ...]:
    r"""$1 - Q_p$ as a polynomial in $m$ without constant term, where for integer $p$
    $F_p(|\rho|) = Q_p(m) - (-1)^p F_p(-|\rho|)$: $2m$ for $p = 1$, $\frac83 m(1-m)$ for $p = 2$.
    """
    from fractions import Fraction

    term, terms = Fraction(1), [Fraction(1)]
    for k in range(degree):
        top = (k - degree) ** 2
        term = term * top / ((Fraction(1, 2) - degree + k) * (k + 1))
        terms.append(term)
    return tuple(float(-c) for c in terms[1:])
