r"""Moments of an analytic activation as functions of the squared length q, on a range of lengths.

With $z = ru$ for a unit Gaussian u, and $q = r^2$, these are bounded for all lengths:

    s = E f^2/q,   a = s - mu^2,   mu = E f/r,   b = E f'^2,   g = E z^2 f'^2/q.

Their derivatives in q are integrals as well, because $\frac{d}{dq} E\,F(z) = E\,zF'(z)/(2q)$, and integrals are
enclosed for a whole ball of lengths at once. Where it contains 0, $f(z)/z$ is a mean of values of $f'$ between 0 and z.
Where lengths are large, f is $\pm\frac12|z|$ and a rest e that decays. It is the rest that is then integrated, because
what is far out depends on it alone; where the ball reaches to infinity, the density of z is at most $1/(r\sqrt{2\pi})$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flint import acb, arb, arb_poly

from lnkernel.evaluate.balls.analytic import Complex, Curve, Far
from lnkernel.evaluate.balls.integrals import expectation, tail
from lnkernel.evaluate.balls.numbers import GUARD, working_precision
from lnkernel.evaluate.balls.on_ray import Jet

UNKNOWN = arb(0, arb.pos_inf())
NOTHING = Jet(arb(0), arb(0))
LONG = 2.0  # lengths, in units of the rate at which the rest decays, from which on it is integrated
MOST = 10_000  # evaluations for one integral
WIDE = 1e-6  # relatively
Z = arb_poly([0, 1])


class Shape(NamedTuple):
    """s, mu, b and g with their derivatives in q; the last is computed when asked for.

    `whole` says that they are those of phi(0) + f, not of f.
    """

    square: Jet
    mean: Jet
    slope: Jet
    euler: Callable[[], Jet]
    whole: bool = False

    @property
    def variance(self) -> Jet:
        """a."""
        value, slope = self.mean.value, self.mean.slope
        return Jet(self.square.value - value * value, self.square.slope - 2 * value * slope)


class Expect:
    """E F(z) for a ball of squared lengths q > 0."""

    def __init__(self, q: arb, bits: int):
        self.q, self.r = q, q.sqrt()
        width = float(q.rad() / q)
        few = 48 - 2 * math.floor(math.log2(width)) if width > 0 else bits
        self.precision = GUARD + min(bits, few)  # a wide ball needs no more

    def __call__(self, function: Complex, bound: arb_poly) -> arb:
        """|F(z)| is at most the polynomial `bound` of |z|."""
        with working_precision(self.precision):
            terms = enumerate(bound.coeffs())
            rest = sum((size * self.r**k * tail(k) for k, size in terms), arb(0))
            return expectation(self.r, function, rest, MOST)


def sharpen(shape_of: Callable[[arb, int], Shape], q: arb, bits: int) -> Shape:
    """The shape for a ball of lengths, with values by the mean value theorem where that is better."""
    whole = shape_of(q, bits)
    if not q.rad() > WIDE * q:
        return whole
    middle, apart = shape_of(q.mid(), 64), q - q.mid()

    def better(wide: Jet, at_middle: Jet) -> Jet:
        value = at_middle.value + wide.slope * apart
        return Jet(value, wide.slope) if value.rad() < wide.value.rad() else wide

    return whole._replace(
        square=better(whole.square, middle.square),
        mean=better(whole.mean, middle.mean),
        slope=better(whole.slope, middle.slope),
        euler=lambda: better(whole.euler(), middle.euler()),
    )


def shape_near(curve: Curve, is_even: bool, q: arb, bits: int) -> Shape:
    """The shape by integrals of f itself, for q > 0."""
    expect, a = Expect(q, bits), curve.steepness
    f, df, bent = curve.value, curve.slope, curve.curvature

    def change_of_square(z: acb, ok: bool) -> acb:
        y = f(z, ok)
        return y * (z * df(z, ok) - y)

    def slopes(power: int) -> Jet:
        """E z^k f'², over q^(k/2), for k = 0 and 2."""
        bound = a * curve.bend * Z ** (power + 1)
        over = q if power == 0 else q * q
        return Jet(
            expect(lambda z, ok: _power(z, power) * _power(df(z, ok), 2), a * a * Z**power)
            / (over / q),
            expect(lambda z, ok: _power(z, power + 1) * df(z, ok) * bent(z, ok), bound) / over,
        )

    mean = NOTHING
    if is_even:
        rise = expect(lambda z, ok: z * df(z, ok) - f(z, ok), 2 * a * Z)
        mean = Jet(expect(f, a * Z) / expect.r, rise / (2 * q * expect.r))
    square = Jet(
        expect(lambda z, ok: _power(f(z, ok), 2), a * a * Z**2) / q,
        expect(change_of_square, 2 * a * a * Z**2) / (q * q),
    )
    return Shape(square, mean, slopes(0), lambda: slopes(2))


def shape_long(far: Far, curve: Curve, q: arb, bits: int) -> Shape:
    """The shape by integrals of the rest, for phi(0) + f with an even f."""
    expect, sign = Expect(q, bits), far.sign
    e, de, bent = far.value, far.slope, curve.curvature
    c, d = far.value_bound, far.slope_bound

    def squares(z: acb, ok: bool) -> acb:
        """(f² - z²/4)."""
        y = e(z, ok)
        return y * (sign * z + y)

    def change_of_squares(z: acb, ok: bool) -> acb:
        y, dy = e(z, ok), de(z, ok)
        return sign * z * (z * dy - y) + 2 * y * (z * dy - y)

    def slopes(power: int) -> Jet:
        bound, over = (1 + 2 * d) * (curve.bend * Z ** (power + 1)), q if power == 0 else q * q
        value = expect(
            lambda z, ok: _power(z, power) * de(z, ok) * (sign + de(z, ok)), Z**power * d * (1 + d)
        )
        change = expect(
            lambda z, ok: _power(z, power + 1) * bent(z, ok) * (sign + 2 * de(z, ok)), bound
        )
        return Jet(arb(0.25) + value / (over / q), change / (2 * over))

    rise = expect(lambda z, ok: z * de(z, ok) - e(z, ok), Z * d + c)
    mean = Jet(sign / (2 * arb.pi()).sqrt() + expect(e, c) / expect.r, rise / (2 * q * expect.r))
    square = Jet(
        arb(0.25) + expect(squares, c * (Z + c)) / q,
        expect(change_of_squares, (Z + 2 * c) * (Z * d + c)) / (2 * q * q),
    )
    return Shape(square, mean, slopes(0), lambda: slopes(2), True)


def _power(z: acb, k: int) -> acb:
    """By products, which are finite where the ball contains 0."""
    return math.prod([z] * k, start=acb(1))


def shape_at_zero(curve: Curve, is_even: bool, q: arb) -> Shape:
    """For lengths from 0 to the upper end of q; the derivatives are not known."""
    with working_precision(64):
        r, a, df = arb(0).union(q.upper().sqrt()), curve.steepness, curve.slope

        def with_power(k: int, j: int) -> Jet:
            """E u^k f'(z)^j."""
            value = expectation(
                arb(1), lambda u, ok: _power(u, k) * _power(df(r * u, ok), j), a**j * tail(k), MOST
            )
            return Jet(value, UNKNOWN)

        mean = with_power(1, 1) if is_even else NOTHING
        euler, slope = with_power(2, 2), with_power(0, 2)
    return Shape(euler, mean, slope, lambda: euler)


def shape_to_infinity(far: Far, p: arb) -> Shape:
    r"""For all $q \ge 1/p$, of phi(0) + f; the derivatives are not known."""
    most = p.upper()
    root = most.sqrt()
    c, d = far.value_bound, far.slope_bound

    def about(middle: arb, factor: arb, once: arb_poly, twice: arb_poly) -> Jet:
        """With an error of the integrals of these polynomials times e^(-rate z) and e^(-2 rate z), times the factor."""
        error = _integral(once, far.rate) + _integral(twice, 2 * far.rate)
        density = 2 * root / (2 * arb.pi()).sqrt()  # on both sides of 0
        return Jet(middle + arb(0, (density * factor * error).upper()), UNKNOWN)

    quarter, none = arb(0.25), arb_poly([0])
    mean = about(far.sign / (2 * arb.pi()).sqrt(), root, c, none)
    square = about(quarter, most, Z * c, c * c)
    euler = about(quarter, most, Z**2 * d, Z**2 * d * d)
    slope = about(quarter, arb(1), d, d * d)
    return Shape(square, mean, slope, lambda: euler, True)


def _integral(polynomial: arb_poly, rate: arb) -> arb:
    """Over u > 0, times e^(-rate u)."""
    terms = enumerate(polynomial.coeffs())
    return sum((size * math.factorial(k) / rate ** (k + 1) for k, size in terms), arb(0))
