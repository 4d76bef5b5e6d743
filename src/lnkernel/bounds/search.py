"""The highest point of a function of a norm, on all of [0, ∞]."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEAST, MOST = -150.0, 150.0  # powers of ten: beyond them the squared norm leaves float64
PER_DECADE = 48  # points; the features of Θ(x, x) are steps and humps a decade wide or so,
DENSEST = 2**17  # and narrower in proportion to the powers of |x|² involved
CANDIDATES = 32  # local maxima that are looked at closely
ZOOM = 65  # points per closer look; each look makes an interval 32 times shorter
ROUNDING = 1e-14  # relative; values nearer than that to a limit are that limit, rounded

Function = Callable[[np.ndarray], np.ndarray]


class Peak(NamedTuple):
    """Where a function is highest, and how high."""

    place: float
    height: float


def highest(function: Function, ends: tuple[Peak, Peak], steepness: float = 1.0) -> Peak:
    """The highest of both ends and of all local maxima in between.

    `ends` are the limits at 0 and at infinity. Every local maximum of a logarithmic grid is
    refined, best first; where a plateau reaches up to an end, the end is the answer.
    """
    count = int(min(DENSEST, (MOST - LEAST) * PER_DECADE * steepness)) + 1
    grid = np.linspace(LEAST, MOST, count)
    values = function(10.0**grid)
    best = max(ends, key=lambda end: end.height)
    inside = [_refine(function, grid, index) for index in _local_maxima(values)]
    top = max(inside, key=lambda peak: peak.height, default=best)
    return top if top.height > best.height * (1 + ROUNDING) else best


def _local_maxima(values: np.ndarray) -> np.ndarray:
    """The indices of the highest local maxima, the first of equal neighbours."""
    middle = values[1:-1]
    rising, falling = middle > values[:-2], middle >= values[2:]
    places = np.flatnonzero(rising & falling) + 1
    return places[np.argsort(-values[places], kind="stable")][:CANDIDATES]


def _refine(function: Function, grid: np.ndarray, index: int) -> Peak:
    """The maximum between a grid point's neighbours.

    A smooth maximum is known to 1e-16 of its height when its place is known to 1e-8.
    """
    low, high = grid[index - 1], grid[index + 1]
    best = Peak(0.0, -np.inf)
    while high - low > 1e-9:
        look = np.linspace(low, high, ZOOM)
        values = function(10.0**look)
        top = int(np.argmax(values))
        if values[top] > best.height:
            best = Peak(float(10.0 ** look[top]), float(values[top]))
        low, high = look[max(top - 1, 0)], look[min(top + 1, ZOOM - 1)]
    return best
