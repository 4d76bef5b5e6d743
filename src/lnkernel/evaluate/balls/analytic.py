r"""Analytic activations without a closed form, as functions of complex balls, with what proofs need to know of them.

Each is a constant plus an odd and an even function, $\phi = \phi(0) + f_o + f_e$; Hermite polynomials keep these apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

from flint import acb, arb, arb_poly

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.smooth import Gelu, Sigmoid, Silu, Softplus, Tanh
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.balls.numbers import balls

Complex = Callable[
    [acb, bool], acb
]  # at a ball; with True it is not finite unless analytic on all of the ball
STRIP = 1.45  # tanh has poles at ±iπ/2


class Curve(NamedTuple):
    r"""An odd or even function $f$ with $f(0) = 0$, and facts about it.

    Attributes:
        value, slope, curvature: $f$, $f'$ and $f''$.
        strip: $f$ is analytic for $|\mathrm{Im}\,z| \le$ strip, and
        growth: there $|f(z)| \le \mathrm{growth}\cdot|z|$.
        steepness, bend: $|f'(u)|$ and $|f''(u)|$ are at most so large for real u.
    """

    value: Complex
    slope: Complex
    curvature: Complex
    strip: arb
    growth: arb
    steepness: arb
    bend: arb


class Far(NamedTuple):
    r"""How $\phi(0) + f_e(u)$ approaches $\pm\frac12 u$ for $u > 0$.

    Attributes:
        sign: of the limit.
        value, slope: the difference $\epsilon$, without a cancellation, and its derivative.
        rate: for real u > 0, $|\epsilon| \le c(u)\,e^{-\lambda u}$ and $|\epsilon'| \le d(u)\,e^{-\lambda u}$ with this
            rate $\lambda$, and with
        value_bound, slope_bound: these polynomials c and d.
    """

    sign: int
    value: Complex
    slope: Complex
    rate: arb
    value_bound: arb_poly
    slope_bound: arb_poly


class Analytic(NamedTuple):
    """An activation: its value at 0, the multiple of u in it, and its odd and even functions, None where they vanish.

    `far` is known of those that are like a ReLU far out; the others saturate.
    """

    at_zero: arb
    linear: arb
    odd: Curve | None
    even: Curve | None
    far: Far | None = None


@singledispatch
def analytic_of(layer: Elementwise) -> Analytic | None:
    """The activation as a function of complex balls, or None where it is not known."""
    return None


@analytic_of.register
def _(layer: Tanh) -> Analytic:
    return Analytic(arb(0), arb(0), _tanh(arb(1), arb(1)), None)


@analytic_of.register
def _(layer: Sigmoid) -> Analytic:
    r"""$\frac12 + \frac12\tanh\frac u2$."""
    return Analytic(arb(0.5), arb(0), _tanh(arb(0.5), arb(0.5)), None)


@analytic_of.register
def _(layer: Silu) -> Analytic:
    r"""$\frac u2 + \frac u2\tanh\frac{\beta u}2$."""
    if known_zero(layer.beta):
        return Analytic(arb(0), arb(0.5), None, None)
    half = balls(layer.beta) / 2

    def value(z: acb, analytic: bool) -> acb:
        return z / 2 * _tangent(half * z)

    def slope(z: acb, analytic: bool) -> acb:
        t = _tangent(half * z)
        return (t + half * z * (1 - t * t)) / 2

    def curvature(z: acb, analytic: bool) -> acb:
        t = _tangent(half * z)
        return half * (1 - t * t) * (1 - half * z * t)

    # |x sech² x| < 1/2 for real x
    even = Curve(
        *(value, slope, curvature),
        *(STRIP / abs(half), arb(STRIP).tan() / 2, arb(0.75), 2 * abs(half)),
    )
    sign, rate = 1 if half > 0 else -1, 2 * abs(half)
    less = _less_than_one(sign * half)

    def rest(z: acb, analytic: bool) -> acb:
        """-|u|/(1 + e^|βu|), or its negative."""
        return sign * z * less(z)

    def rest_slope(z: acb, analytic: bool) -> acb:
        return sign * less(z) * (1 - rate * z * (1 + less(z)))

    far = Far(sign, rest, rest_slope, rate, arb_poly([0, 1]), arb_poly([1, rate]))
    return Analytic(arb(0), arb(0.5), None, even, far)


@analytic_of.register
def _(layer: Softplus) -> Analytic:
    r"""$\frac{\log 2}\beta + \frac u2 + \frac1\beta\log\cosh\frac{\beta u}2$.

    In the strip $\cosh$ has a positive real part, so that the logarithm is far from its cut. The difference to
    $\frac u2$ is $\frac1\beta\log(1 + e^{-\beta u})$.
    """
    beta = balls(layer.beta)
    half, at_zero = beta / 2, arb(2).log() / beta
    less = _less_than_one(half)

    def rest(z: acb, analytic: bool) -> acb:
        return (1 + (-beta * z).exp()).log(analytic=analytic) / beta

    def rest_slope(z: acb, analytic: bool) -> acb:
        return less(z)

    def value(z: acb, analytic: bool) -> acb:
        """log cosh(βu/2)/β, in a form that is good for u > 0."""
        return z / 2 + rest(z, analytic) - at_zero

    def slope(z: acb, analytic: bool) -> acb:
        return _tangent(half * z) / 2

    def curvature(z: acb, analytic: bool) -> acb:
        t = _tangent(half * z)
        return half * (1 - t * t) / 2

    even = Curve(
        *(value, slope, curvature), *(STRIP / half, arb(STRIP).tan() / 2, arb(0.5), half / 2)
    )
    far = Far(1, rest, rest_slope, beta, arb_poly([1 / beta]), arb_poly([1]))
    return Analytic(at_zero, arb(0.5), None, even, far)


@analytic_of.register
def _(layer: Gelu) -> Analytic | None:
    r"""$\frac u2 + \frac u2\tanh v$ with $v = c\,(u + ku^3)$.

    For $z = x + iy$ with $|y| \le 1$ the real part of v is $cx\,(1 + k(x^2 - 3y^2))$, at least $\frac23|x|$ in size,
    and the imaginary part $cy\,(1 + k(3x^2 - y^2))$. If $|x| \le 2$ the latter is below 1.23, and
    $|\tanh v| < \tan 1.23 < 3$; else the former is above 1.3, and $|\tanh v| \le \coth 1.3 < 3$.

    For real $u \ge 0$: $cu \le v$ and $uv' \le 3v$, so $|f'| \le \frac12 + \frac32 v\,\mathrm{sech}^2 v < \frac54$. The
    difference to $\frac u2$ is $u/(1+e^{2v}) \le u\,e^{-v}$, its derivative at most $e^{-2v} + 6v\,e^{-2v} < 4e^{-v}$.
    In $f'' = \mathrm{sech}^2 v\,(v' + 3cku^2 - uv'^2\tanh v)$ each power of u has a maximum against
    $\mathrm{sech}^2 v \le 4e^{-2cu}$; their sum is below 5.
    """
    if not layer.approximate:
        return None
    scale, cubic = (2 / arb.pi()).sqrt(), arb(0.044715)

    def value(z: acb, analytic: bool) -> acb:
        return z / 2 * _tangent(scale * (z + cubic * z * z * z))

    def slope(z: acb, analytic: bool) -> acb:
        square = cubic * z * z
        t = _tangent(scale * z * (1 + square))
        return (t + scale * z * (1 + 3 * square) * (1 - t * t)) / 2

    def curvature(z: acb, analytic: bool) -> acb:
        square = cubic * z * z
        t, rise = _tangent(scale * z * (1 + square)), scale * (1 + 3 * square)
        return (1 - t * t) * (rise - z * rise * rise * t + 3 * scale * square)

    def rest(z: acb, analytic: bool) -> acb:
        return z * less(scale * (z + cubic * z * z * z))

    def rest_slope(z: acb, analytic: bool) -> acb:
        square = cubic * z * z
        small = less(scale * z * (1 + square))
        return small * (1 - 2 * scale * z * (1 + 3 * square) * (1 + small))

    less = _less_than_one(arb(1))
    even = Curve(value, slope, curvature, arb(1), arb(2), arb(1.25), arb(5))
    far = Far(1, rest, rest_slope, scale, arb_poly([0, 1]), arb_poly([4]))
    return Analytic(arb(0), arb(0.5), None, even, far)


def _less_than_one(rate: arb) -> Callable[[acb], acb]:
    r"""$\frac12(\tanh(\mathrm{rate}\,z) - 1)$."""
    return lambda z: _below_one(rate * z)


def _below_one(z: acb) -> acb:
    r"""$\frac12(\tanh z - 1) = -1/(1 + e^{2z})$.

    Right of its poles it is at most $1/(e^{2x} - 1)$ in size with $x = \mathrm{Re}\,z$, however high the ball is.
    """
    value = -1 / (1 + (2 * z).exp())
    left = z.real.lower()
    if value.is_finite() or not left > 0.25:
        return value
    bound = arb(0, (1 / ((2 * left).exp() - 1)).upper())
    return acb(bound, bound)


def _tangent(z: acb) -> acb:
    """tanh z."""
    if z.real > 0.25:
        return 1 + 2 * _below_one(z)
    return -1 - 2 * _below_one(-z) if z.real < -0.25 else z.tanh()


def _tanh(size: arb, rate: arb) -> Curve:
    r"""size · tanh(rate · z). With $z = x + iy$,

        |cosh z|^2 = sinh^2 x + cos^2 y,   |tanh z|^2 = (sinh^2 x + sin^2 y)/(sinh^2 x + cos^2 y),

    so that on the strip $|\tanh' z| \le 1/\cos^2 y$, and $|\tanh z| \le \max(1, \tan|y|)$, which the others use.
    """

    def value(z: acb, analytic: bool) -> acb:
        return size * _tangent(rate * z)

    def slope(z: acb, analytic: bool) -> acb:
        t = _tangent(rate * z)
        return size * rate * (1 - t * t)

    def curvature(z: acb, analytic: bool) -> acb:
        t = _tangent(rate * z)
        return -2 * size * rate * rate * t * (1 - t * t)

    cosine = arb(STRIP).cos()
    growth = size * rate / (cosine * cosine)
    return Curve(value, slope, curvature, STRIP / rate, growth, size * rate, size * rate * rate)
