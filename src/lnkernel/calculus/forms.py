r"""The closed forms of erf, GELU, sine, cosine and the Gaussian.

In the variables of `lnkernel.calculus.closed`: $a = \alpha_1\alpha_2$, $x = a\rho$, $y = \sqrt{1 - x^2}$, $h = 4a^2wz$.
(Williams 1998 for erf and the Gaussian; Tsuchida, Pearce et al. 2021 for GELU; Rahimi and Recht 2007 for the sine.)
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.smooth import Cos, Erf, Gaussian, Gelu, Sin
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.closed import Ends, Form, Pair, Side
from lnkernel.calculus.elementary import (
    arcsine,
    both_over,
    circle,
    fallen,
    falling,
    refine_wave,
    sine_and_cosine,
)
from lnkernel.calculus.twin import Elementary
from lnkernel.check.plain import known_zero


@singledispatch
def form_of(layer: Elementwise, num: Arithmetic) -> Form | None:
    """The closed form of an activation, or None."""
    return None


class ErfForm(Form):
    r"""$E\,\mathrm{erf}(u)\,\mathrm{erf}(v) = \frac2\pi \arcsin x$ with $s^2 = \frac12$."""

    noise = 0.5
    has_even = has_mean = False

    def scale(self, num: Arithmetic, side: Side) -> Number:
        return 4 / circle(num) * (side.alpha * side.alpha)

    def odd(self, of: Elementary, pair: Pair) -> Any:
        x, y = pair.product * pair.c, of.sqrt(pair.cosine_square())
        return pair.c * of.arcsine_ratio(x, y)

    def derivative(self, num: Arithmetic, pair: Pair) -> Number:
        return 8 / circle(num) * (_soft(num, pair).one * pair.second.beta)

    def euler(self, num: Arithmetic, pair: Pair, lengths: Ends) -> Number:
        soft = _soft(num, pair)
        one, two = _over(num, (pair.first.alpha, pair.second.alpha), lengths)
        bent = soft.one * soft.one * (soft.two * pair.second.beta)  # beta1² beta2²/y³
        return 4 / circle(num) * (one * two * (pair.c * bent))


class GeluForm(Form):
    r"""$2\pi\,E\,\phi\phi = \sqrt{s_1 s_2}\,[\frac\pi2 x + x \arcsin x + a^2 y + x^2\beta_1^2\beta_2^2/y]$ with
    $s_i = 1 + q_i = \beta_i^{-2}$; the first term is that of $u/2$, and $a^2$ that of the mean."""

    odd_is_linear = True

    def scale(self, num: Arithmetic, side: Side) -> Number:
        bent = num.divide(side.alpha * side.alpha, side.beta)
        return 1 / circle(num) * (bent * bent)

    def mean(self, num: Arithmetic, side: Side) -> Number:
        return side.alpha * side.r / num.sqrt(circle(num))

    def even(self, of: Elementary, pair: Pair) -> Any:
        a, square = pair.product, pair.cosine_square()
        x, y = a * pair.c, of.sqrt(square)
        betas = pair.first.beta * pair.second.beta
        bent = (betas * betas) * of.inverse(y) - (a * a) * of.inverse(1 + y)
        return (pair.c * pair.c) * (of.arcsine_ratio(x, y) + bent)

    def derivative(self, num: Arithmetic, pair: Pair) -> Number:
        soft, turn, x = _soft(num, pair), circle(num), pair.product * pair.c
        one, two = soft.one * pair.first.beta, soft.two * pair.second.beta  # beta²/y
        rest = x * (soft.one * soft.one * two + (one + two))
        return (turn / 4 + arcsine(num, x, soft.y) + rest) / turn

    def euler(self, num: Arithmetic, pair: Pair, lengths: Ends) -> Number:
        soft, turn, a = _soft(num, pair), circle(num), pair.product
        x, y = a * pair.c, soft.y
        square, (one, two) = x * x, (side.beta * side.beta for side in (pair.first, pair.second))
        b1, b2 = soft.one, soft.two
        value = x * (turn / 4 + arcsine(num, x, y)) + (a * a) * y
        value = value + square * (b1 * pair.first.beta * two)
        for beta, b, other, side, lean in (
            (two, b2, b1, pair.second, soft.leans[0]),
            (one, b1, b2, pair.first, soft.leans[1]),
        ):
            value = value + side.alpha * side.alpha * beta * (lean * y)
            value = value + square * (b * side.beta * beta) * (other * other + 1)
        last = soft.leans[0] * soft.leans[1] + 2 * square * (b1 * b1 * (b2 * b2))
        value = value + (b1 * pair.first.beta * two) * last
        first, second = (
            num.divide(1.0, side.beta * r)
            for side, r in zip((pair.first, pair.second), lengths, strict=True)
        )
        return first * (value / turn) * second


class GaussianForm(Form):
    r"""$E\,\phi\phi = \beta_1\beta_2/y$ with $s^2 = \frac12$, of which $\beta_1\beta_2$ is the product of the means."""

    noise = 0.5
    vanishes = has_odd = False

    def scale(self, num: Arithmetic, side: Side) -> Number:
        bent = side.beta * (side.alpha * side.alpha)
        return bent * bent

    def mean(self, num: Arithmetic, side: Side) -> Number:
        return side.beta

    def even(self, of: Elementary, pair: Pair) -> Any:
        y = of.sqrt(pair.cosine_square())
        return (pair.c * pair.c) * of.inverse(y * (1 + y))

    def derivative(self, num: Arithmetic, pair: Pair) -> Number:
        soft = _soft(num, pair)
        betas = pair.second.beta * soft.one  # beta1 beta2/y
        return 2 * betas * (soft.one * soft.two) * (pair.product * pair.c)

    def bare_slope(self, num: Arithmetic, pair: Pair) -> Number:
        """beta1 beta2 a² c/y³ with few roundings, in which nothing leaves the range of float64."""
        square, a = pair.cosine_square(), pair.product
        betas = num.divide(pair.first.beta, square) * pair.second.beta
        return betas * num.divide(a * a * pair.c, num.sqrt(square))

    def slope_factor(self, num: Arithmetic, side: Side) -> Number:
        return num.real(1.0)

    def euler(self, num: Arithmetic, pair: Pair, lengths: Ends) -> Number:
        soft, x = _soft(num, pair), pair.product * pair.c
        betas = soft.one * soft.two
        bent = soft.leans[0] * soft.leans[1] + 2 * (x * x) * (betas * betas)
        one, two = _over(num, (pair.first.beta, pair.second.beta), lengths)
        return one * num.divide(bent, soft.y) * two


class SineForm(Form):
    r"""$\sin(\omega u + c)$: with $p = e^{-\omega^2 E(u-v)^2/4}$ and $t = 1 - e^{-\omega^2 r_1 r_2\rho}$ the odd part
    has the kernel $\frac12\cos^2 c\;p^2\,t\,(2-t)$, the even one $\frac12\sin^2 c\;p^2 t^2$."""

    by_cosine = False

    def __init__(self, omega: Number, sine: Number, cosine: Number):
        self.omega, self.sine, self.cosine = omega, sine, cosine
        self.has_odd = not known_zero(cosine)
        self.has_even = self.has_mean = not known_zero(sine)
        self.vanishes = not self.has_mean

    def mean(self, num: Arithmetic, side: Side) -> Number:
        wave = self.omega * side.r
        return self.sine * falling(num, 0.5 * (wave * wave))

    def odd(self, of: Elementary, pair: Pair) -> Any:
        p, t = self._near(of, pair)
        return (0.5 * (self.cosine * self.cosine)) * ((p * p) * (t * (2 - t)))

    def even(self, of: Elementary, pair: Pair) -> Any:
        p, t = self._near(of, pair)
        return (0.5 * (self.sine * self.sine)) * ((p * p) * (t * t))

    def _near(self, of: Elementary, pair: Pair) -> tuple[Any, Any]:
        product = (self.omega * pair.first.r) * (self.omega * pair.second.r)
        return of.falling(self._distances(pair)[0]), of.fallen(product * pair.c)

    def refine(self, num: Arithmetic, pair: Pair, odd: bool, w: Number, c: Number) -> Number:
        return refine_wave(num, self.omega, pair, odd, w, c)

    def derivative(self, num: Arithmetic, pair: Pair) -> Number:
        cosine, sine = self.cosine * self.cosine, self.sine * self.sine
        near, far, less = self._waves(num, pair)
        return (0.5 * (self.omega * self.omega)) * (cosine * (near + far) + sine * less)

    def euler(self, num: Arithmetic, pair: Pair, lengths: Ends) -> Number:
        r"""$\frac12[k\,(E_- \pm E_+) + (q_1-k)(q_2-k)E_- \mp (q_1+k)(q_2+k)E_+]$ of the odd and the even part."""
        one, two = (self.omega * side.r for side in (pair.first, pair.second))
        bent = []
        for sign, distance in zip((1, -1), self._distances(pair), strict=True):
            p = falling(num, distance)  # each length with a p, against overflow
            bent.append(
                (one * p * (one - sign * (two * pair.c)))
                * (two * p * (two - sign * (one * pair.c)))
            )
        near, far, less = self._waves(num, pair)
        k = one * (two * pair.c)
        odd = (self.cosine * self.cosine) * (k * (near + far) + (bent[0] - bent[1]))
        even = (self.sine * self.sine) * (k * less + (bent[0] + bent[1]))
        first, second = (num.divide(1.0, r) for r in lengths)
        return first * (0.5 * (odd + even)) * second

    def _waves(self, num: Arithmetic, pair: Pair) -> tuple[Number, Number, Number]:
        r"""$E_\mp = e^{-\omega^2 E(u \mp v)^2/2}$, and $E_- - E_+$ without its cancellation."""
        near, far = (falling(num, 2 * x) for x in self._distances(pair))
        product = (self.omega * pair.first.r) * (self.omega * pair.second.r)
        change = fallen(num, 2 * (product * abs(pair.c)))
        return near, far, num.where(pair.c > 0, near * change, -far * change)

    def _distances(self, pair: Pair) -> tuple[Any, Any]:
        """A quarter of the mean squares of omega (u - v) and of omega (u + v)."""
        product = (self.omega * pair.first.r) * (self.omega * pair.second.r)
        apart = self.omega * pair.apart
        least = 0.25 * (apart * apart)
        return least + product * pair.w, least + product * pair.z


class Soft(NamedTuple):
    """Numbers up to 1 or so, whatever the lengths."""

    y: Number
    one: Number  # beta1/y
    two: Number  # beta2/y
    leans: tuple[Number, Number]  # (alpha1² beta2² + h)/y², and with both inputs exchanged


def _soft(num: Arithmetic, pair: Pair) -> Soft:
    first, second, a = pair.first, pair.second, pair.product
    y = num.sqrt(pair.cosine_square())
    one, two = both_over(num, first.beta, second.beta, y)
    turned = num.divide(num.divide((a * a) * (4 * (pair.w * pair.z)), y), y)
    u, v = first.alpha * two, second.alpha * one
    return Soft(y, one, two, (u * u + turned, v * v + turned))


def _over(num: Arithmetic, x: Ends, y: Ends) -> Ends:
    one, two = (num.divide(*both) for both in zip(x, y, strict=True))
    return one, two


@form_of.register
def _(layer: Erf, num: Arithmetic) -> Form:
    return ErfForm()


@form_of.register
def _(layer: Gelu, num: Arithmetic) -> Form | None:
    return None if layer.approximate else GeluForm()


@form_of.register
def _(layer: Gaussian, num: Arithmetic) -> Form:
    return GaussianForm()


@form_of.register
def _(layer: Cos, num: Arithmetic) -> Form:
    return SineForm(layer.omega, 1.0, 0.0)


@form_of.register
def _(layer: Sin, num: Arithmetic) -> Form:
    if known_zero(layer.phase):
        return SineForm(layer.omega, 0.0, 1.0)
    return SineForm(layer.omega, *sine_and_cosine(num, layer.phase))
