"""Windows of positions in ball arithmetic, for networks that compare equal positions alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np
from flint import arb

from lnkernel.arch.places import NOTHING
from lnkernel.arch.window import Slide
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.places import places_along
from lnkernel.calculus.positions import (
    Groups,
    Positions,
    spread,
    window_places,
    window_sum,
    without_axes,
)
from lnkernel.evaluate.balls.arithmetic import Balls
from lnkernel.evaluate.balls.numbers import BallArray, Truth, balls


class NoOwn:
    """Kernels between different positions of one input, which equal positions do not ask for."""

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        raise NotImplementedError

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Any
    ) -> tuple[Number, Number]:
        raise NotImplementedError

    def certain(self, num: Arithmetic, at: Positions, w: Number) -> Number:
        raise NotImplementedError


def _each(x: Any, change: Any) -> Any:
    """Change an array of balls, or both sides of a truth; zeros that come in are balls, and nothing lives there."""
    if isinstance(x, Truth):
        return Truth(change(np.asarray(x.yes), False), change(np.asarray(x.no), True))
    if isinstance(x, np.ndarray) and x.dtype == bool:
        return change(x, False)
    return change(np.asarray(balls(x), dtype=object), arb(0)).view(BallArray)


@spread.register
def _(num: Balls, x: Any, form: tuple[int, ...]) -> Any:
    return _each(
        np.asarray(x) if isinstance(x, bool) else x,
        lambda part, _: np.broadcast_to(part, np.broadcast_shapes(part.shape, form)),
    )


@window_places.register
def _(num: Balls, x: Any, groups: Groups, slides: list[Slide]) -> Iterator[Any]:
    moves = [(axes[0], slide) for axes, slide in zip(groups, slides, strict=True)]
    for axis, slide in moves:
        x = _each(x, lambda part, zero, at=axis, by=slide: _pad(part, zero, at, by))
    for places in product(*(range(slide.size) for slide in slides)):
        index = [
            (axis, slice(place, place + (slide.steps - 1) * slide.stride + 1, slide.stride))
            for (axis, slide), place in zip(moves, places, strict=True)
        ]
        yield _each(x, lambda part, _, at=index: _take(part, at))


@window_sum.register
def _(num: Balls, x: Any, groups: Groups, slides: list[Slide]) -> Any:
    return reduce(add, window_places(num, x, groups, slides))


@places_along.register
def _(num: Balls, x: Any, axis: int, places: np.ndarray) -> Any:
    there = places != NOTHING

    def change(part: np.ndarray, zero: Any) -> np.ndarray:
        made = np.take(part, np.where(there, places, 0), axis=axis)
        shape = [1] * made.ndim
        shape[axis] = len(places)
        return made if there.all() else np.where(there.reshape(shape), made, zero)

    return _each(x, change)


@without_axes.register
def _(num: Balls, x: Any, count: int, behind: int) -> Any:
    def change(part: np.ndarray, _: Any) -> np.ndarray:
        stop = part.ndim - behind
        return part.reshape(part.shape[: max(stop - count, 0)] + part.shape[stop:])

    return _each(x, change) if np.ndim(x) or isinstance(x, Truth) else x


def _pad(part: np.ndarray, zero: Any, axis: int, slide: Slide) -> np.ndarray:
    """With what stands around the positions: zeros, or those of the other end."""
    length = part.shape[axis]
    if slide.wraps:
        return np.take(part, np.arange(-slide.low, length + slide.high) % length, axis=axis)
    widths = [(0, 0)] * part.ndim
    widths[axis] = slide.low, slide.high
    return np.pad(part, widths, constant_values=zero) if slide.low or slide.high else part


def _take(part: np.ndarray, at: list[tuple[int, slice]]) -> np.ndarray:
    index: list[Any] = [slice(None)] * part.ndim
    for axis, places in at:
        index[axis] = places
    return part[tuple(index)]
