"""Networks whose pooled kernels are sums over offsets (`offsets`), and images in a frame of zeros.

Where zeros surround an image, it is put into a frame of them, as wide as the windows reach, so that positions that a
move takes over the edge come back at the other end. Around the frame a convolution may go, if no feature is left in it.
"""

from __future__ import annotations

import dataclasses
import math
from functools import singledispatch
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from lnkernel.arch import Conv, GlobalAvgPool, GlobalSumPool, LayerNorm, Node, Parallel, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import traits
from lnkernel.arch.window import Window
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.covariance import Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import State
from lnkernel.evaluate.float64.own import Reading
from lnkernel.gram.network import Needs
from lnkernel.gram.rows import suits
from lnkernel.gram.stages import mean_matters

Move = tuple[int, ...]
MOST_LANES = 100  # moves of the second image of a pair


class Plan(NamedTuple):
    """A network in its parts, and how its images are moved."""

    before: Node  # the layers up to the pooling, for images in a frame
    behind: Node  # the pooling and what follows
    factor: float  # of the sum over all pairs of positions
    shape: tuple[int, ...]
    framed: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """How far the first image moves at a time along each axis; the second makes all moves in between."""
        strides, side_by_side = [], 1
        for n in reversed(self.framed):
            fit = max(1, min(n, MOST_LANES // side_by_side))
            # the most that fit, unless fewer leave no more offsets that come twice
            stride = min(
                range(fit, 0, -1), key=lambda k: -(-n // k) * k if 2 * k > fit else math.inf
            )
            strides.append(stride)
            side_by_side = MOST_LANES if stride < n else side_by_side * stride
        return tuple(reversed(strides))

    @property
    def first_moves(self) -> list[Move]:
        """Those of the first image."""
        both = zip(self.framed, self.strides, strict=True)
        return list(product(*(range(0, n, stride) for n, stride in both)))

    @property
    def second_moves(self) -> list[Move]:
        """Those of the second image."""
        return list(product(*map(range, self.strides)))

    @property
    def weights(self) -> np.ndarray:
        """1 for each offset, by the moves of both images; 0 for those that come a second time."""
        offsets = np.array(self.first_moves)[:, None] + np.array(self.second_moves)
        return (offsets < self.framed).all(axis=-1).astype(np.float64)

    @property
    def at_a_time(self) -> int:
        """Pairs of positions that are in memory at a time."""
        return math.prod(self.framed) * math.prod(self.strides)


def plan_for(arch: Node, needs: Needs, shape: tuple[int, ...]) -> Plan | None:
    """The parts of a network that is pooled at once, behind layers that keep offsets; None of another."""
    layers = layers_of(arch)
    mixing = [place for place, layer in enumerate(layers) if traits(layer).mixes_positions]
    if not (mixing and suits(needs)):
        return None
    before, behind = layers[: mixing[0]], layers[mixing[0] :]
    factor = pooling_factor(behind[0], math.prod(shape))
    if factor is None or mean_matters(list(behind[1:]), False):
        return None
    windows: list[Window] = []
    try:
        framed_layers = in_frame(Serial(before), needs.difference, windows)
    except _MixesOffsetsError:
        return None
    paddings = {window.padding for window in windows}
    framed = list(shape)
    if paddings == {"SAME"}:
        for axis, n in enumerate(shape):
            framed[axis] = n + max(window.size[axis] // 2 for window in windows)
    around = all(window.size[axis] <= n for window in windows for axis, n in enumerate(framed))
    if len(paddings) > 1 or not around:
        return None
    return Plan(framed_layers, Serial(behind), factor * factor, shape, tuple(framed))


@singledispatch
def pooling_factor(layer: Node, count: int) -> float | None:
    """The number by which the sum over so many positions is multiplied, if the layer pools all of them."""
    return None


@pooling_factor.register
def _(layer: GlobalAvgPool, count: int) -> float | None:
    return 1.0 / count


@pooling_factor.register
def _(layer: GlobalSumPool, count: int) -> float | None:
    return 1.0


class _MixesOffsetsError(Exception):
    """Behind a layer, an offset depends on several before it."""


@singledispatch
def in_frame(layer: Node, with_difference: bool, windows: list[Window]) -> Node:
    """The layer for images in a frame; its windows go into the list."""
    if traits(layer).on_positions:
        raise _MixesOffsetsError
    return layer


@in_frame.register
def _(layer: Conv, with_difference: bool, windows: list[Window]) -> Node:
    if layer.padding == "VALID" or set(layer.strides) != {1}:
        raise _MixesOffsetsError
    windows.append(layer.window)
    if layer.padding == "CIRCULAR":
        return layer
    return InFrame(dataclasses.replace(layer, padding="CIRCULAR"), with_difference)


@in_frame.register
def _(layer: LayerNorm, with_difference: bool, windows: list[Window]) -> Node:
    if layer.axes == "all":
        raise _MixesOffsetsError
    return layer


@in_frame.register
def _(layer: Serial, with_difference: bool, windows: list[Window]) -> Node:
    return Serial(tuple(in_frame(part, with_difference, windows) for part in layer.layers))


@in_frame.register
def _(layer: Parallel, with_difference: bool, windows: list[Window]) -> Node:
    return Parallel(tuple(in_frame(part, with_difference, windows) for part in layer.branches))


@node
class InFrame(Node):
    """A convolution that goes around the frame, from which all features are taken before it."""

    conv: Conv
    with_difference: bool = static()  # of the lengths of both inputs


@rule.register
def _(layer: InFrame, state: State, num: Arithmetic) -> State:
    state = without_frame(state)
    if layer.with_difference:
        cov = state.total
        e = num.length_difference(cov.first.q, cov.second.q)
        total = cov.with_lengths(cov.first, cov.second, e)
        state = dataclasses.replace(state, total=total, centred=total)
    return rule(layer.conv, state, num)


class Inside(Reading):
    """For images at equal positions. At each of them 1 inside, and 0 in the frame; None where there is none."""

    def __init__(self, first: Any, second: Any):
        super().__init__((), ())
        self.first, self.second = first, second


def without_frame(state: State) -> State:
    """Features in the frame get length 0. So the lengths of both inputs differ, and by how much, only they tell."""
    at = state.positions
    assert at is not None and isinstance(at.own, Inside)
    if at.own.first is None:
        return state
    one, two, cov = at.own.first, at.own.second, state.total
    first = Length(cov.first.q * one, cov.first.live)
    second = Length(cov.second.q * two, cov.second.live)
    total = cov.with_lengths(first, second, None)
    o = None if state.o is None else state.o * (one * two)
    return dataclasses.replace(state, total=total, centred=total, o=o)
