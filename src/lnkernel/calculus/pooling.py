r"""Pooling: the features of a window of positions, added up.

$K'_{PP'} = \langle K_{pp'} \rangle$ over all positions $p$ of the one window and $p'$ of the other, and Θ likewise. The
lengths behind it are kernels between different positions of one input: see `Own`.

The small angle between two inputs that are nearly the same is a difference of such sums. It has an error of the
rounding of 1, whose root, 1e-8, is what is left of the angle's digits there. A readout does not notice: $K'$ and
$\Theta'$ themselves are sums without cancellation.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, Protocol

from lnkernel.arch.pooling import GlobalAvgPool, GlobalSumPool, WindowPool
from lnkernel.arch.window import Slide
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.convolution import drop_positions
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import (
    FIRST,
    SECOND,
    Groups,
    Positions,
    demand_positions,
    of_one_side,
    spread,
    whole,
    window_places,
    window_sum,
)
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Both, Mean, State
from lnkernel.check.plain import known_zero

ROUNDING = 4e-16  # below it an angle is noise, and two inputs count as the same


@rule.register
def _(layer: WindowPool, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    slides = layer.slides.over(at.shape, type(layer).__name__)
    return pooled(num, state, at, slides, layer.factor)


@rule.register
def _(layer: GlobalAvgPool, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    return _over_all(state, num, at, 1.0 / math.prod(at.shape))


@rule.register
def _(layer: GlobalSumPool, state: State, num: Arithmetic) -> State:
    return _over_all(state, num, demand_positions(layer, state.positions), 1.0)


def _over_all(state: State, num: Arithmetic, at: Positions, factor: float) -> State:
    return drop_positions(num, pooled(num, state, at, whole(at.shape), factor), at)


def pooled(
    num: Arithmetic, state: State, at: Positions, slides: list[Slide], factor: float
) -> State:
    """The sums over windows, multiplied by a factor."""
    return added_up(num, state, at, WindowSums(slides, factor))


class Sums(Protocol):
    """Sums over positions, the same for both inputs."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the positions behind it."""
        ...

    def total(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        """The sums over the positions of one input."""
        ...

    def largest(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        """At least the sums over the pairs of positions, where x is the kernel of each with itself: as if all that are
        added up were alike."""
        ...

    def some(self, num: Arithmetic, live: Number, groups: Groups) -> Number:
        """Whether some of the positions are alive."""
        ...


class WindowSums(NamedTuple):
    """Sums over windows, multiplied by a factor."""

    slides: list[Slide]
    factor: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(slide.steps for slide in self.slides)

    def total(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        return window_sum(num, x, groups, self.slides) * self.factor

    def largest(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        size = math.prod(slide.size for slide in self.slides)
        return window_sum(num, x, groups, self.slides) * (self.factor * self.factor * size)

    def some(self, num: Arithmetic, live: Number, groups: Groups) -> Number:
        made: Number = False
        for place in window_places(num, live, groups, self.slides):
            made = num.either(made, place)
        return made


def added_up(num: Arithmetic, state: State, at: Positions, sums: Sums) -> State:
    """The state behind these sums."""
    after = dataclasses.replace(at, shape=sums.shape)

    def of_input(x: Number, side: int) -> Number:
        if at.paired:
            x = of_one_side(num, x, at.axes(SECOND if side == FIRST else FIRST))
        return sums.total(num, spread(num, x, at.form(side)), at.alone(side))

    def of_pair(x: Number) -> Number:
        x = spread(num, x, at.form(None))
        if not at.paired:
            return sums.largest(num, x, at.together)
        for side in (SECOND, FIRST):  # the last axes first: they lie together in memory
            x = sums.total(num, x, at.alone(side))
        return x

    def live(length: Length, side: int) -> Number:
        if length.live is True:
            return True
        return sums.some(num, spread(num, length.live, at.form(side)), at.alone(side))

    def of(cov: Covariance) -> Covariance:
        block = of_pair(cov.times_lengths(num, cov.c))
        squares = at.own.squares(num, after, block)
        sides = (cov.first, cov.second)
        first, second = (
            Length(q, live(old, side))
            for side, (q, old) in enumerate(zip(squares, sides, strict=True))
        )
        return between(num, block, first, second, after, with_e=cov.e is not None)

    total = of(state.total)
    centred = total if state.centred is state.total else of(state.centred)
    mean = None
    if state.mean is not None:
        lengths = state.total.first, state.total.second
        means = [
            of_input(share * num.sqrt(length.q), side)
            for side, (share, length) in enumerate(zip(state.mean[:2], lengths, strict=True))
        ]
        mean = mean_of(num, means, total, centred)
    t = state.t
    if not known_zero(t):
        t = of_pair(state.total.times_lengths(num, t))
        for side in (total.first, total.second):
            t = t * num.divide(1.0, num.sqrt(side.q))
    o = None if state.o is None else of_pair(state.o)
    return State(total, centred, t, state.g, o, mean=mean, gaussian=state.gaussian, positions=after)


def between(
    num: Arithmetic, block: Number, first: Length, second: Length, at: Positions, with_e: bool
) -> Covariance:
    """The covariance of states with this kernel and these lengths."""
    c = block
    for side in (first, second):
        c = c * num.divide(1.0, num.sqrt(side.q))
    w = at.own.certain(num, at, 0.5 * (1 - c))
    w = num.where(w > ROUNDING, w, 0.0)
    z = num.where(w < 1, 1 - w, 0.0)
    e = num.length_difference(first.q, second.q) if with_e else None
    return Covariance(first, second, w, z, 1 - 2 * w, e)


def mean_of(num: Arithmetic, means: list[Number], total: Covariance, centred: Covariance) -> Mean:
    """These means as shares of the lengths."""
    lengths = (total.first, total.second), (centred.first, centred.second)
    one, two = (num.divide(m, num.sqrt(side.q)) for m, side in zip(means, lengths[0], strict=True))
    rest = Both(*(num.sqrt(num.divide(c.q, t.q)) for t, c in zip(*lengths, strict=True)))
    e = None if total.e is None else num.length_difference(means[0] * means[0], means[1] * means[1])
    return Mean(one, two, e, rest)
