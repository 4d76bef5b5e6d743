r"""Pairs of different lengths behind an activation that bends at 0 alone, as ELU does, from tables of its slopes.

With $m = \min(w, z)$ the slopes $S = E\,\phi'(u)\phi'(v)$ are analytic functions of $\sqrt m$, and as $\phi(ru)/r$ is
entire in r on either side of 0, of both lengths. So they are Chebyshev series in three variables, one for the acute
angles and one for the others, and so are $G = \frac1m\int_0^m S\,dm$. With unit images $a$, $b$ less their means the
small angle is, of inputs at acute angles,

    w_c = 1/4 |a - b|^2 at the angle 0  +  r1 r2/(|phi1| |phi2|) w G,

where the first part is a matter of two lengths; of the others $z_c$ is, with $v$ turned round. Nothing cancels as long
as $\phi$ is monotone, which makes the other angle at least $\frac12$.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.angle_table import END
from lnkernel.evaluate.float64.chebyshev_points import points, series_through
from lnkernel.evaluate.float64.closed_pairs import closed_pair
from lnkernel.evaluate.float64.functions import density, function_of
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.length_curves import lengths_at, lengths_of_nodes, shares
from lnkernel.evaluate.float64.moments import PANELS, POINTS, WIDEST
from lnkernel.evaluate.float64.on_diagonal import moments_over_length
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.evaluate.float64.sides_of_pairs import (
    Between,
    Ends,
    Image,
    Places,
    dual_of,
    ends_through,
)

# Up to which length so many lengths, and so many angles, leave errors of a few 1e-16 (ELU and SELU)
COUNTS = {
    1.5: (14, 26),
    3.0: (17, 29),
    6.0: (20, 33),
    12.0: (22, 38),
    24.0: (24, 42),
    64.0: (36, 49),
    128.0: (48, 55),
}
LONGEST = max(COUNTS)
FINER = 6  # halvings of the first panel, for the longest inputs
BEND = 2.0  # the angle, times the longest length, at which their range becomes logarithmic


class Halves(NamedTuple):
    """Chebyshev coefficients of a function of the pair, for acute angles and for obtuse ones: (functions, angles,
    lengths, lengths)."""

    longest: float
    acute: np.ndarray
    obtuse: np.ndarray

    def at(
        self, lengths: tuple[np.ndarray, np.ndarray], at: Places, m: np.ndarray, acute: np.ndarray
    ) -> np.ndarray:
        """Its functions at all pairs, (functions, pairs)."""
        made, scale = np.empty((len(self.acute), len(m))), BEND / self.longest
        x = 2 * (np.arcsinh(np.sqrt(m) / scale) / np.arcsinh(END / scale)) - 1
        one, two = map(self._polynomials, lengths)
        for coefficients, which in ((self.acute, acute), (self.obtuse, ~acute)):
            if which.all():
                return _clenshaw(coefficients, one, two, at, x)
            if which.any():
                made[:, which] = _clenshaw(coefficients, one, two, at.some(which), x[which])
        return made

    def _polynomials(self, r: np.ndarray) -> np.ndarray:
        """Those of the lengths, (degrees, inputs)."""
        inside = 2 * (shares(r) / shares(np.asarray(self.longest))) - 1
        return np.ascontiguousarray(chebvander(inside, self.acute.shape[-1] - 1).T)


def suits(layer: Elementwise, length: float) -> bool:
    """Whether there are tables for vectors of up to this length, of a layer with plain numbers."""
    form = closed_pair(layer)
    return form is not None and form.slopes is not None and length <= LONGEST


def dual_by_tables(layer: Elementwise, cov: Covariance, longest: float) -> Dual:
    """The dual of pairs listed side by side, none longer than `longest`, of a layer with plain numbers."""
    lengths, at = _inputs_of(cov)
    (one, *sizes1), (two, *sizes2) = (_image(layer, longest, r) for r in lengths)
    spreads, sizes = (np.multiply(*at.of(both)) for both in zip(sizes1, sizes2, strict=True))
    acute = cov.w <= cov.z
    m: Any = np.where(acute, cov.w, cov.z)
    slopes, gaps = slope_table(layer, longest).at(lengths, at, m, acute)
    ends = (end_table(layer, longest).at(shares(r)) for r in lengths)
    (even, even_turned), (odd, _) = (at.apart(*sides) for sides in zip(*ends, strict=True))
    small = 0.25 * (np.where(acute, even, even_turned) + odd) + m * gaps / spreads
    other = 1 - small

    def euler() -> np.ndarray:
        (found,) = euler_table(layer, longest).at(lengths, at, m, acute)
        made: np.ndarray = found / sizes
        return made

    pairs = Between(
        np.where(acute, small, other),
        np.where(acute, other, small),
        slopes / sizes,
        euler,
    )
    return dual_of(cov, at, lengths, (one, two), pairs, function_of(layer).vanishes)


def _inputs_of(cov: Covariance) -> tuple[tuple[np.ndarray, np.ndarray], Places]:
    """The lengths of the inputs, and which make a pair."""

    def inputs(q: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(q, Gathered):
            return np.asarray(q.inputs.root()), q.index
        found: Any = np.broadcast_to(as_precise(q).root(), np.shape(cov.w))
        return np.unique(found, return_inverse=True)

    (one, rows), (two, columns) = inputs(cov.first.q), inputs(cov.second.q)
    return (one, two), Places(rows, columns, (len(one), len(two)))


def _image(
    layer: Elementwise, longest: float, r: np.ndarray
) -> tuple[Image, np.ndarray, np.ndarray]:
    """What the activation makes of inputs; and its spread and size over the length."""
    mean, variance, *_ = moments_over_length(layer, longest).at(shares(r))
    spread, size = np.sqrt(variance), np.sqrt(variance + np.square(mean))
    return Image(size * r, mean / size, spread / size), spread, size


# ---------------------------------------------------------------- tables


@lru_cache(maxsize=64)
def end_table(layer: Elementwise, longest: float) -> Ends:
    """Of the values of phi(ru)/r at the nodes of a quadrature over u, less their means."""
    x, weights = _graded_rule()
    r, phi = lengths_at(longest, lengths_of_nodes(1.0)), function_of(layer)
    right, left = (phi.rest(side * r * x[:, None]) for side in (1.0, -1.0))
    even = right + left
    even = even - 2 * (weights @ even)
    roots = np.sqrt(0.5 * weights)[:, None] / r
    return ends_through(float(shares(np.asarray(longest))), roots * even, roots * (right - left))


@lru_cache(maxsize=1)
def _graded_rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes of (0, WIDEST), and weights with the normal density; denser next to 0, where long inputs bend."""
    x, weights = np.polynomial.legendre.leggauss(POINTS)
    first = WIDEST / PANELS
    edges = np.append(0.0, first * 2.0 ** np.arange(-FINER, 1))
    edges = np.append(edges, first * np.arange(2, PANELS + 1))
    half = 0.5 * np.diff(edges)[:, None]
    nodes: Any = edges[:-1, None] + half * (1 + x)
    return nodes.ravel(), (half * weights * np.asarray(density(nodes))).ravel()


@lru_cache(maxsize=64)
def slope_table(layer: Elementwise, longest: float) -> Halves:
    """S and G."""

    return _halves(layer, longest, 0)


@lru_cache(maxsize=64)
def euler_table(layer: Elementwise, longest: float) -> Halves:
    """E u phi'(u) v phi'(v) over the product of the lengths: made where a rule asks for it."""
    return _halves(layer, longest, 1)


def _halves(layer: Elementwise, longest: float, euler: int) -> Halves:
    """From values at some lengths and angles: of S and G, or of the other expectation."""
    form, (lengths, angles) = closed_pair(layer), counts_for(longest)
    assert form is not None and form.slopes is not None
    scale = BEND / longest
    r, end = lengths_at(longest, points(lengths, 1.0)), float(np.arcsinh(END / scale))
    place = points(angles, end)
    i, j = np.triu_indices(lengths)  # it is the same for (v, u) as for (u, v)
    one, two, m = r[i][:, None], r[j][:, None], np.square(scale * np.sinh(place))
    halves = []
    for w, z in ((m, 1 - m), (1 - m, m)):
        slopes, compute = form.slopes(one, two, w, z)
        if euler:
            values = [series_through(compute() / (one * two))]
        else:
            series = series_through(slopes)
            values = [series, series_through(_means_below(series, place, end, scale))]
        square = np.empty((len(values), angles, lengths, lengths))
        square[:, :, i, j] = square[:, :, j, i] = np.swapaxes(values, 1, 2)
        for axis in (2, 3):
            square = np.moveaxis(series_through(np.moveaxis(square, axis, -1)), -1, axis)
        halves.append(square)
    return Halves(longest, *halves)


def _means_below(series: np.ndarray, place: np.ndarray, end: float, scale: float) -> np.ndarray:
    """1/m ∫ S dm from 0 to m, of the series S on (0, end), where m = (scale sinh(place))²."""
    x, weights = np.polynomial.legendre.leggauss(len(place))
    inside = place[:, None] * (0.5 * x + 0.5)
    density = np.sinh(2 * inside) / np.square(np.sinh(place))[:, None]
    polynomials = chebvander(inside * (2 / end) - 1, len(place) - 1)
    of_each = np.einsum("ji,jik->kj", density * (0.5 * weights), polynomials)
    means: np.ndarray = series @ (place * of_each)
    return means


def counts_for(longest: float) -> tuple[int, int]:
    """How many lengths and angles a table takes."""
    return next(counts for most, counts in COUNTS.items() if longest <= most)


def _clenshaw(
    coefficients: np.ndarray, one: np.ndarray, two: np.ndarray, at: Places, x: np.ndarray
) -> np.ndarray:
    """The functions of the pairs, (functions, pairs), whose angles are at these places of (-1, 1)."""
    functions, angles, lengths, _ = coefficients.shape
    # of each angle's polynomial those of the last length, next to the functions
    turned = np.ascontiguousarray(coefficients.transpose(1, 3, 0, 2))
    left = multiply_alone(turned.reshape(-1, lengths), one)
    left = left.reshape(angles, lengths, -1)
    value, above = np.zeros((2, functions, len(x)))
    for order in range(angles - 1, -1, -1):
        here = at.products(left[order], two).reshape(functions, -1)
        here -= above
        here += (2 * x if order else x) * value
        value, above = here, value
    return value
