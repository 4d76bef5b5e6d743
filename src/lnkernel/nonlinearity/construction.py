r"""From labelled numbers to folds: two of the three smallest numbers have the same label, and one fold merges them.

With c the second of the three, s half their range and φ half-way between the angles of the two that are merged,
the others keep their order and stay below, but for the first, if the second and the third are merged: where it
would come close to another, s is enlarged. Every fold leaves one number less; two runs of labels need none.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from flint import arb

from lnkernel.nonlinearity.folds import Fold, as_fraction, bend

WIDER = (
    1.0,
    1.3,
    1.7,
    2.2,
    3.0,
)  # factors of s that are tried, if the first number comes close to others
FAR = 0.2  # of the distance of its two neighbours from each other: far enough from both


class Spot(NamedTuple):
    """A number that one or several points with the same label have come to."""

    t: arb
    label: bool


class Step(NamedTuple):
    """A fold, and where it takes the spots."""

    c: arb
    s: arb
    a: arb
    b: arb
    spots: list[Spot]
    room: float  # between the number that may come close to others and the nearest, or 1


def find_folds(spots: list[Spot]) -> tuple[list[Fold], Fraction, int] | None:
    """The folds, the threshold behind them, and 1 or -1 as the second class is above or below.

    None where the working precision cannot tell two numbers with different labels apart.
    """
    spots, folds = _sort(spots), []
    while len(ends := _ends_of_runs(spots)) > 1:
        step = _merge_two(spots)
        if step is None:
            return None
        folds.append(Fold(*(as_fraction(number) for number in step[:4])))
        spots = _sort(step.spots)
    if not ends:
        return folds, Fraction(0), 1 if spots[0].label else -1
    low, high = spots[ends[0]], spots[ends[0] + 1]
    if not low.t < high.t:
        return None
    return folds, as_fraction((low.t + high.t) / 2), 1 if high.label else -1


def _sort(spots: list[Spot]) -> list[Spot]:
    """The spots in increasing order, without repetitions."""
    ordered = sorted(spots, key=lambda spot: spot.t)
    return [
        spot
        for spot, last in zip(ordered, [None, *ordered[:-1]], strict=True)
        if last is None or last.t < spot.t or last.label != spot.label
    ]


def _ends_of_runs(spots: list[Spot]) -> list[int]:
    """The last places of all runs of equal labels but the last."""
    return [i for i in range(len(spots) - 1) if spots[i].label != spots[i + 1].label]


def _merge_two(spots: list[Spot]) -> Step | None:
    first, second, third = spots[:3]
    if not first.t < second.t < third.t:
        return None
    same = {first.label == third.label: (0, 2), first.label == second.label: (0, 1)}
    pair = same.get(True, (1, 2))
    half = (third.t - first.t) / 2
    if pair != (1, 2):
        return _fold(spots, pair, half)
    tried = []
    for factor in WIDER:
        tried.append(_fold(spots, pair, half * factor))
        if tried[-1].room >= FAR:
            break
    return max(tried, key=lambda step: step.room)


def _fold(spots: list[Spot], pair: tuple[int, int], s: arb) -> Step:
    """The fold that merges two spots, seen from half-way between their angles."""
    c, s = spots[1].t, s.mid()
    units = []
    for place in pair:
        u = spots[place].t - c
        length = (u * u + s * s).sqrt()
        units.append((u / length, s / length))
    x, y = units[0][0] + units[1][0], units[0][1] + units[1][1]
    length = (x * x + y * y).sqrt()
    a, b = (x / length).mid(), (y / length).mid()
    after = [Spot(bend(spot.t, c, s, a, b).mid(), spot.label) for spot in spots]
    i, j = pair
    merged = Spot(((after[i].t + after[j].t) / 2).mid(), after[i].label)
    others = [spot for place, spot in enumerate(after) if place not in pair]
    return Step(c, s, a, b, [*others, merged], _room(others, merged) if pair == (1, 2) else 1.0)


def _room(others: list[Spot], merged: Spot) -> float:
    """How far the first of the others is from its neighbours, as a part of their distance from each other."""
    t = others[0].t
    rest = [spot.t for spot in (*others[1:], merged)]
    below, above = [o for o in rest if o <= t], [o for o in rest if o > t]
    if not below:
        return 1.0
    if not above:
        return 0.0
    under, over = max(below), min(above)
    return float(min(t - under, over - t) / (over - under))
