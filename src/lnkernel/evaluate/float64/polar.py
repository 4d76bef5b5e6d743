r"""E phi'(u) phi'(v) of pairs, for functions that bend at 0 or nowhere, in polar coordinates.

There u and v are R times functions of the direction, and both keep their signs in four wedges: that of two positive
numbers and that of two negative ones have the angle $\pi - \theta$, the others $\theta$, where $\theta$ is the angle of
the pair. In a wedge of the angle $\Omega$ the sizes of u and v are $aR$ and $bR$ with $a = r_1\sin\psi$ and
$b = r_2\sin(\Omega - \psi)$, and

    J(a, b) = ∫ R e^(-R²/2) phi'(±aR) phi'(±bR) dR,   E phi'(u) phi'(v) = 1/2pi ∑ ∫ J dpsi.

J is a smooth function of two lengths: a Chebyshev series in both, made of products of numbers of one length. With the
factor $uv$ the same gives $E\,u\phi'(u)\,v\phi'(v)$.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from lnkernel.arch.elementwise import Elementwise
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.chebyshev_points import points, series_through
from lnkernel.evaluate.float64.functions import Function, density, function_of

REACH = 13.0  # the normal density there is 8e-38
PANELS, POINTS = 24, 16
FINER = 6  # halvings of the first panel, next to 0, where long inputs bend
# How many directions suffice up to which share of the range's half. In wedges of long inputs much changes at the ends,
# where a hyperbolic tangent makes them denser: errors of a few 1e-16 are left
DIRECTIONS = {0.02: (16, 0.5), 0.2: (24, 1.0), 0.75: (32, 1.5), 3.0: (56, 2.0), 16.0: (80, 2.5)}


class Range(NamedTuple):
    """Lengths up to the longest, on a scale from 0 to 1; that of `half` would be the middle of all lengths. Functions
    of long ones, which are made of 1/r, are as simple there as others."""

    longest: float
    half: float

    def places(self, r: np.ndarray) -> np.ndarray:
        """Where these lengths are."""
        made: np.ndarray = (r / (r + self.half)) * (1 + self.half / self.longest)
        return made

    def far(self, r: Any) -> Any:
        """1 at short lengths, and in proportion to long ones."""
        return 1 + r / self.half

    def lengths(self, places: np.ndarray) -> np.ndarray:
        """The lengths at these places."""
        share = places / (1 + self.half / self.longest)
        made: np.ndarray = self.half * share / (1 - share)
        return made

    def polynomials(self, r: np.ndarray, count: int) -> np.ndarray:
        """Chebyshev's, (..., count)."""
        return chebvander(2 * self.places(r) - 1, count - 1)


def range_of(layer: Elementwise, longest: float) -> Range:
    """The range that suits this activation: the farther its singularities are, the more lengths are alike."""
    phi = function_of(layer)
    return Range(longest, float(phi.scale) * phi.ratio / 2)


def suits(phi: Function) -> bool:
    """Whether it bends at 0 or nowhere."""
    return all(float(kink) == 0.0 for kink in phi.kinks) and math.isfinite(float(phi.scale))


class Sides(NamedTuple):
    """What a function is at u = r x and at u = -r x for the nodes x of a rule, (..., nodes): less phi(0), and the
    slopes."""

    right: np.ndarray
    left: np.ndarray
    right_slope: np.ndarray
    left_slope: np.ndarray


def sides_of(phi: Function, r: np.ndarray) -> Sides:
    """Of these lengths."""
    u: Any = r[..., None] * half_line()[0]
    (right, slope), (left, left_slope) = phi.with_slope(u), phi.with_slope(-u)
    return Sides(*map(np.asarray, (right, left, slope, left_slope)))


@lru_cache(maxsize=1)
def half_line() -> tuple[np.ndarray, np.ndarray]:
    """Nodes of (0, REACH), denser next to 0, and weights with the normal density."""
    x, weights = np.polynomial.legendre.leggauss(POINTS)
    first = REACH / PANELS
    edges = np.append(0.0, first * 2.0 ** np.arange(-FINER, 1))
    edges = np.append(edges, first * np.arange(2, PANELS + 1))
    half = 0.5 * np.diff(edges)[:, None]
    nodes: Any = edges[:-1, None] + half * (1 + x)
    found = (half * weights * np.asarray(density(nodes))).ravel()
    return nodes.ravel(), found * (0.5 / found.sum())


class Kind(NamedTuple):
    """Which expectation; and the powers of `Range.far` of either length with which it and J fall, whose digits would be
    lost: of a function that saturates, J falls by another half a power."""

    euler: bool  # that with the factors u and v, over the product of the lengths
    fall: float

    @property
    def radial_fall(self) -> float:
        return self.fall + 0.5 if self.fall else 0.0


def expectations(
    layer: Elementwise, within: Range, kind: Kind, count: int, r: np.ndarray, angle: np.ndarray
) -> np.ndarray:
    """Of pairs of any two of these lengths at these angles, (angles, lengths, lengths); J from `count` lengths."""
    alike, unlike = _radial(layer, within, kind, count)
    total = _of_wedges(alike, within, kind, r, math.pi - angle)
    total += _of_wedges(unlike, within, kind, r, angle)
    made: np.ndarray = total / (2 * math.pi)
    return made


@lru_cache(maxsize=8)
def _radial(layer: Elementwise, within: Range, kind: Kind, count: int) -> tuple[np.ndarray, ...]:
    """The Chebyshev coefficients of J without its fall, of the other expectation of J over ab: the sum of both wedges
    in which u and v have one sign, and of the others."""
    lengths = within.lengths(points(count, 1.0))
    sides = sides_of(function_of(layer), lengths)
    x, weights = half_line()
    weights = weights * x ** (3 if kind.euler else 1)
    # those of R³ e^(-R²/2), or of R e^(-R²/2)
    weights = weights * ((2.0 if kind.euler else 1.0) / weights.sum())
    far = (within.far(lengths) ** kind.radial_fall)[:, None]
    right, left = sides.right_slope * far, sides.left_slope * far
    alike = sum(multiply_alone(side * weights, side.T) for side in (right, left))
    unlike = multiply_alone(right * weights, left.T)
    unlike = unlike + unlike.T
    tables = (alike, -unlike if kind.euler else unlike)
    return tuple(series_through(series_through(np.asarray(table)).T) for table in tables)


def _of_wedges(
    table: np.ndarray, within: Range, kind: Kind, r: np.ndarray, width: np.ndarray
) -> np.ndarray:
    """The integrals over wedges of these widths. The nodes from both ends are the same, so that half of them tell all:
    a pair in one direction is the other pair in the mirror's."""
    made = np.empty((len(width), len(r), len(r)))
    for place, each in enumerate(width):
        # narrow wedges have short sides
        share = min(
            within.longest * math.sin(min(each, math.pi / 2)) / within.half, max(DIRECTIONS)
        )
        rule = next(rule for most, rule in DIRECTIONS.items() if share <= most)
        nodes, weights = _directions(*rule)
        sines, density = np.sin(each * nodes), weights * each
        if kind.euler:
            density = density * sines * sines[::-1]
        sizes = sines[:, None] * r
        polynomials = within.polynomials(sizes, len(table))
        if kind.fall:
            polynomials /= (within.far(sizes) ** kind.radial_fall)[..., None]
        half = len(nodes) // 2
        first, mirrored = polynomials[:half], polynomials[: half - 1 : -1]
        some = np.tensordot(density[:half], first @ table @ mirrored.swapaxes(1, 2), axes=1)
        made[place] = some + some.T
    return made


@lru_cache(maxsize=len(DIRECTIONS))
def _directions(count: int, dense: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for (0, 1)."""
    x, weights = np.polynomial.legendre.leggauss(count)
    weights = weights / np.cosh(dense * x) ** 2
    return 0.5 * np.tanh(dense * x) / np.tanh(dense) + 0.5, weights / weights.sum()
