"""Whether the panels of `panels` resolve a function: each is integrated whole, and again in two parts.

Where both disagree, there is a kink that was not named, or the function varies too fast. Other splits are
used than those of the integrals, lest a kink at 0, where they split, be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn

import jax
import numpy as np

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.quadrature import Grading
from lnkernel.errors import ActivationRangeError, ArchitectureError
from lnkernel.evaluate.float64.functions import Function, density, function_of
from lnkernel.evaluate.float64.panels import NODES, REACH, WEIGHTS, longest_for, marks_of

# Of the distances at which integrals are split. Two, because a kink close to the end of a panel lies beyond
# its last node, and is not seen there.
SHIFTS = (0.7, 0.53)
TOLERANCE = 1e-11
LONGEST = 1e8  # lengths up to which panels are made; each further digit would take more of them
FARTHEST = 1e152  # where functions are straight far out, and take no more of them; squares still have a number
FASTEST = 1e-13  # what the ends of a Gaussian may hold of E phi²
NARROW = 1e-7  # relative width of a panel in which only a kink is left unresolved
CUT = 0.4  # where a panel is cut in two; in its middle a jump of an odd function would go unseen
MANY = 5  # kinks that are named in a message

Values = Callable[[np.ndarray], np.ndarray]  # phi and phi', (2, ...)


@lru_cache(maxsize=256)
def demand_resolved(layer: Elementwise, levels: int, length: float | None = None) -> None:
    """Refuse a function that the panels do not resolve, for inputs of this length or of what `levels` reach."""
    with jax.enable_x64(True), jax.ensure_compile_time_eval(), np.errstate(all="ignore"):
        phi = function_of(layer)
        if length is not None:
            _demand_slow_growth(layer, phi, length)
        longest = min(float(longest_for(phi, levels)), LONGEST)
        panels = _unresolved_panels(phi, levels, REACH * longest)
        if panels:
            _refuse_panels(layer, phi, levels, panels, longest if length is None else length)


def _values_of(phi: Function) -> Values:
    def values(u: np.ndarray) -> np.ndarray:
        points: Any = u
        return np.stack([np.asarray(part) for part in phi.with_slope(points)])

    return values


Panel = tuple[float, float]


def _unresolved_panels(phi: Function, levels: int, end: float) -> list[Panel]:
    values = _values_of(phi)
    scale = float(phi.scale) if np.isfinite(phi.scale) else 1.0
    near = np.abs(values(np.linspace(-scale, scale, 64))).max(axis=1)
    panels = [panel for shift in SHIFTS for panel in _panels(phi, levels, end, shift)]
    error, size = _disagreement(values, panels)
    resolved = np.all(error <= TOLERANCE * (size + near[:, None]), axis=0)
    return [panel for panel, enough in zip(panels, resolved, strict=True) if not enough]


def _panels(phi: Function, levels: int, end: float, shift: float) -> list[Panel]:
    marks = marks_of(phi, Grading(levels + 1))  # one more, because all are shifted inwards
    distances = shift * np.asarray(marks.distances)
    around = np.asarray(marks.centres)[:, None] + np.concatenate([-distances, distances])
    kinks = [float(kink) for kink in phi.kinks]
    ends = np.unique(np.concatenate([kinks, np.ravel(around), [-end, end]]))
    return [(float(a), float(b)) for a, b in pairwise(ends[np.abs(ends) <= end])]


def _disagreement(values: Values, panels: list[Panel]) -> tuple[np.ndarray, np.ndarray]:
    """How far the means of phi and phi' over each panel are from those over its parts; and the largest values there.
    All are asked for at once: a function of a user's takes one program for many numbers."""
    low, high = np.array(panels, dtype=float).reshape(-1, 2).T
    cut = low + CUT * (high - low)
    starts, ends = np.stack([low, low, cut])[..., None], np.stack([high, cut, high])[..., None]
    found = values(0.5 * (starts + ends) + 0.5 * (ends - starts) * NODES)
    whole, left, right = np.moveaxis(found @ WEIGHTS, 1, 0)
    error = np.abs(whole - (CUT * left + (1 - CUT) * right))
    return error, np.abs(found[:, 0]).max(axis=-1)


def _parts(panel: Panel) -> tuple[Panel, Panel]:
    a, b = panel
    cut = a + CUT * (b - a)
    return (a, cut), (cut, b)


def _refuse_panels(
    layer: Elementwise, phi: Function, levels: int, panels: list[Panel], length: float
) -> NoReturn:
    name, values = type(layer).__name__, _values_of(phi)
    places = [_find_kink(values, panel) for panel in panels]
    everywhere = sorted({place for place in places if place is not None})
    found = [place for place in everywhere if place not in phi.kinks]
    if everywhere and not found:
        raise ArchitectureError(
            name,
            "",
            f"it is not analytic up to its kink at {everywhere[0]:g}: a derivative is infinite there, as of a root",
            "Take a function with finite derivatives on both sides of a kink; powers of |u| are Homogeneous(p, 1, 1)",
        )
    if found:
        named = sorted({*(float(kink) for kink in phi.kinks), *found})
        raise ArchitectureError(
            name,
            "",
            f"it is not analytic at {', '.join(f'{place:g}' for place in found[:MANY])}, which is not among its "
            f"kinks {phi.kinks}",
            f"Name it: kinks=({', '.join(map(str, named[:MANY]))},)",
        )
    most = 0.0
    for fewer in range(levels):
        longest = float(longest_for(phi, fewer))
        if _unresolved_panels(phi, fewer, REACH * longest):
            break
        most = longest
    if most > 0:
        raise ActivationRangeError(name, length, most)
    raise ArchitectureError(
        name,
        "",
        "it varies over distances much shorter than 1, or has kinks that are not named",
        "Stretch it, fn(u/c), and make W_std and b_std of the Dense before it c times as large; name all kinks",
    )


def _relative_disagreement(values: Values, panel: Panel) -> float:
    error, size = _disagreement(values, [panel])
    return float(np.max(error / (size + 1e-300)))


def _find_kink(values: Values, panel: Panel) -> float | None:
    """The kink, found by bisection; None where the function merely varies fast, and shorter panels resolve it."""
    while panel[1] - panel[0] > NARROW * max(1.0, abs(panel[0])):
        left, right = _parts(panel)
        # a kink next to the cut lies beyond the last node of either part
        parts = [left, right, (0.5 * sum(left), 0.5 * sum(right))]
        errors = [_relative_disagreement(values, part) for part in parts]
        if not max(errors) > TOLERANCE:
            return None
        panel = parts[int(np.argmax(errors))]
    place = 0.5 * (panel[0] + panel[1])
    simple = round(place, 4) + 0.0
    return simple if abs(simple - place) < 10 * NARROW * max(1.0, abs(place)) else place


def _demand_slow_growth(layer: Elementwise, phi: Function, length: float) -> None:
    x: Any = np.linspace(-REACH, REACH, 401)
    values = np.asarray(phi(length * x))
    if np.isnan(values).any():
        raise ArchitectureError(
            type(layer).__name__,
            "",
            f"it is not a number at {length * x[int(np.argmax(np.isnan(values)))]:.6g}, where inputs of standard "
            f"deviation {length:.3g} come",
            "A Gaussian takes every real value: take a function that is finite everywhere",
        )
    square = np.square(values) * np.asarray(density(x))
    if not square.any():
        raise ArchitectureError(
            type(layer).__name__,
            "",
            f"it is 0 wherever inputs of standard deviation {length:.3g} come, and so are its kernels",
            "Take a function that is not 0 everywhere",
        )
    held = max(square[0], square[-1]) / square.sum()
    if not held < FASTEST:
        raise ArchitectureError(
            type(layer).__name__,
            "",
            f"at inputs of standard deviation {length:.3g} it grows faster than their Gaussian density falls, so "
            f"that E phi(u)^2 is infinite, or too much of it lies beyond {REACH:g} standard deviations, where nothing "
            "is integrated",
            "Lower W_std of the Dense before it, put a LayerNorm there, or take a function that grows more slowly",
        )
