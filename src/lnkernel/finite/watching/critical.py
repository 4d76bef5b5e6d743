r"""When a measure turns: a peak, a change of sign, or the middle of a sigmoid, with its interval.

The rules are those of Castiglione, Buckley and Simpson (2025). Time is log10 of the step, so step 0 is left
out; values are scaled to [0, 1] before prominence and errors are judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float64

from lnkernel.errors import InputError

HOW = ("peak", "zero", "sigmoid")
PROMINENCE = {"loss_rate": 0.4}  # of a peak that counts, for a range of 1
USUAL_PROMINENCE = 0.2
WORST = 0.01  # mean squared error of a sigmoid, for a range of 1
EDGE = 0.005  # of log10 of the step: a middle that is so near to an end was not seen
CUMULATIVE = ("mag_ma",)  # measures whose cumulative standard deviation is a sigmoid
Line = Float64[np.ndarray, " m"]


@dataclass(frozen=True)
class CriticalTime:
    """A step with its interval, as numbers of steps; or the reason why there is none.

    Attributes:
        time, low, high: None where nothing was found.
        reason: what was found, or why not.
    """

    time: float | None
    low: float | None
    high: float | None
    reason: str


def critical_time(steps: np.ndarray, values: np.ndarray, name: str, how: str) -> CriticalTime:
    """The critical time of one measure of one network.

    >>> t = np.arange(1, 1001)
    >>> found = critical_time(t, np.exp(-4 * np.log10(t / 100) ** 2), "kta", "peak")
    >>> round(found.time), round(found.low), round(found.high)
    (100, 39, 258)
    """
    if how not in HOW:
        names = " or ".join(f'"{one}"' for one in HOW)
        raise InputError("how", names, repr(how), 'The default is "peak"')
    known = (steps > 0) & np.isfinite(values)
    s, v = np.log10(steps[known].astype(float)), values[known].astype(float)
    if len(s) < 5:
        return _nothing(f"{len(s)} measurements behind the start are too few")
    if how == "zero":
        return _zero(s, v)
    if how == "sigmoid" and name in CUMULATIVE:
        v = np.array([v[: i + 1].std() for i in range(len(v))])
    spread = float(np.ptp(v))
    if spread <= 1e-6 * float(np.abs(v).max()):  # below what float32 tells apart
        return _nothing("it does not change")
    scaled = (v - v.min()) / spread
    return _peak(s, scaled, name) if how == "peak" else _sigmoid(s, scaled)


def _peak(s: Line, v: Line, name: str) -> CriticalTime:
    needed = PROMINENCE.get(name, USUAL_PROMINENCE)
    places, facts = scipy.signal.find_peaks(v, prominence=needed)
    if not len(places):
        return _nothing(f"no peak has a prominence of {needed:g} of the range")
    best = int(np.argmax(facts["prominences"]))
    _, _, left, right = scipy.signal.peak_widths(v, places[best : best + 1], rel_height=0.5)
    numbers = np.arange(len(s))
    low, high = (float(np.interp(end[0], numbers, s)) for end in (left, right))
    return _found(float(s[places[best]]), low, high, "a peak, its full width at half of its height")


def _zero(s: Line, v: Line) -> CriticalTime:
    changes = np.flatnonzero(np.sign(v[:-1]) * np.sign(v[1:]) <= 0)
    changes = changes[v[changes] != 0] if v[0] == 0 else changes
    if not len(changes):
        sign = "positive" if v[0] > 0 else "negative"
        return _nothing(f"no change of sign: it is {sign} from the first step on")
    i = int(changes[0])
    share = v[i] / (v[i] - v[i + 1])
    at = float(s[i] + share * (s[i + 1] - s[i]))
    return _found(at, float(s[i]), float(s[i + 1]), "a change of sign, between two measurements")


def _sigmoid(s: Line, v: Line) -> CriticalTime:
    def curve(s: Line, low: float, rise: float, middle: float, width: float) -> Line:
        return low + rise * scipy.special.expit((s - middle) / width)

    rises = v[-1] >= v[0]
    half = s[int(np.argmin(np.abs(v - 0.5)))]
    start = [0.0, 1.0, half, 0.2] if rises else [1.0, -1.0, half, 0.2]
    bounds = [[-1, -3, s[0], 1e-3], [2, 3, s[-1], np.ptp(s)]]
    fit, _ = scipy.optimize.curve_fit(curve, s, v, start, bounds=bounds, max_nfev=10_000)
    error = float(np.mean(np.square(curve(s, *fit) - v)))
    if error > WORST:
        return _nothing(f"no sigmoid: the mean squared error is {error:.2g}, above {WORST:g}")
    middle, width = float(fit[2]), float(fit[3])
    if not s[0] + EDGE < middle < s[-1] - EDGE:
        where = "first" if middle < s.mean() else "last"
        return _nothing(f"the middle of the sigmoid is at the {where} step or beyond")
    return _found(middle, middle - 2 * width, middle + 2 * width, "a sigmoid, ± twice its width")


def _found(at: float, low: float, high: float, reason: str) -> CriticalTime:
    return CriticalTime(10**at, 10**low, 10**high, reason)


def _nothing(reason: str) -> CriticalTime:
    return CriticalTime(None, None, None, reason)
