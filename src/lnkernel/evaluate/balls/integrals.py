r"""Moments of an activation on Gaussian numbers, by rigorous integration.

For a unit Gaussian u and an odd or even f all integrands are even, so

    E g(ru) = 2 int_0^X g(ru) n(u) du + rest,

with the normal density n. The integral is enclosed by flint's `acb.integral` (Petras' algorithm: Gaussian quadrature,
whose error is bounded by values on ellipses in the complex plane, on which the integrand is proved analytic). With
$|f(u)| \le a|u|$, where a is the steepness of f, and with $\int_X^\infty u^2 n = Xn(X) + \int_X^\infty n$ the rest is
bounded as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from flint import acb, arb, ctx

from lnkernel.evaluate.balls.analytic import Complex, Curve

EVALUATIONS = 1_000_000


class Moments(NamedTuple):
    """Expectations of a function f at numbers u of standard deviation r; `slope` is r² E f'²."""

    mean: arb  # E f of an even f; of an odd one it is 0, and not asked for
    square: arb  # E f²
    slope: arb
    euler: arb  # E (u f')²

    @property
    def variance(self) -> arb:
        return self.square - self.mean * self.mean


def moments(curve: Curve, r: arb, is_even: bool) -> Moments:
    """All four, at the working precision."""
    q, a = r * r, curve.steepness
    linear, constant, quadratic = a * r * tail(1), a * a * q * tail(0), a * a * q * tail(2)
    mean = expectation(r, lambda u, ok: curve.value(u, ok), linear) if is_even else arb(0)
    square = expectation(r, lambda u, ok: _square(curve.value(u, ok)), quadratic)
    slope = q * expectation(r, lambda u, ok: _square(curve.slope(u, ok)), constant / q)
    euler = expectation(r, lambda u, ok: _square(u * curve.slope(u, ok)), quadratic)
    return Moments(mean, square, slope, euler)


def _square(z: acb) -> acb:
    return z * z


def _end() -> arb:
    """X, such that what lies beyond it is below the working precision."""
    return arb(math.ceil(math.sqrt(2 * math.log(2) * ctx.prec)) + 1)


def tail(power: int) -> arb:
    r"""$T_k = 2\int_X^\infty u^k\,n(u)\,du = 2X^{k-1}n(X) + (k-1)\,T_{k-2}$."""
    x = _end()
    density = 2 * (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
    if power == 0:
        return (x / arb(2).sqrt()).erfc()
    return density if power == 1 else x ** (power - 1) * density + (power - 1) * tail(power - 2)


def expectation(r: arb, function: Complex, rest: arb, most: int = EVALUATIONS) -> arb:
    """E function(ru), where what lies beyond X is between -rest and rest.

    With the midpoint s of the ball r, the substitution ru = sv leaves the ball in the density alone: functions are
    evaluated at exact multiples of v, however wide it is. After `most` evaluations the enclosure is returned as it is
    then, wider and just as true.
    """
    s = r.mid()
    ratio = s / r
    falloff = ratio * ratio / 2
    end = (_end() * r / s).upper()

    def integrand(v: acb, analytic: bool) -> acb:
        return function(s * v, analytic) * (-falloff * v * v).exp()

    inside = acb.integral(integrand, 0, end, eval_limit=most)
    value: arb = 2 * ratio * inside.real / (2 * arb.pi()).sqrt()
    return value + arb(0, rest.upper())
