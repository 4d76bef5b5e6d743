"""Closed forms of activations in float64: their elementary functions, and the quick way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from lnkernel.calculus import elementary
from lnkernel.calculus.closed import (
    Form,
    Own,
    assemble,
    closed_dual,
    equal_pair,
    own_bare_slope,
    read,
    side_of,
    with_squares,
)
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.forms import ErfForm
from lnkernel.calculus.state import Both, Mean
from lnkernel.calculus.twin import Elementary
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.elementary import arctangent_ratio, divided_difference
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.kept import keep
from lnkernel.evaluate.float64.namespace import constant
from lnkernel.evaluate.float64.own_moments import (
    OwnMoments,
    kept_moments,
    numbers_of,
    own_moments,
)
from lnkernel.evaluate.float64.precise import Precise, as_precise
from lnkernel.evaluate.float64.precise_functions import ratio, root, without_exponent

SHORT = 0.25  # of the squares of sines
FAR = 0.25  # of w and z, from which on a cosine tells all their digits
# arcsin(x)/x as a series in x²: the first term left out is 2e-18
SERIES = tuple(math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(26))


@elementary.circle.register
def _(num: Float64) -> float:
    return 2 * math.pi


@elementary.sine_and_cosine.register
def _(num: Float64, x: Any) -> tuple[Array, Array]:
    return num.xp.sin(x), num.xp.cos(x)


@elementary.arcsine.register
def _(num: Float64, sine: Array, cosine: Array) -> Array:
    if num.quick:  # XLA calls a function for every single arctan2
        return sine * _quick_arcsine_ratio(sine, cosine)
    return num.xp.arctan2(sine, cosine)


@elementary.arcsine_ratio.register
def _(num: Float64, sine: Array, cosine: Array) -> Array:
    if num.quick:
        return _quick_arcsine_ratio(sine, cosine)
    none = sine == 0
    away = num.xp.where(none, 1.0, sine)
    return num.xp.where(none, 1.0, num.xp.arctan2(away, cosine) / away)


def _quick_arcsine_ratio(sine: Array, cosine: Array) -> Array:
    """The angle is twice that with the tangent sine/(1 + cosine), for a cosine that is not negative."""
    inverse = 2.0 * (1 / (1 + cosine))
    tangent = sine * inverse  # twice that of half the angle
    return inverse * arctangent_ratio(0.25 * (tangent * tangent))


@elementary.both_over.register
def _(num: Float64, x: Array, y: Array, by: Array) -> tuple[Array, Array]:
    if num.quick:
        inverse = num.divide(1.0, by)
        return x * inverse, y * inverse
    return num.divide(x, by), num.divide(y, by)


@elementary.arcsine_ratio_gap.register
def _(num: Float64, one: Array, other: Array, gap: Array, by_rule: Array, direct: Array) -> Array:
    """By the series where both are small, since the ratios agree in most digits there; by their difference where
    one is twice the other."""
    x, y, xp = one * one, other * other, num.xp
    small, apart = (x < SHORT) & (y < SHORT), (2 * y < x) | (2 * x < y)
    slope = divided_difference(SERIES, xp.where(small, x, 0.0), xp.where(small, y, 0.0))
    far = xp.where(apart, direct, by_rule)
    return xp.where(small, gap * (one + other) * slope, far)


@elementary.falling.register
def _(num: Float64, x: Array) -> Array:
    return num.xp.exp(-x)


@elementary.fallen.register
def _(num: Float64, x: Array) -> Array:
    return -num.xp.expm1(-x)


@elementary.sharper.register
def _(num: Float64, by_rule: Array, direct: Array) -> Array:
    return by_rule


def dual(form: Form, cov: Covariance, num: Float64) -> Dual:
    """With all care, or quickly; of an input and itself to twice the digits."""
    if num.equal:
        itself = kept_moments(form, as_precise(cov.first.q), again=True)
        if itself is not None:
            return _of_equals(form, cov, num, itself)
    moments = _own_moments(form, cov, num)
    own = None if moments is None else _own(form, cov, moments, num)
    if num.quick:
        return _quickly(form, cov, num, own)
    made = closed_dual(form, cov, num, own)
    if is_sharper(form, num) and moments is not None:
        made = made._replace(slope=_sharp_slope(form, cov, num, moments, made.slope))
    assert made.centred is not None
    total = _consistent(num, _not_negative(num, made.total))
    centred = total
    if made.centred is not made.total:
        centred = _consistent(num, _not_negative(num, made.centred))
    return made._replace(total=total, centred=centred)


def is_sharper(form: Form | None, num: Float64) -> bool:
    """Whether this form has more digits than a table: erf's, where there is time for them."""
    return isinstance(form, ErfForm) and num.xp is np and not num.quick


def _sharp_slope(
    form: Form, cov: Covariance, num: Float64, moments: tuple[OwnMoments, OwnMoments], usual: Any
) -> Any:
    r"""The slope of erf to twice the digits: $\sqrt{g_1 g_2}\,\sqrt{y_{11} y_{22}}/y_{12}$ with the growths $g_i$.

    Where an angle is as small as the rounding of 1, $y_{12}$ is $y_{11}$ or the next number, in all layers alike.
    """
    one, two = (each.growth for each in moments)
    pair = read(form, cov, num).pair
    first, second = (
        side._replace(alpha=as_precise(side.alpha), beta=as_precise(side.beta))
        for side in (pair.first, pair.second)
    )
    pair = pair._replace(first=first, second=second, w=as_precise(pair.w), z=as_precise(pair.z))
    ends = [equal_pair(side).cosine_square() for side in (first, second)]
    turn = ratio(root(ends[0] * ends[1]), pair.cosine_square())
    made = without_exponent(root(as_precise(one) * two) * root(turn))
    good, usual = num.xp.isfinite(made.high), as_precise(usual)
    return Precise(
        num.xp.where(good, made.high, usual.high), num.xp.where(good, made.low, usual.low)
    )


def _not_negative(num: Float64, cov: Covariance) -> Covariance:
    """Angles of nearly 0 that rounding has made negative are 0; the roots of others would be NaN."""
    w, z = (num.xp.where(x < 0, 0.0, x) for x in (cov.w, cov.z))
    return replace(cov, w=w, z=z)


def _consistent(num: Float64, cov: Covariance) -> Covariance:
    """The same pair, whose w, z and c belong to one angle to the last digit: w and z from c where none of them is
    small, c from the small one where one is. Layers that widen angles multiply what they differ by, one after another;
    fifty layers of erf made 2e-7 of a rounding error."""
    xp, w, z, c = num.xp, cov.w, cov.z, cov.c
    c = xp.where(w < FAR, 1 - 2 * w, xp.where(z < FAR, 2 * z - 1, c))
    middle = (w >= FAR) & (z >= FAR)
    return replace(
        cov, w=xp.where(middle, 0.5 - 0.5 * c, w), z=xp.where(middle, 0.5 + 0.5 * c, z), c=c
    )


def _own_moments(form: Form, cov: Covariance, num: Float64) -> tuple[OwnMoments, OwnMoments] | None:
    """Those of each input by itself."""
    sides = [as_precise(side.q) for side in (cov.first, cov.second)]
    listed = num.xp is np and not num.quick and not any(isinstance(q, Gathered) for q in sides)
    if listed and np.ndim(sides[0].high) == np.ndim(sides[1].high) == 1:
        both = own_moments(form, jax.tree.map(lambda *parts: np.stack(parts), *sides))
        one, two = (jax.tree.map(lambda part, k=k: part[k], both) for k in (0, 1))
    else:
        one, two = (num.of_input(partial(kept_moments, form), side) for side in sides)
    return None if one is None or two is None else (one, two)


def _own(
    form: Form, cov: Covariance, moments: tuple[OwnMoments, OwnMoments], num: Float64
) -> tuple[Own, Own]:
    """What is known of each input by itself."""
    first, second = (
        Own(each.square, each.variance, partial(_calibration, form, num, side.q, each.growth))
        for each, side in zip(moments, (cov.first, cov.second), strict=True)
    )
    return first, second


def _calibration(
    form: Form, num: Float64, q: Any, growth: Precise, bare: Callable[[], Array]
) -> tuple[Array, Array | Precise | None]:
    """Of an input with the squared length q, which tells all the rest."""
    numbers = numbers_of(form)
    if num.keeps and numbers is not None and (num.quick or isinstance(q, Gathered)):
        rules = "calibration", type(form), numbers, num.quick
        return keep(rules, partial(_calibrate_at, form, num), as_precise(q))
    return num.of_input(partial(_calibrate, num), growth, bare())


def _calibrate_at(form: Form, num: Float64, q: Precise) -> tuple[Array, Array | Precise | None]:
    own = kept_moments(form, q)
    assert own is not None
    return _calibrate(num, own.growth, own_bare_slope(form, num, side_of(form, num, q)))


def _calibrate(num: Float64, growth: Precise, bare: Array) -> tuple[Array, Array | Precise | None]:
    """sqrt(growth/bare); and half of what the rounded product of two of them with `bare` lacks, relatively, where
    there is time for it. By NumPy that is `Precise`, and so are then the slope and Θ, whose roundings in equal layers
    would lean the same way."""
    factor = without_exponent(root(ratio(growth, bare))).high
    if num.quick:
        return factor, None
    made = constant(factor * bare * factor)
    lack = without_exponent(growth + -made)
    rest = constant(num.divide(0.5 * (lack.high + lack.low), made))
    return factor, as_precise(rest) if num.xp is np else rest


def _of_equals(form: Form, cov: Covariance, num: Float64, own: OwnMoments) -> Dual:
    """There is no angle; all that is left are the moments of one input."""
    side = read(form, cov, num).pair.first
    pair = equal_pair(side)
    alive = cov.first.live if form.vanishes else True
    length, rest = Length(own.square, alive), Length(own.variance, cov.first.live)
    total, centred = (Covariance(x, x, cov.w, cov.z, cov.c, cov.e) for x in (length, rest))
    mean = None
    if form.has_mean:
        share = num.divide(form.mean(num, side), num.sqrt(own.square))
        left = num.sqrt(num.divide(own.variance, own.square))
        mean = Mean(share, share, cov.e, Both(left, left))
    r = num.sqrt(own.square)
    return Dual(
        total=total,
        mean=mean,
        slope=own.growth,
        euler=lambda: form.euler(num, pair, (r, r)),
        derivative=lambda: (form.derivative(num, pair),),
        centred=centred,
    )


def _quickly(form: Form, cov: Covariance, num: Float64, own: tuple[Own, Own] | None) -> Dual:
    """The angles from their cosines; NaN where too few digits would be left of a small one."""
    pair = read(form, cov, num).pair
    # What was given up stays so: a root of NaN counts as 0, so that the cosine has to be NaN too.
    pair = pair._replace(c=num.where(pair.w == pair.w, pair.c, num.xp.nan))
    acute, of, near = cov.acute, Elementary(num), pair
    if not form.by_cosine:
        near = pair._replace(
            w=num.where(acute, pair.w, pair.z),
            z=num.where(acute, pair.z, pair.w),
            c=abs(pair.c),
        )
    equal = [equal_pair(side) for side in (pair.first, pair.second)]
    scales = [form.scale(num, side) for side in (pair.first, pair.second)]
    roots = num.sqrt(scales[0]) * num.sqrt(scales[1])
    ends: list[Any] = [0.0, 0.0]
    both: Any = 0.0
    if form.odd_is_linear:
        ends = [0.25 * (side.r * side.r) for side in (pair.first, pair.second)]
        both = 0.25 * (pair.first.r * (pair.second.r * pair.c))
    elif form.has_odd:
        ends = [scale * form.odd(of, end) for scale, end in zip(scales, equal, strict=True)]
        both = roots * form.odd(of, near)
        if not form.by_cosine:
            both = num.where(acute, both, -both)
    if form.has_even:
        more = [scale * form.even(of, end) for scale, end in zip(scales, equal, strict=True)]
        ends = [x + y for x, y in zip(ends, more, strict=True)]
        both = both + roots * form.even(of, near)
    centred = _covariance(num, cov, ends, both, (cov.first.live, cov.second.live))
    if own is not None:
        centred = with_squares(centred, own[0].variance, own[1].variance)
    if not form.has_mean:
        return assemble(form, num, pair, centred, None, centred, own)
    means = [form.mean(num, side) for side in (pair.first, pair.second)]
    alive = (cov.first.live, cov.second.live) if form.vanishes else (True, True)
    squares = [end + m * m for end, m in zip(ends, means, strict=True)]
    total = _covariance(num, cov, squares, both + means[0] * means[1], alive)
    if own is not None:
        total = with_squares(total, own[0].square, own[1].square)
    one, two = (num.divide(m, num.sqrt(q)) for m, q in zip(means, squares, strict=True))
    rest = [num.divide(num.sqrt(x), num.sqrt(y)) for x, y in zip(ends, squares, strict=True)]
    mean = Mean(one, two, _difference(num, cov, means), Both(rest[0], rest[1]))
    return assemble(form, num, pair, total, mean, centred, own)


def _covariance(
    num: Float64, cov: Covariance, ends: list[Any], both: Any, alive: tuple[Any, Any]
) -> Covariance:
    lengths = [num.sqrt(end) for end in ends]
    one, two = (
        num.divide(1.0, length) for length in lengths
    )  # once for an input, not for its pairs
    cosine = (both * one) * two
    first, second = (Length(end, live) for end, live in zip(ends, alive, strict=True))
    return Covariance(first, second, *num.angle(cosine), _difference(num, cov, lengths))


def _difference(num: Float64, cov: Covariance, ends: list[Any]) -> Any:
    if cov.e is None or known_zero(cov.e):  # no rule asks for it, or it is known
        return cov.e
    return num.divide(ends[0] - ends[1], ends[0] + ends[1])
