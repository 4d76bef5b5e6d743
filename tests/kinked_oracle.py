r"""Gaussian expectations of activations with kinks to 40 digits, and of polynomials, in closed forms.

Ramps and exponentials on half-lines lead to the orthant probability $L(h, k; \rho) = P(x > h, y > k)$ and its
moments; an exponential under the integral only shifts the Gaussian. The library integrates over panels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath
from mpmath import mp, mpf
from smooth_oracle import Expectations

DPS = 70


# ---------------------------------------------------------------- orthants


def density(x: mpf) -> mpf:
    return mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mp.pi)


def above(x: mpf) -> mpf:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def beyond(x: mpf, s: mpf) -> mpf:
    """above(x/s), and its limit at s = 0."""
    return above(x / s) if s else (mpf(x < 0) + mpf(x <= 0)) / 2


@cache
def orthant(h: mpf, k: mpf, rho: mpf) -> mpf:
    """By Plackett's integral over the correlation, rho = sin t, split towards t = pi/2."""
    if rho == 1:
        return above(max(h, k))
    if rho == -1:
        return max(mpf(0), above(h) - above(-k))
    end = mpmath.asin(rho)
    side = mpf(1) if end >= 0 else mpf(-1)

    def integrand(t: mpf) -> mpf:
        c = mpmath.cos(t)
        return mpmath.exp(-(h * h + k * k - 2 * h * k * mpmath.sin(t)) / (2 * c * c))

    left, splits = mp.pi / 2, [mpf(0)]
    while left / 3 > mp.pi / 2 - abs(end):
        left /= 3
        splits.append(side * (mp.pi / 2 - left))
    total = mpmath.quad(integrand, [*splits, end], method="gauss-legendre")
    return above(h) * above(k) + total / (2 * mp.pi)


class Orthant(NamedTuple):
    """Moments over x > h, y > k of a pair with unit variances."""

    one: mpf
    x_above: mpf  # E x
    ramps: mpf  # E (x - h)(y - k)
    product: mpf  # E x y


def moments(h: mpf, k: mpf, rho: mpf) -> Orthant:
    s = mpmath.sqrt(1 - rho * rho)
    one = orthant(h, k, rho)
    spread = (
        s * mpmath.exp(-(h * h - 2 * rho * h * k + k * k) / (2 * s * s)) / (2 * mp.pi)
        if s
        else mpf(0)
    )
    at_h, at_l = density(h) * beyond(k - rho * h, s), density(k) * beyond(h - rho * k, s)
    return Orthant(
        one,
        at_h + rho * at_l,
        (rho + h * k) * one + spread - h * at_l - k * at_h,
        rho * one + rho * h * at_h + rho * k * at_l + spread,
    )


# ---------------------------------------------------------------- ramps: clips


def clip(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    """low + (u - low)_+ - (u - high)_+."""
    low, high = mpf(layer.low), mpf(layer.high)
    ramps = [(mpf(1), low), (mpf(-1), high)]
    r1, r2 = mpmath.sqrt(q1), mpmath.sqrt(q2)

    def mean(r: mpf) -> mpf:
        return low + sum(c * r * (density(t / r) - t / r * above(t / r)) for c, t in ramps)

    pairs = [(c * d, moments(t / r1, s / r2, rho)) for c, t in ramps for d, s in ramps]
    crossed = low * mean(r1) + low * mean(r2) - low * low
    return Expectations(
        product=crossed + r1 * r2 * sum(c * m.ramps for c, m in pairs),
        slopes=sum(c * m.one for c, m in pairs),
        euler=r1 * r2 * sum(c * m.product for c, m in pairs),
        mean=mean(r1),
    )


# ---------------------------------------------------------------- exponentials: ELU and SELU


def elu(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    size, alpha = mpf(getattr(layer, "scale", 1)), mpf(layer.alpha)
    r1, r2 = mpmath.sqrt(q1), mpmath.sqrt(q2)
    k = rho * r1 * r2

    def tilt(s1: int, s2: int, r1: mpf, r2: mpf) -> tuple[mpf, mpf, mpf]:
        """E exp(s1 u + s2 v), and the means of u/r1 and v/r2 under this weight."""
        exponent = (s1 * s1 * r1 * r1 + 2 * s1 * s2 * k + s2 * s2 * r2 * r2) / 2
        return (
            mpmath.exp(exponent),
            (s1 * r1 * r1 + s2 * k) / r1,
            (s1 * k + s2 * r2 * r2) / r2,
        )

    def both_below(s1: int, s2: int) -> mpf:
        e, a, b = tilt(s1, s2, r1, r2)
        return e * orthant(a, b, rho)

    def ramp_and_below(s: int, r1: mpf, r2: mpf) -> mpf:
        e, a, b = tilt(0, s, r1, r2)
        m = moments(-a, b, -rho)
        return e * r1 * (m.x_above + a * m.one)

    def slope_and_below(r1: mpf, r2: mpf) -> mpf:
        e, a, b = tilt(0, 1, r1, r2)
        return e * orthant(-a, b, -rho)

    def euler_and_below(r1: mpf, r2: mpf) -> mpf:
        e, a, b = tilt(0, 1, r1, r2)
        return -e * r1 * r2 * moments(-a, b, -rho).ramps

    right = moments(mpf(0), mpf(0), rho)
    sides = ((r1, r2), (r2, r1))
    e, a, b = tilt(1, 1, r1, r2)
    mixed = sum(ramp_and_below(1, *r) - ramp_and_below(0, *r) for r in sides)
    below = both_below(1, 1) - both_below(1, 0) - both_below(0, 1) + both_below(0, 0)
    return Expectations(
        product=size**2 * (r1 * r2 * right.ramps + alpha * mixed + alpha**2 * below),
        slopes=size**2
        * (
            right.one
            + alpha * sum(slope_and_below(*r) for r in sides)
            + alpha**2 * both_below(1, 1)
        ),
        euler=size**2
        * (
            r1 * r2 * right.ramps
            + alpha * sum(euler_and_below(*r) for r in sides)
            + alpha**2 * e * r1 * r2 * moments(a, b, rho).ramps
        ),
        mean=size
        * (r1 / mpmath.sqrt(2 * mp.pi) + alpha * (mpmath.exp(q1 / 2) * above(r1) - mpf(1) / 2)),
    )


# ---------------------------------------------------------------- polynomials


def polynomial(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    """With the digits of `mp`. By Stein's lemma: E u^i v^j = (i - 1) q1 E u^(i-2) v^j + j k E u^(i-1) v^(j-1)."""
    k = rho * mpmath.sqrt(q1 * q2)
    if type(layer).__name__ == "Hermite":
        norm = mpmath.sqrt(mpmath.factorial(layer.degree))
        # of H_n(x) = 2^(n/2) He_n(sqrt(2) x), which mpmath knows, by its Taylor coefficients
        taylor = mpmath.taylor(lambda x: mpmath.hermite(layer.degree, x), 0, layer.degree)
        c = [
            mpmath.nint(t / mpf(2) ** (mpf(layer.degree + j) / 2)) / norm
            for j, t in enumerate(taylor)
        ]
    else:
        c = [mpf(x) for x in layer.coefficients]

    @cache
    def moment(i: int, j: int) -> mpf:
        if i < 0 or j < 0:
            return mpf(0)
        if i == 0:
            return mpf(1) if j == 0 else (j - 1) * q2 * moment(0, j - 2)
        return (i - 1) * q1 * moment(i - 2, j) + j * k * moment(i - 1, j - 1)

    pairs = [(a * b, i, j) for i, a in enumerate(c) for j, b in enumerate(c)]
    return Expectations(
        product=sum(x * moment(i, j) for x, i, j in pairs),
        slopes=sum(x * i * j * moment(i - 1, j - 1) for x, i, j in pairs),
        euler=sum(x * i * j * moment(i, j) for x, i, j in pairs),
        mean=sum(a * moment(i, 0) for i, a in enumerate(c)),
    )


FUNCTIONS: dict[str, Callable[..., Expectations]] = {
    "Clip": clip,
    "Elu": elu,
    "Selu": elu,
}
POLYNOMIALS = frozenset({"Polynomial", "Hermite"})


@cache
def expectations(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    """For lengths up to about 10: beyond, exponentials cancel more digits than there are."""
    with mp.workdps(DPS):
        return FUNCTIONS[type(layer).__name__](layer, q1, q2, rho)
