r"""Pooled kernels of images, by the offsets between positions.

A convolution of stride 1 moves both positions of a pair $(p, p')$ alike: their offset $p' - p$ stays, up to a pooling.
So the kernel of two images at the pairs of one offset is that of one image and of the other, moved, at equal positions,

$$\sum_{pp'} K_{pp'}(x, x') = \sum_\delta \sum_p K_{pp}(x, S_\delta x'), \quad (S_\delta x')_p = x'_{p + \delta},$$

and the offsets are spread over both images: with $x'$ moved along the last axes, and $x$ along the others, every offset
comes once. The first image is taken in one of its places at a time, with several places of the second, or of several
second images, side by side (`rows`): so few of these pairs are computed at a time, and stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch import Serial
from lnkernel.arch.compose import layers_of
from lnkernel.calculus.arithmetic import Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import FIRST, SECOND, Positions, spread, whole, window_sum
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, State
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.own import Noting, Reading, Record
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram.compiled import compiled
from lnkernel.gram.frames import Inside, Plan, without_frame
from lnkernel.gram.network import Needs
from lnkernel.gram.readout import is_readout, read_out
from lnkernel.gram.rows import IN_A_CALL, LANES, OPTIONS, Inputs, Out, by_rows, side_by_side
from lnkernel.gram.sides import next_power, power_of_two
from lnkernel.gram.structure import Structure, dissect
from lnkernel.progress import Bar
from lnkernel.types import Array

# of K, of Θ and, where there are trainable biases of norms, of their part of it
Sums = list[np.ndarray]


class Corner(NamedTuple):
    """Where a tile begins: an image of the first side, and a lane of the second, a move of one of its images."""

    image: int
    lane: int


class Work:
    """The sums over all pairs of positions of images, for one plan."""

    def __init__(self, plan: Plan, needs: Needs, all_live: bool, n: int, m: int):
        self.plan, self.settings = plan, (needs, all_live)
        places = np.arange(math.prod(plan.framed)).reshape(plan.framed)
        axes = tuple(range(places.ndim))
        first = [np.roll(places, move, axes) for move in plan.first_moves]
        second = [np.roll(places, [-k for k in move], axes) for move in plan.second_moves]
        self.moves = np.reshape(first, (len(first), -1)), np.reshape(second, (len(second), -1))
        # images and lanes of a tile, by powers of two, so that few programs are compiled
        self.lanes = min(LANES, next_power(m * len(second)))
        of_row = len(first) * places.size
        self.rows = min(power_of_two(max(1, IN_A_CALL // (of_row * self.lanes))), next_power(n))
        self.alone = min(
            power_of_two(max(1, IN_A_CALL // (of_row * len(second)))), next_power(max(n, m))
        )

    def matrix(self, x: Array, x2: Array, one_half: bool = False) -> Sums:
        """The sums of all pairs, (n, m); computed for one half of them, if both sides are the same."""
        n, m, moves = len(x), len(x2), len(self.moves[SECOND])
        corners = [
            Corner(i, lane)
            for lane in range(0, m * moves, self.lanes)
            for i in range(0, n, self.rows)
            if not one_half or i * moves < lane + self.lanes
        ]
        program, numbers = self._program(_sums)

        def compute(corner: Corner) -> Sums:
            lanes = self._lanes_from(corner.lane, m)
            first = self._moved(x, FIRST, np.arange(corner.image, corner.image + self.rows))
            second = self._moved(x2, SECOND, lanes // moves, lanes % moves)
            made = [np.asarray(part) for part in program(numbers, first, second)]
            weights = self.plan.weights[:, lanes % moves]
            shape = self.rows, *weights.shape
            return [np.einsum("ial,al->il", part.reshape(shape), weights) for part in made]

        found: Sums = []
        with Bar(None, len(corners), "tile", "kernel") as bar:
            for (i, lane), tile in side_by_side(compute, corners):
                found = found or [np.zeros((n, m)) for _ in tile]
                images = np.arange(lane, min(lane + self.lanes, m * moves)) // moves
                for matrix, part in zip(found, tile, strict=True):
                    for k, image in enumerate(images):
                        matrix[i : i + self.rows, image] += part[: n - i, k]
                bar.update(1)
        return [np.triu(part) + np.triu(part, 1).T for part in found] if one_half else found

    def diagonal(self, x: Array) -> Sums:
        """The sums of every image with itself, (n,)."""
        n, (first, second) = len(x), (len(moves) for moves in self.moves)
        program, numbers = self._program(_sums_alone)

        def compute(start: int) -> Sums:
            images = np.arange(start, start + self.alone)
            sides = []
            for side, count in ((FIRST, first), (SECOND, second)):
                moved = self._moved(x, side, images)
                sides.append(
                    jax.tree.map(lambda part, k=count: part.reshape(-1, k, *part.shape[1:]), moved)
                )
            made = [np.asarray(part) for part in program(numbers, *sides)]
            return [np.einsum("iab,ab->i", part, self.plan.weights) for part in made]

        parts = [tile for _, tile in side_by_side(compute, range(0, n, self.alone))]
        return [np.concatenate(column)[:n] for column in zip(*parts, strict=True)]

    def _program(self, function: Callable[..., Out]) -> tuple[Callable[..., Out], np.ndarray]:
        """The program of a function, and the hyperparameters that it takes."""
        structure, varying = dissect(self.plan.before)
        numbers = np.asarray([float(number) for number in varying])
        return compiled(function, structure, *self.settings, options=OPTIONS), numbers

    def _lanes_from(self, lane: int, m: int) -> np.ndarray:
        """As many lanes as a tile has; the last one fills up."""
        last = m * len(self.moves[SECOND]) - 1
        return np.minimum(np.arange(lane, lane + self.lanes), last)

    def _moved(
        self, x: Array, side: int, images: np.ndarray, moves: np.ndarray | None = None
    ) -> Inputs:
        """These images in their frames, each with all moves, or with one move each; the last image fills up."""
        plan = self.plan
        some = np.asarray(x)[np.minimum(images, len(x) - 1)]
        around = [(0, more - n) for n, more in zip(plan.shape, plan.framed, strict=True)]

        def of(some: np.ndarray) -> np.ndarray:
            """Features (count, positions, channels)."""
            framed = np.pad(some, [(0, 0), *around, (0, 0)])
            flat = framed.reshape(len(some), -1, some.shape[-1])
            if moves is None:
                flat = flat[:, self.moves[side]]
            else:
                flat = np.take_along_axis(flat, self.moves[side][moves][..., None], axis=1)
            return flat.reshape(-1, *plan.framed, some.shape[-1])

        if plan.framed == plan.shape:
            return Inputs(of(some))
        inside = np.ones((len(some), *plan.shape, 1))
        return Inputs(of(some), of(inside)[..., 0])


def _sums_alone(
    structure: Structure, needs: Needs, all_live: bool, varying: Array, one: Inputs, two: Inputs
) -> Out:
    """The sums of every image with itself, (n, first moves, second moves)."""
    found: Out = lax.map(lambda both: _sums(structure, needs, all_live, varying, *both), (one, two))
    return found


def _sums(
    structure: Structure, needs: Needs, all_live: bool, varying: Array, one: Inputs, two: Inputs
) -> Out:
    def own(first: Inputs, second: Inputs) -> Inside:
        if first.inside is None:
            return Inside(None, None)
        inside = jnp.moveaxis(first.inside, 0, -1), jnp.moveaxis(second.inside, 0, -1)
        return Inside(inside[FIRST][..., None], inside[SECOND][..., None, :])

    def end(state: State, num: Float64) -> Out:
        state = without_frame(state)
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


def needs_lengths(plan: Plan) -> bool:
    """Whether the layers behind the pooling need the kernel of every image with itself."""
    return not is_readout(Serial(layers_of(plan.behind)[1:]))


def matrix_behind(
    plan: Plan, needs: Needs, sums: Sums, K1: np.ndarray | None, K2: np.ndarray | None
) -> Kernels:
    """The kernels of all pairs, (n, m), from these sums; and from those of K of every image with itself, (n,) and (m,),
    where they are needed."""
    if K1 is None or K2 is None:
        return _behind_readout(plan, sums)
    ones = (1,) * len(plan.shape)
    notes = [(plan.factor * K.reshape(-1, *ones),) for K in (K1, K2)]
    return _behind(plan, needs, sums, Reading(*notes))


def diagonal_behind(plan: Plan, needs: Needs, sums: Sums) -> Kernels:
    """The kernels of every image with itself, (n,)."""
    return (
        _behind(plan, needs, sums, Noting()) if needs_lengths(plan) else _behind_readout(plan, sums)
    )


def _behind_readout(plan: Plan, sums: Sums) -> Kernels:
    K, *theta = (plan.factor * x for x in sums)
    found = read_out(Serial(layers_of(plan.behind)[1:]), Kernels(K, sum(theta[1:], theta[0])))
    assert found is not None
    return found


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
