r"""Pooled kernels of images, by the offsets between positions.

A convolution of stride 1 moves both positions of a pair $(p, p')$ alike: their offset $p' - p$ stays, up to a pooling.
So the kernel of two images at the pairs of one offset is that of one image and of the other, moved, at equal positions,

$$\sum_{pp'} K_{pp'}(x, x') = \sum_\delta \sum_p K_{pp}(x, S_\delta x'), \quad (S_\delta x')_p = x'_{p + \delta},$$

and the offsets are spread over both images: with $x'$ moved along the last axes, and $x$ along the others, every offset
comes once. The first image is taken in one of its places at a time, with all places of the second side by side
(`rows`): so few of these pairs are computed at a time, and stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

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
from lnkernel.gram.rows import IN_A_CALL, LANES, OPTIONS, Inputs, Out, by_rows, side_by_side
from lnkernel.gram.sides import next_power, power_of_two
from lnkernel.gram.structure import Structure, dissect
from lnkernel.progress import Bar
from lnkernel.types import Array

Corner = tuple[int, int]


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
        """The sums of all pairs, (n, m); computed for one half of them, if both sides are the same."""
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
        """The sums of every image with itself, (n,)."""
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
