r"""Pairs of different lengths behind an activation that bends at 0 alone, or nowhere, from tables of its slopes.

With $m = \min(w, z)$ the slopes $S = E\,\phi'(u)\phi'(v)$ are smooth functions of $\sqrt m$ and of both lengths:
Chebyshev series in three variables, one for the acute angles and one for the others, and so are
$G = \frac1m\int_0^m S\,dm$. With unit images $a$, $b$ less their means, of sizes $s_1$ and $s_2$, the small angle of
inputs at acute angles is

    w_c = 1/4 |a - b|^2 at the angle 0  +  r1 r2/(s1 s2) w G,

where the first part is a matter of two lengths; at the others $z_c$ is, with $v$ turned round. The other angle is what
it leaves of 1. Where that is small, as for opposite inputs of a nearly even function, G has the other sign, and

    w_c = 1/4 |a - b|^2 with v turned round  -  r1 r2/(s1 s2) z G

is a sum of positive numbers again.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.polynomial.chebyshev import chebvander

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.angle_table import END
from lnkernel.evaluate.float64.chebyshev_points import points, rounded_series, series_through
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.known_pairs import KnownPairs, known_pairs, plain
from lnkernel.evaluate.float64.length_curves import Curves, curves_through, lengths_of_nodes
from lnkernel.evaluate.float64.moments import Moments
from lnkernel.evaluate.float64.polar import (
    Kind,
    Range,
    expectations,
    half_line,
    range_of,
    sides_of,
)
from lnkernel.evaluate.float64.polar import suits as bends_at_0_alone
from lnkernel.evaluate.float64.sides_of_pairs import (
    Between,
    Ends,
    Image,
    Places,
    dual_of,
    ends_through,
    inputs_of,
)

# Lengths and angles. A function whose slopes need more than these has no table; the other expectation has one then, for
# which the last counts are there
COUNTS = ((18, 32), (26, 40), (38, 50), (46, 54), (56, 64))
MOST = (*COUNTS, (72, 80), (96, 100))
ENOUGH = 1e-15  # of the last coefficients beside the largest number
ENOUGH_OF_ENDS = 4e-15  # of a user's function, in which digits may have cancelled
LONGEST = 128.0
# Of the spread over the length, beside the largest. Slopes may fall like its square, and of the least 256 times as
# many digits are lost as of the largest
LEAST = 2.0**-4
NEGLIGIBLE = 2.0**-56  # of a coefficient, beside the largest
MORE = 4  # lengths, for J
NODES = 96  # lengths, for numbers of single inputs
NEARLY_ALL = 0.75  # of 1: what is left of it is computed by itself
SHORTEST = 1e-150


# Of a function of the pair at angles of one kind the coefficients for each polynomial in the angle, (second length,
# functions, first length), as far as they matter
Half = tuple[np.ndarray, ...]
Counts = tuple[tuple[int, int], ...]


class Halves(NamedTuple):
    """A table of functions of the pair, for acute angles and for obtuse ones."""

    within: Range
    fall: float  # the power of `Range.far` of each length with which they were multiplied
    acute: Half
    obtuse: Half

    def at(
        self, lengths: tuple[np.ndarray, np.ndarray], at: Places, m: np.ndarray, acute: np.ndarray
    ) -> np.ndarray:
        """Its functions at all pairs, (functions, pairs)."""
        scale = _bend(self.within)
        x = 2 * (np.arcsinh(np.sqrt(m) / scale) / np.arcsinh(END / scale)) - 1
        one, two = map(self._polynomials, lengths)
        made = np.empty((self.acute[0].shape[1], len(m)))
        for half, which in ((self.acute, acute), (self.obtuse, ~acute)):
            if which.all():
                return _clenshaw(half, one, two, at, x)
            if which.any():
                made[:, which] = _clenshaw(half, one, two, at.some(which), x[which])
        return made

    def _polynomials(self, r: np.ndarray) -> np.ndarray:
        """Those of the lengths, (degrees, inputs)."""
        count = max(len(part) for half in (self.acute, self.obtuse) for part in half)
        polynomials = self.within.polynomials(r, count).T
        return np.ascontiguousarray(polynomials / self.within.far(r) ** self.fall)


def _bend(within: Range) -> float:
    """The root of an angle at which the scale of angles becomes logarithmic: long inputs feel smaller ones."""
    return 0.5 * min(within.half, 4.0) / within.longest


@known_pairs.register
def _(layer: Elementwise) -> KnownPairs:
    return KnownPairs(
        partial(suits, layer),
        partial(dual_by_tables, layer),
        partial(moments_by_table, layer),
        for_all=True,
    )


def suits(layer: Elementwise, longest: float) -> bool:
    """Whether there are tables for vectors of up to this length, of a layer with plain numbers."""
    if longest > LONGEST or not bends_at_0_alone(function_of(layer)):
        return False
    with jax.enable_x64(True), np.errstate(all="ignore"):
        return slope_table(layer, longest) is not None


def dual_by_tables(layer: Elementwise, cov: Covariance, longest: float) -> Dual:
    """The dual of pairs listed side by side, none longer than `longest`, of a layer that `suits`."""
    layer = plain(layer)
    table, at_end = slope_table(layer, longest), end_table(layer, longest)
    of_one = size_table(layer, longest)
    assert table is not None
    inputs, at = inputs_of(cov)
    lengths = np.maximum(inputs[0], SHORTEST), np.maximum(inputs[1], SHORTEST)
    one, two = (of_one.at(layer, r) for r in lengths)
    spreads = np.multiply(*at.of((one.spread, two.spread)))
    acute = cov.w <= cov.z
    m: Any = np.where(acute, cov.w, cov.z)
    slopes, gaps = table.at(lengths, at, m, acute)
    ends = (at_end.at(table.within.places(r)) for r in lengths)
    (even, even_turned), (odd, odd_turned) = (at.apart(*sides) for sides in zip(*ends, strict=True))
    below = m * gaps / spreads
    small = 0.25 * (np.where(acute, even, even_turned) + odd) + below
    rest = 0.25 * (np.where(acute, even_turned, even) + odd_turned) - below
    other = np.where(small > NEARLY_ALL, rest, 1 - small)
    images = _image(one, lengths[0]), _image(two, lengths[1])
    relative = np.multiply(*at.of((lengths[0] / images[0].size, lengths[1] / images[1].size)))

    def euler() -> np.ndarray:
        (found,) = euler_table(layer, longest).at(lengths, at, m, acute)
        made: np.ndarray = relative * found
        return made

    pairs = Between(
        np.where(acute, small, other),
        np.where(acute, other, small),
        relative * slopes,
        euler,
    )
    vanishes = function_of(layer).vanishes
    if vanishes:  # inputs that are shorter still, or zero
        first, second = (
            image._replace(size=image.size * (r / length))
            for image, r, length in zip(images, inputs, lengths, strict=True)
        )
        images = first, second
    return dual_of(cov, at, lengths, images, pairs, vanishes)


# ---------------------------------------------------------------- single inputs


class Sizes(NamedTuple):
    """What an activation makes of inputs."""

    mean: np.ndarray  # E phi
    spread: np.ndarray  # over the length
    slopes: np.ndarray  # E phi'²
    growth: np.ndarray  # E (u phi')², over the square of the length


class SizeTable(NamedTuple):
    """These as functions of the length, where they are simple enough."""

    within: Range
    curves: Curves

    def at(self, layer: Elementwise, r: np.ndarray) -> Sizes:
        """Of vectors of these lengths."""
        if self.curves.left > ENOUGH:
            return _sizes(layer, r)
        mean, spread, slopes, growth = self.curves.at(self.within.places(r))
        far = self.within.far(r)  # beside which all are of one size, however long the inputs
        start = function_of(layer).at_zero
        return Sizes(start + mean / far * r, spread / far, slopes / far, growth / (far * far))


@lru_cache(maxsize=64)
def size_table(layer: Elementwise, longest: float) -> SizeTable:
    """From values at some lengths."""
    within = range_of(layer, longest)
    r = within.lengths(lengths_of_nodes(1.0, count=NODES))
    mean, spread, slopes, growth = _sizes(layer, r)
    far = within.far(r)
    values = (
        (mean - function_of(layer).at_zero) * far / r,
        spread * far,
        slopes * far,
        growth * far * far,
    )
    return SizeTable(within, curves_through(1.0, np.column_stack(values)))


def _sizes(layer: Elementwise, r: np.ndarray) -> Sizes:
    """By quadrature."""
    phi, (x, weights) = function_of(layer), half_line()
    sides = sides_of(phi, r)
    mean = (sides.right + sides.left) @ weights
    apart = ((side - mean[..., None]) ** 2 for side in (sides.right, sides.left))
    square = np.square(sides.right_slope) + np.square(sides.left_slope)
    return Sizes(
        phi.at_zero + mean,
        np.sqrt(sum(apart) @ weights) / r,
        square @ weights,
        square @ (weights * x * x),
    )


def moments_by_table(layer: Elementwise, longest: float, length: np.ndarray) -> Moments:
    """The moments at lengths up to the longest."""
    layer = plain(layer)
    sizes = size_table(layer, longest).at(layer, length)
    variance = np.square(sizes.spread * length)
    return Moments(
        sizes.mean,
        np.square(sizes.mean) + variance,
        variance,
        sizes.slopes,
        sizes.growth * np.square(length),
    )


def _image(sizes: Sizes, r: np.ndarray) -> Image:
    """Of vectors of these lengths."""
    spread = sizes.spread * r
    size = np.sqrt(np.square(sizes.mean) + np.square(spread))
    return Image(size, sizes.mean / size, spread / size)


@lru_cache(maxsize=64)
def end_table(layer: Elementwise, longest: float) -> Ends:
    """Of the values of phi(ru)/r at the nodes of a quadrature over u, less their means."""
    within, (_, weights) = range_of(layer, longest), half_line()
    r = within.lengths(lengths_of_nodes(1.0, count=NODES))
    sides = sides_of(function_of(layer), r)
    even = (sides.right + sides.left).T
    even = even - 2 * (weights @ even)
    roots = np.sqrt(0.5 * weights)[:, None] * (within.far(r) / r)
    return ends_through(1.0, roots * even, roots * (sides.right - sides.left).T)


# ---------------------------------------------------------------- pairs


@lru_cache(maxsize=64)
def slope_table(layer: Elementwise, longest: float) -> Halves | None:
    """S and G; None where the series do not converge."""
    within = range_of(layer, longest)
    r = within.lengths(points(COUNTS[0][0], 1.0))
    spread = _sizes(layer, r).spread * within.far(r)
    if not spread.min() > LEAST * spread.max():
        return None
    if end_table(layer, longest).curves.left > ENOUGH_OF_ENDS:
        return None
    return _enough(layer, within, _kind(layer, within, False), COUNTS)


@lru_cache(maxsize=64)
def euler_table(layer: Elementwise, longest: float) -> Halves:
    """E u phi'(u) v phi'(v) over the product of the lengths: made where a rule asks for it."""
    within = range_of(layer, longest)
    kind = _kind(layer, within, True)
    return _enough(layer, within, kind, MOST) or _table(layer, within, kind, MOST[-1])[0]


def _enough(layer: Elementwise, within: Range, kind: Kind, several: Counts) -> Halves | None:
    """A table of as few numbers as suffice; None where the most do not."""
    least = 0.0
    for counts in several:
        if counts[0] >= least:
            made, left = _table(layer, within, kind, counts)
            if left < ENOUGH:
                return made
            # coefficients fall like powers
            least = counts[0] * math.log(ENOUGH) / math.log(min(left, 0.5))
    return None


def _table(
    layer: Elementwise, within: Range, kind: Kind, counts: tuple[int, int]
) -> tuple[Halves, float]:
    """A table of so many numbers, and the size of the last coefficients beside the largest."""
    halves = _halves(layer, within, kind, counts)
    most = max(abs(half[0]).max() for half in halves)
    ends = (end for half in halves for end in (half[0, -2:], half[0, ..., -2:]))
    acute, obtuse = (_trimmed(half) for half in halves)
    return Halves(within, kind.fall, acute, obtuse), max(abs(end).max() for end in ends) / most


def _trimmed(square: np.ndarray) -> Half:
    """Without what is negligible beside the largest coefficient."""
    counts = abs(square) > NEGLIGIBLE * abs(square).max()
    needed = counts.any(axis=(0, 2))
    degrees = [np.flatnonzero(row).max(initial=-1) + 1 for row in needed]
    while not degrees[-1]:
        degrees.pop()
    parts = (square[:, order, :count, :count] for order, count in enumerate(degrees))
    return tuple(np.ascontiguousarray(part.transpose(2, 0, 1)) for part in parts)


def _kind(layer: Elementwise, within: Range, euler: bool) -> Kind:
    """The expectation, and the power of `Range.far` with which it falls for either input, as of a function that
    saturates."""
    sizes = _sizes(layer, within.lengths(np.array([1e-6, 1.0])))
    first, last = sizes.growth if euler else sizes.slopes
    falls = last * within.far(within.longest) ** 0.75 < 0.7 * first
    return Kind(euler, (1.5 if euler else 0.5) if falls else 0.0)


def _halves(
    layer: Elementwise, within: Range, kind: Kind, counts: tuple[int, int]
) -> list[np.ndarray]:
    """From values at some lengths and angles: of S and G, or of the other expectation; (functions, angles, lengths,
    lengths)."""
    lengths, angles = counts
    scale = _bend(within)
    r, end = within.lengths(points(lengths, 1.0)), float(np.arcsinh(END / scale))
    place = points(angles, end)
    unlike = 2 * np.arcsin(scale * np.sinh(place))
    weights = within.far(r) ** kind.fall
    halves = []
    for angle in (unlike, np.pi - unlike):
        found = expectations(layer, within, kind, lengths + MORE, r, angle)
        series = rounded_series((found * weights * weights[:, None]).T)
        values = [series] if kind.euler else [series, series @ _means_below(place, end)]
        square = np.moveaxis(np.stack(values), -1, 1)
        for axis in (2, 3):
            square = np.moveaxis(rounded_series(np.moveaxis(square, axis, -1)), -1, axis)
        halves.append(square)
    return halves


def _means_below(place: np.ndarray, end: float) -> np.ndarray:
    """Takes the coefficients of S on (0, end) to those of 1/m ∫ S dm from 0 to m, where m goes like sinh(place)²."""
    x, weights = np.polynomial.legendre.leggauss(len(place))
    inside = place[:, None] * (0.5 * x + 0.5)
    density = place[:, None] * np.sinh(2 * inside) / np.square(np.sinh(place))[:, None]
    polynomials = chebvander(inside * (2 / end) - 1, len(place) - 1)
    return series_through(np.einsum("ji,jik->kj", density * (0.5 * weights), polynomials))


def _clenshaw(
    half: Half, one: np.ndarray, two: np.ndarray, at: Places, x: np.ndarray
) -> np.ndarray:
    """The functions of the pairs, (functions, pairs), whose angles are at these places of (-1, 1)."""
    functions = half[0].shape[1]
    value, above = np.zeros((2, functions, len(x)))
    for order in range(len(half) - 1, -1, -1):
        here, count = half[order], len(half[order])
        if count:
            left = multiply_alone(here.reshape(-1, count), one[:count]).reshape(count, -1)
            new = at.products(left, two[:count]).reshape(functions, -1)
        else:
            new = np.zeros_like(value)
        new -= above
        new += (2 * x if order else x) * value
        value, above = new, value
    return value
