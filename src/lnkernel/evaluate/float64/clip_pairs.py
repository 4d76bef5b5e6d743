r"""Clips of pairs in closed form: ramps beyond the places of the kinks.

With ramps $T_j = (s_j u - \tau_j)_+$, all of whose $\tau_j \ge 0$, so that short inputs hardly feel them, a clip is

    u + T_1 - T_2        with (s, tau) = (-1, -low), (1, high)      where low <= 0 <= high,
    low + T_1 - T_2      with (1, low), (1, high)                   where 0 < low,
    high + T_1 - T_2     with (-1, -low), (-1, -high)               where high < 0.

With $\phi = \alpha + \beta u + \sum c_j T_j$, $h_j = \tau_j/r_1$, $k_j = \tau_j/r_2$, the normal density $n$ and its
upper tail $\bar\Phi$,

    E phi phi   = alpha (m1 + m2 - alpha) + r1 r2 (beta rho (1 + sum c_j s_j (bar(h_j) + bar(k_j))) + sum c_i c_j M_ij),
    E phi' phi' = beta (1 + sum c_j s_j (bar(h_j) + bar(k_j))) + sum c_i c_j s_i s_j L_ij,
    E u phi' v phi' = r1 r2 (beta rho (1 + sum c_j s_j (p(h_j) + p(k_j))) + sum c_i c_j N_ij),  p(h) = bar(h) + h n(h),

where L, M and N are the probability and the moments of a corner ($h_i$, $k_j$; $s_i s_j \rho$).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lnkernel.arch.piecewise import Clip
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.closed_pairs import (
    NO_MOMENTS,
    ClosedPair,
    Expectations,
    Own,
    closed_pair,
)
from lnkernel.evaluate.float64.functions import density, normal_below
from lnkernel.evaluate.float64.orthants import Corner, Corners, moments, moments_at_all_angles

LONGEST = 256.0  # r1 r2 beside the lengths behind: ramps that grow with the input cancel to a clip that does not
SHORTEST = 1e-70
SIGNS = 1.0, -1.0  # of T_1 and T_2
Moments = Callable[[Any, Any, Sequence[Corner]], list[Corners]]


@closed_pair.register
def _(layer: Clip) -> ClosedPair:
    return ClosedPair(
        partial(_of_input, layer), partial(_of_pair, layer), partial(_at_one_length, layer)
    )


def _of_input(layer: Clip, length: Any) -> tuple[Any, ...]:
    """The tails beyond both kinks; and the second moments there."""
    places = [abs(place) / length for place in (layer.low, layer.high)]
    tails = [normal_below(-place) for place in places]
    squares = [tail + h * density(h) for tail, h in zip(tails, places, strict=True)]
    return *tails, *squares


class _Line(NamedTuple):
    """alpha + beta u, and the signs s of both ramps."""

    alpha: Any
    beta: Any
    sides: tuple[Any, Any]


def _line(layer: Clip) -> _Line:
    low, high = layer.low, layer.high
    xp = namespace.of(low, high)
    right, left = xp.greater(low, 0), xp.less(high, 0)
    sides = xp.where(right, 1.0, -1.0), xp.where(left, -1.0, 1.0)
    alpha = xp.where(right, low, xp.where(left, high, 0.0))
    return _Line(alpha, xp.where(right | left, 0.0, 1.0), sides)


class _Sums(NamedTuple):
    """Of a pair, over its unit Gaussians: without the lengths."""

    product: Any  # but for alpha
    slopes: Any
    euler: Callable[[], Any]


def _sums(layer: Clip, one: Own, two: Own, w: Any, z: Any, moments_of: Moments) -> _Sums:
    _, beta, sides = _line(layer)
    both = [
        (c * d, s * t, Corner(abs(a) / one.length, abs(b) / two.length, s * t))
        for c, s, a in zip(SIGNS, sides, (layer.low, layer.high), strict=True)
        for d, t, b in zip(SIGNS, sides, (layer.low, layer.high), strict=True)
    ]
    found, rho = moments_of(w, z, [corner for _, _, corner in both]), z - w

    def linear(first: int) -> Any:
        """beta (1 + sum c_j s_j (...)) with these numbers of single inputs."""
        turns = [c * s for c, s in zip(SIGNS, sides, strict=True)]
        parts = [turn * own.more[first + j] for own in (one, two) for j, turn in enumerate(turns)]
        return beta * (1 + sum(parts))

    ramps = sum(sign * corner.ramps for (sign, _, _), corner in zip(both, found, strict=True))
    inside = sum(
        sign * turn * corner.one for (sign, turn, _), corner in zip(both, found, strict=True)
    )

    def euler() -> Any:
        products = (sign * corner.product for (sign, _, _), corner in zip(both, found, strict=True))
        return rho * linear(2) + sum(products)

    return _Sums(rho * linear(0) + ramps, linear(0) + inside, euler)


def _of_pair(layer: Clip, one: Own, two: Own, w: Any, z: Any, longest: float) -> Expectations:
    alpha, scale = _line(layer).alpha, one.length * two.length
    xp = namespace.of(w, one.moments.square)
    found = _sums(layer, one, two, w, z, moments)
    rest = alpha * (one.moments.mean + two.moments.mean - alpha)
    behind = xp.sqrt(one.moments.square) * xp.sqrt(two.moments.square)
    return Expectations(
        rest + scale * found.product,
        found.slopes,
        lambda: scale * found.euler(),
        (scale <= LONGEST * behind) & (one.length > SHORTEST) & (two.length > SHORTEST),
    )


def _at_one_length(
    layer: Clip, length: float, w: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    one = Own(np.asarray(length), NO_MOMENTS, _of_input(layer, np.asarray(length)))
    found = _sums(layer, one, one, w, z, moments_at_all_angles)
    return found.slopes, length**2 * found.euler()
