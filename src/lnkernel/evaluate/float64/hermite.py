r"""Hermite series of analytic activations in float64.

The features $a_n(r) = E[\phi(ru)\,h_n(u)]$ are those of single inputs (`hermite_features.py`). For a pair, with unit
vectors $\hat a$, $\hat b$ of features,

    w' = 1/4 |a - b|^2 + 1/2 sum a_n b_n (1 - rho^n),

a sum in which errors of the features enter squared where two inputs are close, so that the small angle keeps
its digits. $1 - \rho^{n+2} = (1 - \rho^n) + 4wz\,\rho^n$ needs no subtraction either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.forms import form_of
from lnkernel.calculus.series import expectations
from lnkernel.calculus.state import Both, Mean
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64 import closed, namespace
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.delicate_products import dual_with_care
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.gaps import relative_difference, with_gap
from lnkernel.evaluate.float64.hermite_features import SHORTEST, Features, features
from lnkernel.evaluate.float64.hermite_tables import Parity, dual_by_tables
from lnkernel.evaluate.float64.on_diagonal import dual_of_equals
from lnkernel.evaluate.float64.separated import dual_by_products

BLOCK = 8  # polynomials in one step of a loop: numbers of pairs are read and written once for all
AT_ONCE = 1 << 18  # polynomials times pairs, up to which NumPy takes no loop


@expectations.register
def _(
    num: Float64,
    layer: Smooth,
    cov: Covariance,
    terms: int,
    degrees: Parity | None = None,
    longest: float | None = None,
) -> Dual:
    r1, r2 = cov.each(lambda length: num.xp.maximum(num.sqrt(length.q), SHORTEST))
    phi = function_of(layer)
    form = form_of(layer, num)
    # tables are quick; but their roundings, the same in equal layers, add up
    if (
        not closed.is_sharper(form, num)
        and degrees is not None
        and known_zero(cov.e)
        and np.ndim(r1) == 0
    ):
        one = features(layer, r1, terms)
        made = dual_by_tables(one.unit, one.euler, one.size, cov, degrees, phi.vanishes)
        return made._replace(derivative=lambda: (made.slope, one.size / r1, one.size / r1))
    if form is not None:
        return closed.dual(form, cov, num)
    if num.equal and (itself := dual_of_equals(num, layer, cov, longest)) is not None:
        return itself
    vary = np.ndim(r1) and np.ndim(r2)
    if num.quick and vary and longest is not None and num.prepares(np.size(r1) * np.size(r2)):
        quick = dual_by_products(num, layer, cov, (r1, r2), terms, longest)
        if quick is not None:
            return quick
    pairs = np.size(cov.w)
    if not num.quick and num.xp is np and longest is not None and num.prepares(pairs):
        careful = dual_with_care(layer, cov, terms, longest)
        if careful is not None:
            return careful
    one, two = (features(layer, r, terms) for r in (r1, r2))
    if num.quick:
        series, angles = _sum_quickly(one, two, cov, num.delicate)
    else:
        series, angles = _sum_carefully(one, two, cov)
    alive = (cov.first.live, cov.second.live) if phi.vanishes else (True, True)
    first, second = (
        Length(side.size * side.size, live).masked(num, side.size * side.size)
        for side, live in zip((one, two), alive, strict=True)
    )
    rest1, rest2 = (
        Length(side.q * (one_side.rest * one_side.rest), old.live)
        for side, one_side, old in (
            (first, one, cov.first),
            (second, two, cov.second),
        )
    )

    def apart(one: Array, two: Array) -> Array | None:
        """The relative difference, where a rule asks for it."""
        return None if cov.e is None else relative_difference(one, two)

    means, differs = (one.unit[0], two.unit[0]), [abs(x.unit[0]) * x.size for x in (one, two)]
    return Dual(
        total=Covariance(first, second, *angles.total, apart(one.size, two.size)),
        mean=Mean(*means, apart(*differs), Both(one.rest, two.rest)),
        slope=series.slope,
        euler=series.euler,
        derivative=lambda: (series.slope, one.size / r1, two.size / r2),
        centred=Covariance(
            rest1,
            rest2,
            *angles.centred,
            apart(*(x.size * x.rest for x in (one, two))),
        ),
    )


class Series(NamedTuple):
    """Sums over the Hermite polynomials, for each pair."""

    cosine: Array  # a b rho^n
    slope: Array  # n a b rho^(n-1)
    euler: Array


class Gaps(NamedTuple):
    """Those that the small angles are made of."""

    apart: Array  # (a - b)²
    turned: Array  # of odd polynomials (a - b)², of even ones (a + b)²
    apart_centred: Array  # both again, for the features without their mean
    turned_centred: Array
    near: Array  # a b (1 - rho^n)
    far: Array  # of odd polynomials a b (1 + rho^n), of even ones -a b (1 - rho^n)


class Angles(NamedTuple):
    """(w, z, c) of the images, and of the images less their means."""

    total: tuple[Array, Array, Array]
    centred: tuple[Array, Array, Array]


def _sum_quickly(
    one: Features, two: Features, cov: Covariance, least: float
) -> tuple[Series, Angles]:
    """The angles from their cosines; NaN where too few digits would be left of a small one, below `least`."""
    c, shape = _pairs(one, two, cov.c)
    zero = namespace.of(c).zeros(shape)
    mean = one.unit[0] * two.unit[0]

    def step(carry: Any, block: Any) -> tuple[Any, None]:
        series, power, before = carry
        for n, a, b, g, h in _terms(block):
            product = a * b
            series = Series(
                series.cosine + product * power,
                series.slope + n * product * before,
                series.euler + g * h * power,
            )
            power, before = power * c, power
        return (series, power, before), None

    start = Series(zero, zero, zero), zero + 1, zero
    # the mean is added, not subtracted: of short inputs it may be nearly all
    (series, *_), _ = _scan(step, start, _blocks(_without_mean(one), two))
    centred = series.cosine / (one.rest * two.rest)
    series = series._replace(cosine=mean + series.cosine)
    return series, Angles(*(with_gap(cosine, least) for cosine in (series.cosine, centred)))


def _without_mean(side: Features) -> Features:
    unit, xp = side.unit, namespace.of(side.unit)
    return side._replace(unit=xp.concatenate([xp.zeros_like(unit[:1]), unit[1:]]))


def _sum_carefully(one: Features, two: Features, cov: Covariance) -> tuple[Series, Angles]:
    """To the last digits of all angles; two polynomials at a time, an even and an odd one."""
    c, shape = _pairs(one, two, cov.c)
    xp = namespace.of(c)
    w, z = (xp.broadcast_to(xp.asarray(v, np.float64), shape) for v in (cov.w, cov.z))
    turn = 4 * (w * z)  # 1 - rho²
    zero = xp.zeros(shape)
    rest1, rest2 = one.rest, two.rest
    if xp is np and len(one.unit) * max(zero.size, 1) <= AT_ONCE:
        series, gaps = _sum_at_once(one, two, *(np.asarray(v) for v in (c, w, z)))
        return series, _angles(series, gaps, rest1 * rest2)

    def step(carry: Any, block: Any) -> tuple[Any, None]:
        series, gaps, power, before, even, odd, odd_far = carry
        terms = _terms(block)
        for (n, a, b, g, h), (m, a2, b2, g2, h2) in zip(terms[0::2], terms[1::2], strict=True):
            product, product2, power2 = a * b, a2 * b2, power * c
            series = Series(
                series.cosine + (product * power + product2 * power2),
                series.slope + (n * product * before + m * product2 * power),
                series.euler + (g * h * power + g2 * h2 * power2),
            )
            inside = xp.where(n > 0, 1.0, 0.0)  # the constant polynomial is the mean
            p, q = a * rest2, b * rest1
            together = xp.square(a2 - b2), xp.square(a2 * rest2 - b2 * rest1)
            gaps = Gaps(
                gaps.apart + xp.square(a - b) + together[0],
                gaps.turned + xp.square(a + b) + together[0],
                gaps.apart_centred + inside * xp.square(p - q) + together[1],
                gaps.turned_centred + inside * xp.square(p + q) + together[1],
                gaps.near + (product * even + product2 * odd),
                gaps.far + (product2 * odd_far - product * even),
            )
            even, odd, odd_far = even + turn * power, odd + turn * power2, odd_far - turn * power2
            power, before = power2 * c, power2
        return (series, gaps, power, before, even, odd, odd_far), None

    start = Series(zero, zero, zero), Gaps(*[zero] * 6), zero + 1, zero, zero, 2 * w, 2 * z
    (series, gaps, *_), _ = _scan(step, start, _blocks(one, two))
    return series, _angles(series, gaps, rest1 * rest2)


def _angles(series: Series, gaps: Gaps, both: Array) -> Angles:
    """The angles that follow from the gaps; `both` is the product of the shares that the means leave."""
    w2, z2 = 0.25 * gaps.apart + 0.5 * gaps.near, 0.25 * gaps.turned + 0.5 * gaps.far
    # the unit vectors without their means are a/rest1 and b/rest2
    w3 = (0.25 * (gaps.apart_centred / both) + 0.5 * gaps.near) / both
    z3 = (0.25 * (gaps.turned_centred / both) + 0.5 * gaps.far) / both
    return Angles((w2, z2, series.cosine), (w3, z3, z3 - w3))


def _sum_at_once(
    one: Features, two: Features, c: np.ndarray, w: np.ndarray, z: np.ndarray
) -> tuple[Series, Gaps]:
    """The same sums of few pairs, by NumPy: one operation for all polynomials, instead of a loop over them."""
    terms = len(one.unit)
    n, a, b, g, h = (
        _above(np.asarray(part), c.ndim)
        for part in (np.arange(float(terms)), one.unit, two.unit, one.euler, two.euler)
    )
    power = np.multiply.accumulate(_on_top(1.0, np.broadcast_to(c, (terms, *c.shape))), axis=0)
    products, before = a * b, _on_top(0.0, power[:-2])
    turns = 4 * (w * z) * power[:-1]
    even = np.add.accumulate(_on_top(0.0, turns[0:-2:2]), axis=0)
    odd = np.add.accumulate(_on_top(2 * w, turns[1:-1:2]), axis=0)
    odd_far = np.add.accumulate(_on_top(2 * z, -turns[1:-1:2]), axis=0)
    p, q = a * two.rest, b * one.rest  # without the constant polynomial, which is the mean
    together, together_centred = np.square((a - b)[1::2]).sum(0), np.square((p - q)[1::2]).sum(0)
    return Series(
        (products * power[:-1]).sum(0),
        (n * products * before).sum(0),
        (g * h * power[:-1]).sum(0),
    ), Gaps(
        np.square((a - b)[0::2]).sum(0) + together,
        np.square((a + b)[0::2]).sum(0) + together,
        np.square((p - q)[2::2]).sum(0) + together_centred,
        np.square((p + q)[2::2]).sum(0) + together_centred,
        (products[0::2] * even + products[1::2] * odd).sum(0),
        (products[1::2] * odd_far - products[0::2] * even).sum(0),
    )


def _above(part: np.ndarray, dimensions: int) -> np.ndarray:
    """The array with so many axes behind its first one."""
    missing = dimensions + 1 - part.ndim
    return part.reshape(len(part), *[1] * missing, *part.shape[1:])


def _on_top(first: Any, rows: np.ndarray) -> np.ndarray:
    """The rows, below another one."""
    return np.concatenate([np.broadcast_to(first, (1, *rows.shape[1:])), rows])


def _scan(step: Any, carry: Any, blocks: tuple[Any, ...]) -> tuple[Any, None]:
    if namespace.of(*blocks[1:]) is jnp:
        return lax.scan(step, carry, blocks)
    for block in zip(*blocks, strict=True):
        carry, _ = step(carry, block)
    return carry, None


def _pairs(one: Features, two: Features, c: Any) -> tuple[Array, tuple[int, ...]]:
    xp = namespace.of(one.size, two.size, c)
    shape = np.broadcast_shapes(np.shape(c), one.size.shape, two.size.shape)
    return xp.broadcast_to(xp.asarray(c), shape), shape


def _blocks(one: Features, two: Features) -> tuple[Any, ...]:
    """What a scan goes through, BLOCK polynomials in each step."""
    parts = (one.unit, two.unit, one.euler, two.euler)
    count = np.arange(len(one.unit), dtype=np.float64).reshape(-1, BLOCK)
    return count, *(v.reshape(len(v) // BLOCK, BLOCK, *v.shape[1:]) for v in parts)


def _terms(block: Any) -> list[tuple[Array, ...]]:
    return list(zip(*block, strict=True))
