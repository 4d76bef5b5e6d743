r"""Pairs of clips at any angle, by NumPy: the careful way, in closed form but for a few nodes at the angle 0.

With $\mathrm{low} \le 0 \le \mathrm{high}$ let $h$ be the places of the kinks over $r_1$ and $k$ those over $r_2$, and
$c = 1$ for two kinks of one side, $-1$ for one of each. The slopes $S = E\,\phi'(u)\phi'(v)$ begin at the angle 0 with
the probability $P$ of the interval that both inputs share. By Plackett, with $\tau = \tan(t/2)$, they lose up to the
angle $\theta$

    1/2pi ∑ c exp(-(h² + k²)/4) ∫ exp(-(h - k)²/(8 τ²) - (h + k)² τ²/8) 2/(1 + τ²) dτ,   τ from 0 to T = tan(θ/2),

and $\int_0^m S\,dm$ loses as much of $mP$, but for the factor $(T^2 - \tau^2)/((1 + T^2)(1 + \tau^2))$ under the
integral. The first exponential changes on the scale of $h - k$, however small that is beside T. The rest is a power
series in $\tau^2$, up to some angle, and the integrals of $\exp(-A/x^2)$ times powers of x from 0 to 1 are known.

At the angle 0 the images are $a$ and $b$, of unit spread and without their means, and $w_c = \frac14 E\,(a - b)^2$ for
a difference that is linear between the kinks. Where one input alone is between its own, a few nodes serve, because
nothing must cancel there. At obtuse angles v is turned round, and low and high with it.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from lnkernel.arch.piecewise import Clip
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64.closed_pairs import AT_ONCE
from lnkernel.evaluate.float64.functions import density, erf, normal_below
from lnkernel.evaluate.float64.known_pairs import KnownPairs, known_pairs, plain
from lnkernel.evaluate.float64.moments import Moments, moments_at
from lnkernel.evaluate.float64.sides_of_pairs import Between, Image, dual_of, inputs_of

LONGEST = 8.0  # beside high - low: of longer inputs what is left of P at large angles has lost more than 5e-14
SHORTEST = 1e-70
REACH = 13.0  # the normal density there is 8e-38
FEW, MANY = 12, 56  # nodes, of intervals shorter than a standard deviation and of others
SERIES = 0.125  # the largest T for which the power series is taken
TERMS = 12  # of it: T² to this power is 1e-22
PANELS = 3  # beyond, in equal ratios: of 2 up to a right angle
NOTHING = 700.0  # exp of minus that is 1e-304


@known_pairs.register
def _(layer: Clip) -> KnownPairs:
    return KnownPairs(partial(suits, layer), partial(dual_of_clips, layer))


def suits(layer: Clip, longest: float) -> bool:
    """Whether vectors of up to this length are served; what is constant around 0 leaves less than any digit of short
    ones."""
    low, high = float(layer.low), float(layer.high)
    return low <= 0.0 <= high and longest <= LONGEST * (high - low)


def dual_of_clips(layer: Clip, cov: Covariance, longest: float) -> Dual:
    """The dual of pairs listed side by side."""
    layer = plain(layer)
    inputs, at = inputs_of(cov)
    first, second = (_input(layer, r) for r in inputs)
    acute = cov.w <= cov.z
    m: Any = np.where(acute, cov.w, cov.z)
    one, two = first.of_pairs(at.rows), second.of_pairs(at.columns).turned(~acute)
    alike, common = _at_angle_0(one, two)
    loss, loss_below = _losses(one, two, m)
    slopes = common - loss
    scale = one.length * two.length
    small = alike + scale / (one.spread * two.spread) * (m * common - loss_below)
    relative = scale / np.multiply(*at.of((first.size, second.size)))
    pairs = Between(
        np.where(acute, small, 1 - small),
        np.where(acute, 1 - small, small),
        relative * slopes,
        lambda: relative * np.where(acute, 1.0, -1.0) * _euler(one, two, m, slopes),
    )
    images = first.image(inputs[0]), second.image(inputs[1])
    lengths = np.where(inputs[0] > 0, inputs[0], 1.0), np.where(inputs[1] > 0, inputs[1], 1.0)
    return dual_of(cov, at, lengths, images, pairs, True)


class _Side(NamedTuple):
    """An input, or one of each pair."""

    length: np.ndarray
    size: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def of_pairs(self, index: np.ndarray) -> _Side:
        """Those inputs that stand in pairs."""
        return _Side(*(numbers[index] for numbers in self))

    def image(self, length: np.ndarray) -> Image:
        """Of inputs of these lengths, that may be too short for the numbers here: there the clip is straight, or two
        lines."""
        size = self.size * (length / self.length)
        return Image(size, self.mean / self.size, self.spread / self.size)

    def turned(self, which: np.ndarray) -> _Side:
        """Less phi of minus these inputs, in some of the pairs."""
        return self._replace(
            mean=np.where(which, -self.mean, self.mean),
            low=np.where(which, -self.high, self.low),
            high=np.where(which, -self.low, self.high),
        )

    @property
    def kinks(self) -> tuple[np.ndarray, np.ndarray]:
        return self.low / self.length, self.high / self.length

    @property
    def line(self) -> tuple[np.ndarray, np.ndarray]:
        """Level and slope between the kinks, of unit spread and without a mean."""
        return -self.mean / self.spread, self.length / self.spread

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Those beyond the kinks."""
        return (self.low - self.mean) / self.spread, (self.high - self.mean) / self.spread


def _input(layer: Clip, lengths: np.ndarray) -> _Side:
    """What inputs of these lengths tell, some at a time: each takes hundreds of nodes."""
    r = np.maximum(lengths, SHORTEST)
    parts = [moments_at(layer, r[k : k + AT_ONCE]) for k in range(0, len(r), AT_ONCE)]
    found = Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    ends = np.full(len(r), layer.low), np.full(len(r), layer.high)
    return _Side(r, np.sqrt(found.square), np.sqrt(found.variance), found.mean, *ends)


# ---------------------------------------------------------------- the angle 0


def _at_angle_0(one: _Side, two: _Side) -> tuple[Any, Any]:
    """w_c there, and the probability that both are between their kinks."""
    (low1, high1), (low2, high2) = one.kinks, two.kinks
    (level1, slope1), (level2, slope2) = one.line, two.line
    first: Any = np.maximum(low1, low2)
    last: Any = np.minimum(high1, high2)
    common: Any = 0.5 * (erf(last * math.sqrt(0.5)) - erf(first * math.sqrt(0.5)))
    level, slope = level1 - level2, slope1 - slope2
    at_first, at_last = density(first), density(last)
    # an end far out is where nothing is left
    second = common + _times(first, at_first) - _times(last, at_last)
    total = level * level * common + 2 * level * slope * (at_first - at_last)
    total += slope * slope * second
    ends = zip(one.levels(), two.levels(), strict=True)
    outer = np.minimum(low1, low2), -np.maximum(high1, high2)
    for (end1, end2), beyond in zip(ends, outer, strict=True):
        total += np.square(end1 - end2) * normal_below(beyond)
    for side, inner, end, alone in (
        (-1.0, -first, -outer[0], low1 < low2),
        (1.0, last, -outer[1], high1 > high2),
    ):
        # one input goes on, with its slope, and the other one is constant
        start = level + slope * side * np.minimum(inner, REACH)
        width = np.maximum(np.minimum(end, REACH) - inner, 0.0)
        rise = side * np.where(alone, slope1, -slope2)
        for node, weight in _nodes(MANY if width.max(initial=0.0) > 1 else FEW):
            x = width * node
            total += weight * width * np.square(start + rise * x) * density(inner + x)
    return 0.25 * total, common


@lru_cache(maxsize=2)
def _nodes(count: int) -> list[tuple[float, float]]:
    """Gauss-Legendre's for (0, 1), each with its weight."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return list(zip(0.5 + 0.5 * nodes, 0.5 * weights, strict=True))


def _times(place: np.ndarray, value: Any) -> Any:
    """Their product, 0 where the value is."""
    return np.where(value > 0, place, 0.0) * value


# ---------------------------------------------------------------- other angles


def _losses(one: _Side, two: _Side, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What S and its integral over m lose."""
    whole = m / (1 - m)  # T²
    cut = np.minimum(whole, SERIES * SERIES)
    slopes, below = np.zeros((2, len(m)))
    for sign, h, k in _corners(one, two):
        size = (sign / (2 * math.pi)) * np.exp(-0.25 * (h * h + k * k))
        near, far = 0.125 * np.square(h - k), 0.125 * np.square(h + k)
        for part, total in zip(_by_series(near, far, whole, cut), (slopes, below), strict=True):
            total += size * part
        beyond = np.flatnonzero(whole > cut)
        if beyond.size:
            parts = _by_nodes(near[beyond], far[beyond], whole[beyond])
            for part, total in zip(parts, (slopes, below), strict=True):
                total[beyond] += size[beyond] * part
    return slopes, (1 - m) * below


def _corners(one: _Side, two: _Side) -> list[tuple[float, Any, Any]]:
    """c, h and k, no farther than where nothing is left."""
    first, second = (
        [np.clip(kink, -4 * REACH, 4 * REACH) for kink in side.kinks] for side in (one, two)
    )
    return [
        (1.0 if i == j else -1.0, h, k) for i, h in enumerate(first) for j, k in enumerate(second)
    ]


def _by_series(
    near: np.ndarray, far: np.ndarray, whole: np.ndarray, cut: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The integrals up to the root of `cut`, without and with T² - τ² over 1 + τ²."""
    share = np.minimum(near / np.maximum(cut, 1e-300), NOTHING)
    end = np.exp(-share)
    moment = end - np.sqrt(math.pi * share) * 2 * normal_below(-np.sqrt(2 * share))
    power = np.ones_like(cut)  # of -far cut, over factorials
    once, twice = power, power  # divided by 1 + τ², and by its square
    slopes, below = once * moment, twice * whole * moment
    for k in range(1, TERMS):
        moment = (end - 2 * share * moment) / (2 * k + 1)
        below -= twice * cut * moment
        power = power * (-far * cut / k)
        once = power - cut * once
        twice = once - cut * twice
        slopes += once * moment
        below += twice * whole * moment
    root = 2 * np.sqrt(cut)
    return root * slopes, root * below


def _by_nodes(
    near: np.ndarray, far: np.ndarray, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same from there to T."""
    slopes, below = np.zeros((2, len(whole)))
    ratio = (np.sqrt(whole) / SERIES) ** (1 / PANELS)
    for panel in range(PANELS):
        start = SERIES * ratio**panel
        width = start * (ratio - 1)
        for node, weight in _nodes(MANY):
            square = np.square(start + width * node)
            value = (2 * weight) * width * np.exp(-near / square - far * square) / (1 + square)
            slopes += value
            below += value * (whole - square) / (1 + square)
    return slopes, below


def _euler(one: _Side, two: _Side, m: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """E xy of the unit Gaussians where both inputs are between their kinks."""
    rho, s = 1 - 2 * m, np.maximum(2 * np.sqrt(m * (1 - m)), 1e-150)
    total = rho * slopes
    for sign, h, k in _corners(one, two):
        across: Any = ((h - k) + 2 * m * k) / s
        along: Any = ((k - h) + 2 * m * h) / s
        at_h, at_k = density(h), density(k)
        ramps = h * at_h * normal_below(-along) + k * at_k * normal_below(-across)
        total += sign * (rho * ramps + s * at_h * density(along))
    return total
