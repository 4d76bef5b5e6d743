r"""A power law $L \approx A\,t^{-\xi}$ fitted to a curve, with an interval, in a window that is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lnkernel.asymptotics.curves import as_ends, as_times
from lnkernel.check.arrays import as_array
from lnkernel.errors import InputError
from lnkernel.types import Times

PARTS = 6  # of the window, whose slopes make the interval
KNOTS = 40  # ends of windows that are tried, along log t
DECADES = 1.0  # the least width of a window that is chosen
STEADY = 0.05  # a window is steady, if the slope changes by less than this part of itself across it


@dataclass(frozen=True)
class LossFit:
    r"""$L \approx A\,t^{-\xi}$ in a window.

    Attributes:
        xi: the exponent, by least squares in the logarithms.
        interval: 95 %, by Student's t over the slopes of six parts of the window, around xi.
        constant: A.
        window: the times that were used, first and last.
        points: how many.
        slope_change: how much the slope changes across the window, by a parabola in the logarithms, as a part of xi.
        chosen: whether the window was chosen here.
    """

    xi: float
    interval: tuple[float, float]
    constant: float
    window: tuple[float, float]
    points: int
    slope_change: float
    chosen: bool


def fit(t: Times, loss: ArrayLike, window: tuple[float, float] | None = None) -> LossFit:
    r"""The exponent $\xi$ of $L \approx A\,t^{-\xi}$, with a 95 % interval, in the window that is given or chosen.

    Chosen is the widest window of a decade or more in which the slope changes by less than 5 %; where there is
    none, the one in which it changes least. `slope_change` tells. The interval is that of the slopes' scatter
    within the window: a law that is not reached yet bends, and the exponent may lie outside.

    Args:
        t: times, positive and increasing.
        loss: the loss at each, positive. Its root, a norm, has half the exponent.
        window: the first and the last time to use.

    >>> import numpy as np, lnkernel as lnk
    >>> t = np.geomspace(1, 1e4, 60)
    >>> found = lnk.asymptotics.fit(t, 3 * t**-0.5 + 1e-9)
    >>> round(found.xi, 4), round(found.constant, 3), found.interval[0] < 0.5 < found.interval[1]
    (0.5, 3.0, True)
    """
    times, values = as_times(t), np.asarray(as_array("loss", loss), np.float64)
    if values.shape != times.shape or not (np.isfinite(values).all() and (values > 0).all()):
        remedy = "Leave out where the loss is 0"
        raise InputError(
            "loss",
            f"positive numbers, shape {times.shape}",
            f"shape {values.shape}, the least {np.min(values)}",
            remedy,
        )
    if not (times > 0).all() or not (np.diff(times) > 0).all():
        raise InputError("t", "positive, increasing times", f"{times!r}", "Sort them, without 0")
    x, y = np.log(times), np.log(values)
    if window is None:
        inside = _steadiest(x, y)
    else:
        low, high = as_ends("window", window)
        inside = (times >= low) & (times <= high)
    if inside.sum() < 2 * PARTS:
        raise InputError(
            "window",
            f"at least {2 * PARTS} times inside",
            f"{int(inside.sum())}",
            "Widen it, or take more times, e.g. np.geomspace(first, last, 200)",
        )
    x, y = x[inside], y[inside]
    slope, level = np.polyfit(x - x.mean(), y, 1)
    slopes = [
        np.polyfit(part - part.mean(), y[places], 1)[0]
        for places in np.array_split(np.arange(len(x)), PARTS)
        for part in [x[places]]
    ]
    half = student_half_width(slopes)
    return LossFit(
        xi=-float(slope),
        interval=(-float(slope) - half, -float(slope) + half),
        constant=math.exp(level - slope * x.mean()),
        window=(float(times[inside][0]), float(times[inside][-1])),
        points=int(inside.sum()),
        slope_change=_change(x, y),
        chosen=window is None,
    )


def student_half_width(slopes: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean, by Student's t."""
    from scipy.stats import t as student

    spread = np.std(slopes, ddof=1) / math.sqrt(len(slopes))
    return float(student.ppf(0.975, len(slopes) - 1) * spread)


def _change(x: np.ndarray, y: np.ndarray) -> float:
    """The change of the slope across a window, as a part of the slope."""
    centred = x - x.mean()
    bend, slope, _ = np.polyfit(centred, y, 2)
    return float(abs(2 * bend * np.ptp(x)) / max(abs(slope), 1e-300))


def _steadiest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points are in the widest window that is steady, or else in the steadiest."""
    knots = np.linspace(x[0], x[-1], KNOTS)
    i, j = np.triu_indices(KNOTS, 1)
    first = np.searchsorted(x, knots[i] - 1e-12)
    last = np.searchsorted(x, knots[j] + 1e-12)
    wide = knots[j] - knots[i] >= min(DECADES * math.log(10), np.ptp(x)) - 1e-9
    tried = np.flatnonzero(wide & (last - first >= 2 * PARTS))
    if not len(tried):
        return np.ones(len(x), bool)
    change = _changes(x, y, first[tried], last[tried])
    width = (knots[j] - knots[i])[tried]
    steady = change < STEADY
    best = np.argmax(np.where(steady, width, -1.0)) if steady.any() else np.argmin(change)
    chosen = tried[best]
    return (np.arange(len(x)) >= first[chosen]) & (np.arange(len(x)) < last[chosen])


def _changes(x: np.ndarray, y: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """`_change` of many windows, each from one place up to another, by sums of powers."""
    x, y = x - x.mean(), y - y.mean()

    def sums(values: np.ndarray) -> np.ndarray:
        total = np.concatenate([[0.0], np.cumsum(values)])
        return total[last] - total[first]

    count = last - first
    middle = sums(x) / count
    powers = [sums(x**k) for k in range(5)]
    mixed = [sums(y * x**k) for k in range(3)]
    central = [  # moments about the middle of each window
        sum(math.comb(k, m) * powers[m] * (-middle) ** (k - m) for m in range(k + 1))
        for k in range(5)
    ]
    right = [
        sum(math.comb(k, m) * mixed[m] * (-middle) ** (k - m) for m in range(k + 1))
        for k in range(3)
    ]
    matrix = np.stack([np.stack([central[a + b] for b in range(3)], -1) for a in range(3)], -2)
    fitted = np.linalg.solve(matrix, np.stack(right, -1)[..., None])[..., 0]
    reach = x[last - 1] - x[first]
    return np.abs(2 * fitted[:, 2] * reach) / np.maximum(np.abs(fitted[:, 1]), 1e-300)
