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

from functools import partial
from typing import Any

from lnkernel.arch.piecewise import Clip
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.closed_pairs import ClosedPair, Expectations, Own, closed_pair
from lnkernel.evaluate.float64.functions import density, normal_below
from lnkernel.evaluate.float64.orthants import Corner, moments

LONGEST = 256.0  # r1 r2 beside the lengths behind: ramps that grow with the input cancel to a clip that does not
SHORTEST = 1e-70
SIGNS = 1.0, -1.0  # of T_1 and T_2


@closed_pair.register
def _(layer: Clip) -> ClosedPair:
    return ClosedPair(partial(_of_input, layer), partial(_of_pair, layer))


def _of_input(layer: Clip, length: Any) -> tuple[Any, ...]:
    """The tails beyond both kinks; and the second moments there."""
    places = [abs(place) / length for place in (layer.low, layer.high)]
    tails = [normal_below(-place) for place in places]
    squares = [tail + h * density(h) for tail, h in zip(tails, places, strict=True)]
    return *tails, *squares


def _of_pair(layer: Clip, one: Own, two: Own, w: Any, z: Any) -> Expectations:
    low, high = layer.low, layer.high
    xp = namespace.of(w, low, high)
    right, left = xp.greater(low, 0), xp.less(high, 0)
    sides = xp.where(right, 1.0, -1.0), xp.where(left, -1.0, 1.0)
    alpha = xp.where(right, low, xp.where(left, high, 0.0))
    beta = xp.where(right | left, 0.0, 1.0)
    scale, rho = one.length * two.length, z - w
    both = [
        (c * d, s * t, Corner(abs(a) / one.length, abs(b) / two.length, s * t))
        for c, s, a in zip(SIGNS, sides, (low, high), strict=True)
        for d, t, b in zip(SIGNS, sides, (low, high), strict=True)
    ]
    found = moments(w, z, [corner for _, _, corner in both])

    def linear(first: int) -> Any:
        """beta (1 + sum c_j s_j (...)) with these numbers of single inputs."""
        turns = [c * s for c, s in zip(SIGNS, sides, strict=True)]
        parts = [turn * own.more[first + j] for own in (one, two) for j, turn in enumerate(turns)]
        return beta * (1 + sum(parts))

    rest = alpha * (one.moments.mean + two.moments.mean - alpha)
    ramps = sum(sign * corner.ramps for (sign, _, _), corner in zip(both, found, strict=True))
    inside = sum(
        sign * turn * corner.one for (sign, turn, _), corner in zip(both, found, strict=True)
    )

    def euler() -> Any:
        products = (sign * corner.product for (sign, _, _), corner in zip(both, found, strict=True))
        return scale * (rho * linear(2) + sum(products))

    behind = xp.sqrt(one.moments.square) * xp.sqrt(two.moments.square)
    return Expectations(
        rest + scale * (rho * linear(0) + ramps),
        linear(0) + inside,
        euler,
        (scale <= LONGEST * behind) & (one.length > SHORTEST) & (two.length > SHORTEST),
    )
