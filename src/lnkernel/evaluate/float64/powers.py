r"""Real powers of `Precise` numbers.

Write $x = h\,2^k$ with $1 \le h < 2$ and $pk = w + f$ with a whole number $w$: then $x^p = h^p\,2^f\,2^w$.
Powers above 1 multiply a relative error, so they are computed to twice the digits of float64;
those below 1 shrink it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.namespace import differentiable_in
from lnkernel.evaluate.float64.precise import Precise, as_precise, normalised, plain, quotient
from lnkernel.evaluate.float64.projection import rounded_to_26_bits

LOG_2 = 0.6931471805599453, 2.3190468138462996e-17
TERMS, HALVINGS = 17, 6  # of the exponential series: (1/20)^17/17! is below 1e-36


def power(x: Precise, degree: float) -> Precise:
    """x^degree; 0 stays 0 and infinity infinite where the degree is positive."""
    if degree == 0:
        return as_precise(namespace.of(x.high).ones_like(x.high))
    if degree == 1 and x.exponent is None:
        return x
    x = normalised(x)
    if float(degree).is_integer() and 1 <= degree <= 8:
        return _whole_power(x, int(degree))
    return Precise(*_power(float(degree), x.high, x.low, x.exponent))


@differentiable_in(fixed=(0,))
def _power(degree: float, high: Array, low: Array, exponent: Array) -> tuple[Array, Array, Array]:
    xp = namespace.of(high)
    ordinary = (high > 0) & (high < xp.inf)
    base = Precise(xp.where(ordinary, high, 1.0), xp.where(ordinary, low, 0.0))
    whole, fraction = _multiple(degree, exponent)
    if 0 < 4 * degree <= 32 and float(4 * degree).is_integer():
        value = _quarters(int(4 * degree), base, fraction)
    elif degree > 1:
        value = exp_of_short(_log(base) * degree + Precise(*map(xp.asarray, LOG_2)) * fraction)
    else:
        value = as_precise(_rough(degree, base, fraction))
    value = normalised(value)
    assert value.exponent is not None  # `normalised` gives every number one
    ends = xp.where((high == 0) == (degree > 0), 0.0, xp.inf)
    return (
        xp.where(ordinary, value.high, ends),
        xp.where(ordinary, value.low, 0.0),
        xp.where(ordinary, value.exponent + whole, 0),
    )


@_power.defjvp
def _(degree: float, primals: Any, tangents: Any) -> tuple[Any, Any]:
    r"""$d(x^p)/x^p = p\,dx/x$; at 0 it is taken as 0."""
    value = _power(degree, *primals)
    high, ordinary = primals[0], (primals[0] > 0) & (primals[0] < jnp.inf)
    slope = jnp.where(ordinary, degree * value[0] / jnp.where(ordinary, high, 1.0), 0.0)
    no_change = tuple(jnp.zeros_like(t) for t in tangents[1:])
    return value, (slope * tangents[0], *no_change)


def _whole_power(x: Precise, degree: int) -> Precise:
    half = x if degree < 4 else _whole_power(x, degree // 2)
    square = half * half if degree > 1 else half
    return square * x if degree % 2 and degree > 1 else square


def _multiple(degree: float, exponent: Array) -> tuple[Array, Precise]:
    """degree * exponent as a whole number and the rest, in size at most about 1/2."""
    coarse = math.floor(degree * 2**20) / 2**20  # times an exponent it is exact
    product = exponent * coarse
    whole = namespace.of(product).round(product)
    fine = as_precise(exponent) * (degree - coarse)
    return whole.astype(exponent.dtype), fine + (product - whole)


def _rough(degree: float, x: Precise, fraction: Precise) -> Array:
    """x^degree 2^fraction for 1 <= x < 2, as a float64 number."""
    xp = namespace.of(x.high)
    return xp.exp(degree * xp.log(x.high) + plain(fraction) * LOG_2[0])


def _quarters(number: int, x: Precise, fraction: Precise) -> Precise:
    """x^(number/4) 2^fraction: one step of Newton's iteration for the fourth root."""
    rough = as_precise(_rough(number / 4, x, fraction))
    fourth = rough * rough * (rough * rough)
    wanted = _whole_power(x, number)
    xp = namespace.of(x.high)
    wanted = wanted * xp.exp2(xp.round(4 * plain(fraction)))
    return rough + rough * (0.25 * quotient(wanted + fourth * -1.0, fourth))


def _log(x: Precise) -> Precise:
    """For 1 <= x < 2: one step of Newton's iteration on exp."""
    rough = namespace.of(x.high).log(x.high)
    ratio = x * exp_of_short(as_precise(-rough))  # 1 + a tiny number, which is what `rough` lacks
    return as_precise(rough) + (ratio + as_precise(-1.0))


def exp_of_short(x: Precise) -> Precise:
    """For |x| below 3: the exponential series at x/2^HALVINGS, squared again and again."""
    small = x * 2.0**-HALVINGS
    xp = namespace.of(x.high)
    inverse = 1.0 / xp.arange(1.0, TERMS + 1)
    rest = (1.0 - rounded_to_26_bits(inverse) * xp.arange(1.0, TERMS + 1)) * inverse
    rest = rest - (inverse - rounded_to_26_bits(inverse))

    def term(k: Array, value: Precise) -> Precise:
        last = TERMS - 1 - k
        return small * value * Precise(inverse[last], rest[last]) + 1.0

    one = as_precise(xp.ones_like(x.high))
    repeat = lax.fori_loop if xp is jnp else _repeat
    series = repeat(0, TERMS, term, one)
    return repeat(0, HALVINGS, lambda _, value: value * value, series)


def _repeat(
    start: int, end: int, step: Callable[[Any, Precise], Precise], value: Precise
) -> Precise:
    """`lax.fori_loop` for NumPy."""
    for k in range(start, end):
        value = step(k, value)
    return value
