r"""A rigorous enclosure of $C = \sup_x \Theta(x, x)$ by adaptive bisection.

Θ(x, x) is a function of $r = |x|^2/d$ alone, so of $\tau = r/(1+r) \in [0, 1]$. Boxes of τ are halved,
the most promising first, until none can exceed the largest value found at a point by more than
asked. Where the derivative has one sign on a box, its end is the maximum, and that box is done.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from lnkernel.arch import Node
from lnkernel.arch.facts import demand_one_length
from lnkernel.evaluate.balls import entries, ray
from lnkernel.evaluate.balls.arithmetic import exactly
from lnkernel.evaluate.balls.numbers import BITS, exact, working_precision
from lnkernel.evaluate.balls.on_ray import Box

MOST_BOXES = 4_000


class Enclosure(NamedTuple):
    """A number that is proved to lie between two others."""

    lower: float
    upper: float


class Supremum(NamedTuple):
    """C, and the norm |x|/√d of an input that reaches the lower end; infinity is a norm."""

    enclosure: Enclosure
    norm: float


def supremum(
    arch: Node,
    rtol: float,
    progress: Callable[[float], object] | None = None,
) -> Supremum:
    """C to within rtol.

    `progress` is called after each box with the relative width that remains. After
    MOST_BOXES boxes the enclosure is returned as it is then: wider, and just as true.
    """
    demand_one_length(arch)
    with working_precision(BITS):
        search = _Search(exactly(arch))
        zero = entries.diagonal(arch, np.zeros((1, 4))).ntk  # x = 0, which no box contains
        at_zero = arb(float(zero.middle[0]), float(zero.radius[0]))
        search.raise_floor(at_zero, Fraction(0))
        diverges = search.diverging_end()
        if diverges is not None:
            return Supremum(Enclosure(math.inf, math.inf), _norm(diverges))
        if not at_zero.is_finite():  # unknown, or infinite: a bias over a vanishing length
            return Supremum(Enclosure(down(search.floor), math.inf), 0.0)
        for end in (Fraction(0), Fraction(1)):  # the limits x → 0 and |x| → ∞
            search.at(end)
        search.push(Box(Fraction(0), Fraction(1)))
        while search.count < MOST_BOXES:
            top = search.top
            if top <= search.floor * (1 + arb(rtol)):
                break
            if progress is not None:
                progress(float((top / search.floor - 1).upper()))
            search.halve()
        upper = max(search.top, search.floor_ball.upper())
        return Supremum(Enclosure(down(search.floor), up(upper)), _norm(search.best))


@dataclass
class _Search:
    network: Any
    floor_ball: arb = field(default_factory=lambda: arb(0))  # the largest value at a point
    best: Fraction = Fraction(0)
    count: int = 0
    heap: list[tuple[float, int, arb, Box | None]] = field(default_factory=list)

    @property
    def floor(self) -> arb:
        return self.floor_ball.lower()

    @property
    def top(self) -> arb:
        """No x has a larger Θ(x, x) than this, or the floor."""
        return self.heap[0][2]

    def raise_floor(self, value: arb, place: Fraction) -> None:
        if value.lower() > self.floor:
            self.floor_ball, self.best = value, place

    def diverging_end(self) -> Fraction | None:
        """τ = 1 or 0 where Θ(x, x) is a negative power of the distance from it, or None."""
        for end in (Fraction(1), Fraction(0)):
            theta = ray.diagonal(self.network, Box(end, end), BITS)
            power = theta.k if end else -theta.j
            if power > 0 and theta.v.value > 0:
                return end
        return None

    def at(self, place: Fraction) -> arb:
        value = ray.diagonal(self.network, Box(place, place), BITS).flat().value
        if value.is_finite():
            self.raise_floor(value, place)
            return value
        return arb.pos_inf()

    def push(self, box: Box) -> None:
        self.count += 1
        theta = ray.diagonal(self.network, box, BITS).flat()
        slope, upper = theta.slope, theta.value.upper()
        middle = self.at(box.middle)
        rest: Box | None = box
        if slope.is_zero():
            upper, rest = middle.upper(), None
        elif slope >= 0 or slope <= 0:
            upper, rest = self.at(box.high if slope >= 0 else box.low).upper(), None
        elif slope.is_finite():
            step = box.tau - exact(box.middle)
            upper = _smaller(upper, (middle + slope * step).upper())
        if not upper.is_finite():
            upper = arb.pos_inf()
        heapq.heappush(self.heap, (-float(upper), self.count, upper, rest))

    def halve(self) -> None:
        _, _, upper, box = heapq.heappop(self.heap)
        if box is None:  # its maximum is known to BITS bits: nothing left to gain
            heapq.heappush(self.heap, (-float(upper), self.count, upper, None))
            self.count = MOST_BOXES
            return
        for half in (Box(box.low, box.middle), Box(box.middle, box.high)):
            self.push(half)


def _smaller(x: arb, y: arb) -> arb:
    return y if not x.is_finite() or y < x else x


def _norm(tau: Fraction) -> float:
    """|x|/√d = sqrt(τ/(1 - τ))."""
    return math.inf if tau == 1 else math.sqrt(tau / (1 - tau))


def down(x: arb) -> float:
    """The largest float64 number, or nearly so, that is not above any number of the ball."""
    near = float(x.lower())
    return near if arb(near) <= x else math.nextafter(near, -math.inf)


def up(x: arb) -> float:
    """The smallest float64 number, or nearly so, that is not below any number of the ball."""
    near = float(x.upper())
    return near if arb(near) >= x else math.nextafter(near, math.inf)
