r"""Pooled kernels of images, by the offsets between positions.

A convolution of stride 1 moves both positions of a pair $(p, p')$ alike: their offset $p' - p$ stays, up to a pooling.
So the kernel of two images at the pairs of one offset is that of one image and of the other, moved, at equal positions,

$$\sum_{pp'} K_{pp'}(x, x') = \sum_\delta \sum_p K_{pp}(x, S_\delta x'), \quad (S_\delta x')_p = x'_{p + \delta},$$

and the offsets are spread over both images: with $x'$ moved along the last axes, and $x$ along the others, every offset
comes once. The first image is taken in one of its places at a time, with all places of the second side by side
(`rows`): so few of these pairs are computed at a time, and stay in the cache.

Positions that a move takes over the edge come back at the other end. Where zeros surround an image, it is put into a
frame of zeros, as wide as the windows reach; around the frame a convolution may go, if no feature is left in it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import singledispatch
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from lnkernel.arch import Conv, GlobalAvgPool, GlobalSumPool, LayerNorm, Node, Parallel, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import traits
from lnkernel.arch.window import Window
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import FIRST, SECOND, Positions, spread, whole, window_sum
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, State
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.own import Noting, Reading, Record
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram.compiled import compiled
from lnkernel.gram.network import Needs
from lnkernel.gram.rows import IN_A_CALL, LANES, OPTIONS, Inputs, Out, by_rows, side_by_side, suits
from lnkernel.gram.sides import next_power, power_of_two
from lnkernel.gram.stages import mean_matters
from lnkernel.gram.structure import Structure, dissect
from lnkernel.progress import Bar
from lnkernel.types import Array

Corner = tuple[int, int]
Move = tuple[int, ...]
MOST_LANES = 100  # pairs side by side of one pair of images

# ---------------------------------------------------------------- networks


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
    """By which the sum over so many positions is multiplied, if the layer pools all of them."""
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


# ---------------------------------------------------------------- rules for images in a frame


@node
class InFrame(Node):
    """A convolution that goes around the frame, from which all features are taken before it."""

    conv: Conv
    with_difference: bool = static()  # of the lengths of both inputs


@rule.register
def _(layer: InFrame, state: State, num: Arithmetic) -> State:
    state = _without_frame(state)
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


def _without_frame(state: State) -> State:
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


# ---------------------------------------------------------------- sums over all pairs of positions


# of K, of Θ and, where there are trainable biases of norms, of their part of it
Sums = list[np.ndarray]


class Work:
    """The sums over all pairs of positions of images, for one plan."""

    def __init__(self, plan: Plan, needs: Needs, all_live: bool, n: int, m: int):
        self.plan, self.settings = plan, (needs, all_live)
        places = np.arange(math.prod(plan.framed)).reshape(plan.framed)
        axes = tuple(range(places.ndim))
        first = [np.roll(places, move, axes) for move in plan.first_moves]
        second = [np.roll(places, [-k for k in move], axes) for move in plan.second_moves]
        self.moves = np.reshape(first, (len(first), -1)), np.reshape(second, (len(second), -1))
        # images on each side of a tile, by powers of two, so that few programs are compiled
        self.columns = min(power_of_two(max(1, LANES // len(second))), next_power(m))
        pairs = len(first) * len(second) * places.size * self.columns
        self.rows = min(power_of_two(max(1, IN_A_CALL // pairs)), next_power(n))

    def matrix(self, x: Array, x2: Array, one_half: bool = False) -> Sums:
        """Of all pairs, (n, m); or of one half of them, if both sides are the same."""
        n, m = len(x), len(x2)
        corners = [
            (i, j)
            for j in range(0, m, self.columns)
            for i in range(0, n, self.rows)
            if not one_half or i < j + self.columns
        ]
        found: Sums = []
        for (i, j), tile in self._tiles(x, x2, corners, None):
            found = found or [np.zeros((n, m)) for _ in tile]
            for matrix, part in zip(found, tile, strict=True):
                matrix[i : i + self.rows, j : j + self.columns] = part[: n - i, : m - j]
        return [np.triu(part) + np.triu(part, 1).T for part in found] if one_half else found

    def diagonal(self, x: Array) -> Sums:
        """Of every image with itself, (n,)."""
        n, step = len(x), min(self.rows, self.columns)
        tiles = self._tiles(x, x, [(k, k) for k in range(0, n, step)], False)
        parts = [[np.diagonal(part)[:step] for part in tile] for _, tile in tiles]
        return [np.concatenate(column)[:n] for column in zip(*parts, strict=True)]

    def _tiles(
        self, x: Array, x2: Array, corners: list[Corner], wanted: bool | None
    ) -> Iterator[tuple[Corner, Sums]]:
        structure, varying = dissect(self.plan.before)
        numbers = np.asarray([float(number) for number in varying])
        program = compiled(_sums, structure, *self.settings, options=OPTIONS)
        weights = self.plan.weights

        def compute(corner: Corner) -> Sums:
            i, j = corner
            first = self._moved(x, FIRST, i, self.rows)
            second = self._moved(x2, SECOND, j, self.columns)
            made = [np.asarray(part) for part in program(numbers, first, second)]
            shape = self.rows, len(weights), self.columns, -1
            return [np.einsum("iajb,ab->ij", part.reshape(shape), weights) for part in made]

        with Bar(wanted, len(corners), "tile", "kernel") as bar:
            for corner, tile in side_by_side(compute, corners):
                yield corner, tile
                bar.update(1)

    def _moved(self, x: Array, side: int, start: int, count: int) -> Inputs:
        """All moves of so many images from here on, in their frames; the last image fills up."""
        plan, moves = self.plan, self.moves[side]
        rows = np.minimum(np.arange(start, start + count), len(x) - 1)
        around = [(0, more - n) for n, more in zip(plan.shape, plan.framed, strict=True)]

        def of(some: np.ndarray) -> np.ndarray:
            """Features (count, positions, channels)."""
            framed = np.pad(some, [(0, 0), *around, (0, 0)])
            flat = framed.reshape(len(some), -1, some.shape[-1])
            return flat[:, moves].reshape(-1, *plan.framed, some.shape[-1])

        if plan.framed == plan.shape:
            return Inputs(of(np.asarray(x)[rows]))
        inside = np.ones((count, *plan.shape, 1))
        return Inputs(of(np.asarray(x)[rows]), of(inside)[..., 0])


def _sums(
    structure: Structure, needs: Needs, all_live: bool, varying: Array, one: Inputs, two: Inputs
) -> Out:
    def own(first: Inputs, second: Inputs) -> Inside:
        if first.inside is None:
            return Inside(None, None)
        inside = jnp.moveaxis(first.inside, 0, -1), jnp.moveaxis(second.inside, 0, -1)
        return Inside(inside[FIRST][..., None], inside[SECOND][..., None, :])

    def end(state: State, num: Float64) -> Out:
        state = _without_frame(state)
        at = state.positions
        assert at is not None

        def total(x: Number) -> Array:
            x = spread(num, x, at.form(None))
            made: Array = window_sum(num, x, at.alone(FIRST), whole(at.shape))
            return made.reshape(made.shape[-at.behind :])

        cov = state.total
        made = total(cov.times_lengths(num, cov.c)), total(cov.times_lengths(num, state.averaged))
        return made if state.o is None else (*made, total(state.o))

    return by_rows(structure, needs, all_live, varying, one, two, own, end)


# ---------------------------------------------------------------- behind the pooling


def matrix_behind(plan: Plan, needs: Needs, sums: Sums, K1: np.ndarray, K2: np.ndarray) -> Kernels:
    """The kernels of all pairs, (n, m), from these sums, and those of K of every image with itself, (n,) and (m,)."""
    ones = (1,) * len(plan.shape)
    notes = [(plan.factor * K.reshape(-1, *ones),) for K in (K1, K2)]
    return _behind(plan, needs, sums, Reading(*notes))


def diagonal_behind(plan: Plan, needs: Needs, sums: Sums) -> Kernels:
    """The kernels of every image with itself, (n,)."""
    return _behind(plan, needs, sums, Noting())


def _behind(plan: Plan, needs: Needs, sums: Sums, record: Record) -> Kernels:
    """Sums over all positions are the block of a single one."""
    ones = (1,) * len(plan.shape)
    K, theta, *o = (plan.factor * x.reshape(*x.shape, *ones, *ones) for x in sums)
    unit = Length(1.0)
    cov = Covariance(unit, unit, None, None, K, 0.0 if needs.difference else None)
    at = Positions(ones, True, record)
    state = State(cov, cov, theta, o=o[0] if o else None, gaussian=False, positions=at)
    num = EagerFloat64(needs.range, False, False, needs.sharp_lengths, needs.delicate)
    with np.errstate(all="ignore"):
        kernels = rule(plan.behind, state, num).kernels(num)
    return Kernels(*(np.broadcast_to(plain(kernel), sums[0].shape) for kernel in kernels))
