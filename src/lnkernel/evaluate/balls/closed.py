"""Closed forms of activations in balls, and along a ray."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus import elementary
from lnkernel.calculus.closed import closed_dual
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.forms import form_of
from lnkernel.calculus.series import expectations
from lnkernel.evaluate.balls.analytic import analytic_of
from lnkernel.evaluate.balls.arithmetic import BallOperations, Balls
from lnkernel.evaluate.balls.at_length import exact_layer
from lnkernel.evaluate.balls.numbers import Ball, balls, elementwise, lower_end, upper_end
from lnkernel.evaluate.balls.on_ray import NONE, ZERO, Jet, OnRay, is_zero
from lnkernel.evaluate.balls.ray import Ray
from lnkernel.evaluate.balls.series import series_dual
from lnkernel.evaluate.balls.series_on_ray import series_dual_on_ray

_arcsine = elementwise(lambda sine, cosine: arb.atan2(sine, cosine), 2)
_ratio = elementwise(lambda sine, cosine: _arcsine_ratio(sine, cosine), 2)
_falling = elementwise(lambda x: (-x).exp(), 1)
_fallen = elementwise(lambda x: -((-x).expm1()), 1)
_sharper = elementwise(lambda x, y: x if x.is_finite() and x.rad() <= y.rad() else y, 2)


@expectations.register
def _(num: Balls, layer: Smooth, cov: Covariance, terms: int, *more: Any) -> Dual:
    return _dual(num, layer, cov, terms, series_dual)


@expectations.register
def _(num: Ray, layer: Smooth, cov: Covariance, terms: int, *more: Any) -> Dual:
    return _dual(num, layer, cov, terms, series_dual_on_ray)


def _dual(num: Any, layer: Smooth, cov: Covariance, terms: int, by_series: Any) -> Dual:
    """The dual by a closed form, or by Hermite polynomials and integrals; where neither is known it is refused."""
    form = form_of(layer, num)
    if form is not None:
        return closed_dual(form, cov, num)
    phi = analytic_of(exact_layer(layer))
    if phi is not None:
        return by_series(num, layer, phi, cov)
    return expectations.dispatch(object)(num, layer, cov, terms)


@elementary.circle.register
def _(num: BallOperations) -> arb:
    return 2 * arb.pi()


@elementary.sine_and_cosine.register
def _(num: BallOperations, x: Any) -> tuple[arb, arb]:
    sine, cosine = balls(x).sin_cos()
    return sine, cosine


@elementary.arcsine.register
def _(num: Balls, sine: Ball, cosine: Ball) -> Ball:
    return _arcsine(sine, cosine)


@elementary.arcsine_ratio.register
def _(num: Balls, sine: Ball, cosine: Ball) -> Ball:
    return _ratio(sine, cosine)


@elementary.arcsine_ratio_gap.register
def _(num: Balls, one: Ball, other: Ball, gap: Ball, by_rule: Ball, direct: Ball) -> Ball:
    return _sharper(by_rule, direct)


@elementary.refine_wave.register
def _(num: BallOperations, omega: Any, pair: Any, odd: bool, w: Any, c: Any) -> Any:
    return w


@elementary.falling.register
def _(num: Balls, x: Ball) -> Ball:
    return _falling(x)


@elementary.fallen.register
def _(num: Balls, x: Ball) -> Ball:
    return _fallen(x)


@elementary.sharper.register
def _(num: Balls, by_rule: Ball, direct: Ball) -> Ball:
    """Both enclose the difference. The rules lose it where one factor grows as much as another shrinks."""
    return _sharper(by_rule, direct)


# ---------------------------------------------------------------- along a ray
# Where the argument vanishes like a power of the length, so does the function: x times a factor.


@elementary.arcsine.register
def _(num: Ray, sine: Any, cosine: Any) -> Any:
    return _with_factor(num, sine, _arcsine_factor, _arcsine_factor_slope)


@elementary.arcsine_ratio.register
def _(num: Ray, sine: Any, cosine: Any) -> Any:
    if is_zero(sine):
        return arb(1)
    flat = num.lift(sine).flat()
    return OnRay(_jet(flat, _arcsine_factor, _arcsine_factor_slope), NONE, NONE, num.box)


@elementary.arcsine_ratio_gap.register
def _(num: Ray, one: Any, other: Any, gap: Any, by_rule: Any, direct: Any) -> Any:
    return by_rule


@elementary.sharper.register
def _(num: Ray, by_rule: Any, direct: Any) -> Any:
    return by_rule


@elementary.fallen.register
def _(num: Ray, x: Any) -> Any:
    return _with_factor(num, x, _fallen_factor, _fallen_factor_slope)


@elementary.falling.register
def _(num: Ray, x: Any) -> Any:
    if is_zero(x):
        return arb(1)
    flat = num.lift(x).flat()
    made = _jet(flat, lambda v: (-v).exp(), lambda v: -((-v).exp()))
    return OnRay(made, NONE, NONE, num.box)


def _with_factor(
    num: Ray, x: Any, factor: Callable[[arb], arb], slope: Callable[[arb], arb]
) -> Any:
    if is_zero(x):
        return ZERO
    x = num.lift(x)
    return x * OnRay(_jet(x.flat(), factor, slope), NONE, NONE, num.box)


def _jet(flat: Jet, f: Callable[[arb], arb], derivative: Callable[[arb], arb]) -> Jet:
    """f of a function that is not negative; f and its derivative are monotone, so the ends enclose them."""
    value = flat.value.nonnegative_part() if not flat.value >= 0 else flat.value
    ends = lower_end(value), upper_end(value)
    ranges = [g(ends[0]).union(g(ends[1])) for g in (f, derivative)]
    return Jet(ranges[0], ranges[1] * flat.slope)


def _arcsine_ratio(sine: arb, cosine: arb) -> arb:
    """It grows with |sine|; where the sine may be 0, the ends enclose it."""
    if not sine.contains(0):
        return arb.atan2(sine, cosine) / sine
    most = upper_end(abs(sine))
    return arb(1).union(_arcsine_factor(most)) if most < 1 else arb(1).union(arb.pi() / 2)


def _arcsine_factor(v: arb) -> arb:
    if v.is_zero():
        return arb(1)
    return v.asin() / v if v < 1 else arb.pi() / 2


def _arcsine_factor_slope(v: arb) -> arb:
    if v.is_zero():
        return arb(0)
    if not v < 1:
        return arb.pos_inf()
    return (v / (1 - v * v).sqrt() - v.asin()) / (v * v)


def _fallen_factor(v: arb) -> arb:
    return arb(1) if v.is_zero() else arb(0) if not v.is_finite() else -((-v).expm1()) / v


def _fallen_factor_slope(v: arb) -> arb:
    if v.is_zero():
        return arb(-0.5)
    return arb(0) if not v.is_finite() else ((-v).exp() * (1 + v) - 1) / (v * v)
