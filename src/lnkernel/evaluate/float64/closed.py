"""Closed forms of activations in float64: their elementary functions, and the quick way."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from lnkernel.calculus import elementary
from lnkernel.calculus.closed import Form, assembled, closed_dual, read
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.calculus.twin import Elementary
from lnkernel.check import known_zero
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.gaps import with_gap


@elementary.circle.register
def _(num: Float64) -> float:
    return 2 * math.pi


@elementary.sine_and_cosine.register
def _(num: Float64, x: Any) -> tuple[Array, Array]:
    return jnp.sin(x), jnp.cos(x)


@elementary.arcsine.register
def _(num: Float64, sine: Array, cosine: Array) -> Array:
    return jnp.arctan2(sine, cosine)


@elementary.falling.register
def _(num: Float64, x: Array) -> Array:
    return jnp.exp(-x)


@elementary.fallen.register
def _(num: Float64, x: Array) -> Array:
    return -jnp.expm1(-x)


@elementary.sharper.register
def _(num: Float64, by_rule: Array, direct: Array) -> Array:
    return by_rule


def dual(form: Form, cov: Covariance, num: Float64) -> Dual:
    """With all care, or quickly."""
    return _quickly(form, cov, num) if num.quick else closed_dual(form, cov, num)


def _quickly(form: Form, cov: Covariance, num: Float64) -> Dual:
    """The angles from their cosines; NaN where too few digits would be left of a small one."""
    pair = read(form, cov, num).pair
    acute, of = cov.acute, Elementary(num)
    near = pair._replace(
        w=num.where(acute, pair.w, pair.z),
        z=num.where(acute, pair.z, pair.w),
        c=jnp.abs(pair.c),
    )
    equal = [
        pair._replace(first=side, second=side, apart=0.0, w=0.0, z=1.0, c=1.0)
        for side in (pair.first, pair.second)
    ]
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
        both = num.where(acute, both, -both)
    if form.has_even:
        more = [scale * form.even(of, end) for scale, end in zip(scales, equal, strict=True)]
        ends = [x + y for x, y in zip(ends, more, strict=True)]
        both = both + roots * form.even(of, near)
    centred = _covariance(num, cov, ends, both, (cov.first.live, cov.second.live))
    if not form.has_mean:
        return assembled(form, num, pair, centred, None, centred)
    means = [form.mean(num, side) for side in (pair.first, pair.second)]
    alive = (cov.first.live, cov.second.live) if form.vanishes else (True, True)
    squares = [end + m * m for end, m in zip(ends, means, strict=True)]
    total = _covariance(num, cov, squares, both + means[0] * means[1], alive)
    one, two = (num.divide(m, num.sqrt(q)) for m, q in zip(means, squares, strict=True))
    rest = [num.divide(num.sqrt(x), num.sqrt(y)) for x, y in zip(ends, squares, strict=True)]
    mean = Mean(one, two, _difference(num, cov, means), Both(rest[0], rest[1]))
    return assembled(form, num, pair, total, mean, centred)


def _covariance(
    num: Float64, cov: Covariance, ends: list[Any], both: Any, alive: tuple[Any, Any]
) -> Covariance:
    lengths = [num.sqrt(end) for end in ends]
    cosine = num.divide(num.divide(both, lengths[0]), lengths[1])
    first, second = (Length(end, live) for end, live in zip(ends, alive, strict=True))
    return Covariance(first, second, *with_gap(cosine), _difference(num, cov, lengths))


def _difference(num: Float64, cov: Covariance, ends: list[Any]) -> Any:
    if known_zero(cov.e):
        return cov.e
    return num.divide(ends[0] - ends[1], ends[0] + ends[1])
