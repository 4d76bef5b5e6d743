"""The dual of an analytic activation without a closed form, in balls: an orthogonal sum of its parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum, scaled
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.balls.analytic import Analytic
from lnkernel.evaluate.balls.arithmetic import Balls
from lnkernel.evaluate.balls.at_length import at_length, derivative, image
from lnkernel.evaluate.balls.numbers import Ball, balls

Sides = Any  # the function at one length, or an array of them


class Part(NamedTuple):
    """A part of the activation that is orthogonal to the others, less its mean."""

    covariance: Covariance
    slope: Ball  # r1 r2 E f' f' and E u f' v f', over both lengths of the part
    euler: Ball
    derivative: Ball  # E f' f'


def series_dual(num: Balls, layer: Smooth, phi: Analytic, cov: Covariance) -> Dual:
    """The dual at a pair, or at arrays of pairs."""
    parts, means = [], [phi.at_zero, phi.at_zero]
    if not phi.linear.is_zero():
        slope = phi.linear * phi.linear
        parts.append(Part(scaled(num, cov, phi.linear), arb(1), cov.c, slope))
    if phi.odd is not None:
        parts.append(_part(num, cov, *_sides(num, layer, True, cov)))
    if phi.even is not None:
        one, two = _sides(num, layer, False, cov)
        parts.append(_part(num, cov, one, two))
        means = [balls(phi.at_zero + _mean(side)) for side in (one, two)]
    centred, shares = orthogonal_sum(num, [part.covariance for part in parts])
    centred = _with_cosine(num, centred)
    slope = sum(share * part.slope for share, part in zip(shares, parts, strict=True))
    euler = sum(share * part.euler for share, part in zip(shares, parts, strict=True))
    total, mean = centred, None
    if not phi.at_zero.is_zero() or phi.even is not None:
        alive = [phi.at_zero > 0 or side.live for side in (cov.first, cov.second)]
        first, second = (Length(m * m, live) for m, live in zip(means, alive, strict=True))
        line = Covariance(first, second, 0.0, 1.0, 1.0, _difference(num, first, second, cov), True)
        total, (share, _) = orthogonal_sum(num, [centred, line])
        total = _with_cosine(num, total)
        slope, euler = share * slope, share * euler
        ends = (total.first, total.second)
        one, two = (num.divide(m, num.sqrt(end.q)) for m, end in zip(means, ends, strict=True))
        rests = (
            num.sqrt(num.divide(part.q, end.q))
            for part, end in zip((centred.first, centred.second), ends, strict=True)
        )
        mean = Mean(one, two, line.e, Both(*rests))
    return Dual(
        total=total,
        mean=mean,
        slope=slope,
        euler=euler,
        derivative=lambda: (sum(part.derivative for part in parts),),
        centred=centred,
    )


def _with_cosine(num: Balls, cov: Covariance) -> Covariance:
    """The same pair with c = 1 - 2w where that does not cancel."""
    return replace(cov, c=num.where(cov.w < 0.25, 1 - 2 * cov.w, cov.c))


def _difference(num: Balls, first: Length, second: Length, before: Covariance) -> Ball:
    return before.e if known_zero(before.e) else num.length_difference(first.q, second.q)


def _sides(num: Balls, layer: Smooth, odd: bool, cov: Covariance) -> tuple[Sides, Sides]:
    """The odd or the even function at the lengths of both inputs."""
    lookup = np.frompyfunc(lambda q: at_length(layer, odd, q, num.bits), 1, 1)
    return lookup(balls(cov.first.q)), lookup(balls(cov.second.q))


_mean = np.frompyfunc(lambda side: side.moments.mean, 1, 1)
_variance = np.frompyfunc(lambda side: side.variance, 1, 1)
_image = np.frompyfunc(image, 4, 4)
_derivative = np.frompyfunc(derivative, 3, 1)


def _part(num: Balls, cov: Covariance, one: Sides, two: Sides) -> Part:
    """Computed for the acute one of rho and -rho: an odd function turns with it, an even one does not."""
    acute = cov.acute
    m, x = num.where(acute, cov.w, cov.z), num.where(acute, cov.c, -1 * cov.c)
    w, c, slope, euler = map(balls, _image(one, two, balls(m), balls(x)))
    z = 1 - w
    odd = np.ravel(np.asarray(one, dtype=object))[0].odd
    if odd:
        w, z = num.where(acute, w, z), num.where(acute, z, w)
        c, euler = num.where(acute, c, -1 * c), num.where(acute, euler, -1 * euler)
    else:
        slope = num.where(acute, slope, -1 * slope)
    first, second = (
        Length(balls(_variance(side)), old.live)
        for side, old in ((one, cov.first), (two, cov.second))
    )
    e = _difference(num, first, second, cov)
    signed = Covariance(first, second, w, z, c, e)
    return Part(signed, slope, euler, balls(_derivative(one, two, balls(slope))))
