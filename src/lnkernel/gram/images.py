"""Gram matrices of images and sequences.

A pair of inputs is a block of pairs of positions (`lnkernel.calculus.positions`), and the same rules run on it. What a
single input tells of itself is found first, once for each (`evaluate.float64.own`). Then come the pairs, tile by tile:
so many at a time that a tile takes a known amount of memory, whatever the number of inputs and the size of the images.

There are four ways. Few pairs are computed by NumPy, for which nothing is compiled. Where only equal positions are
compared, and an activation takes little work, one program does all (`rows`); so it does where all positions are pooled
behind convolutions of stride 1 (`offsets`). Everything else goes layer by layer (`stages`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.shapes import largest_shape
from lnkernel.calculus.positions import Positions
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, State
from lnkernel.evaluate.float64 import namespace, pixels
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.deep import run
from lnkernel.evaluate.float64.own import Notes, Noting, Reading
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram import offsets, rows, stages
from lnkernel.gram.compiled import compiled
from lnkernel.gram.frames import Plan, plan_for
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.network import Needs, Network, network
from lnkernel.gram.program import Program, network_of, select
from lnkernel.gram.sides import (
    Images,
    Side,
    from_here,
    next_power,
    pairs_at_input,
    power_of_two,
    prepare,
    same_at_input,
    shape_of,
    with_plain_lengths,
    without_zeros,
)
from lnkernel.progress import Bar
from lnkernel.types import Array

AT_ONCE = 1 << 18  # pairs of positions in a tile: a few megabytes for each number of a pair
MOST_WORK = 1 << 12  # where each takes an integration
MOST = 1 << 17  # pairs of positions that NumPy computes sooner than a program is compiled
NUMBERS = 24  # of a pair of positions that are in memory at a time

Out = tuple[Array, ...]
NOTHING: Out = ()
Tile = tuple[int, int, list[np.ndarray]]  # with its corner


def own(net: Network, images: Images) -> tuple[Kernels, Notes]:
    """The kernels of every input with itself, (n,), and what pairs need to know of it."""
    record = Noting()
    start = same_at_input(net.needs, images, record)
    kernels = _through(net, start, equal=not net.needs.all_pairs)
    n = len(images.raw.length)
    xp = namespace.of(images.raw.length)
    return Kernels(*(xp.broadcast_to(kernel, (n,)) for kernel in kernels)), record.packed


def pairs(net: Network, one: Side, two: Side) -> Kernels:
    """The kernels of all pairs of inputs, (n, m)."""
    at = _positions(net.needs, one, two)
    kernels = _through(net, pairs_at_input(net.needs, one.images, two.images, at))
    xp = namespace.of(one.images.raw.length, two.images.raw.length)
    return Kernels(*(xp.broadcast_to(kernel, (one.size, two.size)) for kernel in kernels))


def _positions(needs: Needs, one: Side, two: Side) -> Positions:
    return Positions(shape_of(one.images), needs.all_pairs, Reading(one.notes, two.notes))


def _through(net: Network, start: State, equal: bool = False) -> Kernels:
    settings = net.needs.range, False, equal, net.needs.sharp_lengths, net.needs.delicate
    if namespace.of(start.total.first.q.high) is np:
        eager = EagerFloat64(*settings)
        kernels = rule(net.arch, start, eager).kernels(eager)
    else:
        num = Float64(*settings)
        kernels = run(net.arch, start, num, net.source).kernels(num)
    return Kernels(*map(plain, kernels))


# ---------------------------------------------------------------- inside a user's own jit, grad or vmap


def traced_matrix(arch: Node, x: Array, x2: Array, which: tuple[str, ...]) -> Out:
    """These kernels of all pairs of x and x2, (n, m) each, at once: in memory are blocks of all pairs."""
    net = network(arch)
    one, two = (prepare(net.needs, jnp.asarray(side)) for side in (x, x2))
    notes = [own(net, side)[1] if net.needs.all_pairs else () for side in (one, two)]
    return select(pairs(net, Side(one, notes[0]), Side(two, notes[1])), which)


def traced_diagonal(arch: Node, x: Array, which: tuple[str, ...]) -> Out:
    """These kernels of every input with itself, (n,) each."""
    net = network(arch)
    return select(own(net, prepare(net.needs, jnp.asarray(x)))[0], which)


# ---------------------------------------------------------------- matrices of concrete data


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x (n, positions, channels); and their diagonals."""
    n, work = len(x), _Work(program, x, x, len(x) * (len(x) + 1) // 2)
    if work.plan is not None:
        return _symmetric_by_offsets(work, work.plan, x)
    side, ends = work.side(x)
    out = tuple(np.empty((n, n)) for _ in program.which)
    way = work.tiles_by_rows(x, x, True) if work.by_rows else work.tiles(side, side, True)
    for i, j, tiles in way:
        for matrix, tile in zip(out, tiles, strict=True):
            some, others = slice(i, i + work.rows), slice(j, j + work.columns)
            tile = tile[: n - i, : n - j]
            matrix[some, others] = tile
            matrix[others, some] = tile.T
            if i == j:
                corner = tile[:, : len(tile)]
                matrix[some, some] = 0.5 * (corner + corner.T)
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both, or nothing where all kernels are finite, and
    nobody has to look for the input whose kernel is not."""
    work = _Work(program, x, x2, len(x) * len(x2))
    if work.plan is not None:
        return _rectangular_by_offsets(work, work.plan, x, x2)
    if work.by_rows and len(x2) < min(len(x), rows.LANES):
        turned, *both = rectangular(program, x2, x)
        return tuple(np.ascontiguousarray(matrix.T) for matrix in turned), both[1], both[0]
    ends, ends2 = NOTHING, NOTHING
    if work.by_rows:
        found = work.tiles_by_rows(x, x2)
    else:
        one, ends = work.side(x)
        two, ends2 = work.side(x2)
        found = work.tiles(one, two)
    out = tuple(np.empty((len(x), len(x2))) for _ in program.which)
    for i, j, tiles in found:
        for matrix, tile in zip(out, tiles, strict=True):
            part = matrix[i : i + work.rows, j : j + work.columns]
            part[:] = tile[: part.shape[0], : part.shape[1]]
    if work.by_rows and not all(np.isfinite(matrix).all() for matrix in out):
        ends, ends2 = work.side(x)[1], work.side(x2)[1]
    return out, ends, ends2


def diagonal(program: Program, x: Array) -> Out:
    """The kernels of every input with itself."""
    work = _Work(program, x, x, len(x))
    if work.plan is None:
        return work.side(x)[1]
    sums = work.by_offsets(work.plan, x, x).diagonal(x)
    return select(offsets.diagonal_behind(work.plan, program.needs, sums), program.which)


def _symmetric_by_offsets(work: _Work, plan: Plan, x: Array) -> tuple[Out, Out]:
    needs, which = work.program.needs, work.program.which
    sums = work.by_offsets(plan, x, x).matrix(x, x, one_half=True)
    alone = [np.diagonal(part) for part in sums]
    ends = select(offsets.diagonal_behind(plan, needs, alone), which)
    K = alone[0] if offsets.needs_lengths(plan) else None
    found = select(offsets.matrix_behind(plan, needs, sums, K, K), which)
    out = [np.asarray(0.5 * (matrix + matrix.T)) for matrix in found]
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return tuple(out), ends


def _rectangular_by_offsets(work: _Work, plan: Plan, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    needs, which = work.program.needs, work.program.which
    both = work.by_offsets(plan, x, x2)
    sums = both.matrix(x, x2)
    needed = offsets.needs_lengths(plan)
    if not needed:
        found = select(offsets.matrix_behind(plan, needs, sums, None, None), which)
        if all(np.isfinite(matrix).all() for matrix in found):
            return found, NOTHING, NOTHING
    alone = [both.diagonal(some) for some in (x, x2)]
    ends, ends2 = (select(offsets.diagonal_behind(plan, needs, own), which) for own in alone)
    if needed:
        made = offsets.matrix_behind(plan, needs, sums, *(own[0] for own in alone))
        found = select(made, which)
    return found, ends, ends2


def demand_memory_of_a_pair(arch: Node, needs: Needs, shape: tuple[int, ...]) -> None:
    """Refuse a pair of inputs that does not fit into memory, before the inputs are looked at."""
    block = pixels.count(largest_shape(arch, shape), needs.all_pairs)
    if block > MOST:
        plan = plan_for(arch, needs, shape) if needs.all_pairs else None
        _demand_memory(block if plan is None else plan.at_a_time, shape)


def _demand_memory(at_a_time: int, shape: tuple[int, ...]) -> None:
    demand_memory(
        at_a_time,
        NUMBERS,
        f"A pair of inputs of {math.prod(shape)} positions",
        m=1,
        remedy="Take inputs of fewer positions",
    )


class _Work:
    """How the pairs of a matrix are computed: by NumPy or by programs, and how many at a time."""

    def __init__(self, program: Program, x: Array, x2: Array, count: int):
        self.program = program
        shape = x.shape[1:-1]
        needs = program.needs
        largest = largest_shape(network_of(program).arch, shape)
        self.block = pixels.count(largest, needs.all_pairs)
        self.by_numpy = count * self.block <= MOST and not needs.compiler
        self.by_rows = not (self.by_numpy or needs.all_pairs) and rows.suits(needs)
        self.plan = None
        if needs.all_pairs and not self.by_numpy:
            self.plan = plan_for(network_of(program).arch, needs, shape)
        at_once = AT_ONCE if not needs.compiler else MOST_WORK
        if self.by_rows:
            at_once = rows.IN_A_CALL
        fit = max(1, at_once // self.block)
        most = rows.LANES if self.by_rows else math.isqrt(fit)
        # inputs on each side of a tile, by powers of two, so that few programs are compiled
        self.columns = min(power_of_two(most), next_power(len(x2)))
        self.rows = min(power_of_two(max(1, fit // self.columns)), next_power(len(x)))
        if x2 is x:  # the corners of the tiles on the diagonal are squares
            self.rows = min(self.rows, self.columns)
        _demand_memory(self.block if self.plan is None else self.plan.at_a_time, shape)

    def by_offsets(self, plan: Plan, x: Array, x2: Array) -> offsets.Work:
        """The work for a pooled network."""
        return offsets.Work(plan, self.program.needs, self.program.all_live, len(x), len(x2))

    def images(self, x: Array) -> Images:
        """The inputs as the network takes them."""
        with np.errstate(all="ignore"):
            images = prepare(self.program.needs, np.asarray(x))
        return without_zeros(images) if self.program.all_live else images

    def side(self, x: Array) -> tuple[Side, Out]:
        """The inputs, and their kernels with themselves."""
        n, found = len(x), []
        images = self.images(x)
        at_once = max(1, AT_ONCE // self.block)
        for start in range(0, n, at_once):
            some = np.arange(start, min(start + at_once, n))
            values, notes = self._alone(np.resize(some, min(at_once, n)), images)
            if start == 0:  # the rest is noted of all inputs, and twice while it is put together
                of_one = sum(math.prod(note.shape[1:]) for note in notes)
                demand_memory(
                    n,
                    2,
                    f"What is kept of {n} single inputs, such as attention,",
                    m=of_one,
                    remedy="Take fewer inputs",
                )
            found.append(
                [[np.asarray(part)[: len(some)] for part in parts] for parts in (values, notes)]
            )
        values, notes = (
            tuple(np.concatenate(column) for column in zip(*parts, strict=True))
            for parts in zip(*found, strict=True)
        )
        return Side(images, notes), values

    def tiles(self, one: Side, two: Side, one_half: bool = False) -> Iterator[Tile]:
        """The tiles of the matrix with their corners; of a symmetric one only those above the diagonal."""

        def compute(corner: tuple[int, int]) -> Out:
            first = from_here(one, corner[0], self.rows)
            return self._tile(first, from_here(two, corner[1], self.columns))

        corners = self._corners(one.size, two.size, one_half)
        return self._shown(rows.one_by_one(compute, corners), len(corners))

    def tiles_by_rows(self, x: Array, x2: Array, one_half: bool = False) -> Iterator[Tile]:
        """The same by programs that take the raw inputs."""
        one, two = np.asarray(x), np.asarray(x2)

        def compute(corner: tuple[int, int]) -> Out:
            first, second = (
                rows.Inputs(from_here(side, start, size))
                for side, start, size in zip(
                    (one, two), corner, (self.rows, self.columns), strict=True
                )
            )
            return rows.kernels(self.program, first, second)

        corners = self._corners(len(one), len(two), one_half)
        return self._shown(rows.side_by_side(compute, corners), len(corners))

    def _corners(self, n: int, m: int, one_half: bool) -> list[tuple[int, int]]:
        return [
            (i, j)
            for i in range(0, n, self.rows)
            for j in range(i if one_half else 0, m, self.columns)
            if not (one_half and i == j and self.columns == 1)  # the diagonal is known
        ]

    def _shown(self, found: Iterator[tuple[tuple[int, int], Out]], count: int) -> Iterator[Tile]:
        with Bar(False if self.by_numpy else None, count, "tile", "kernel") as bar:
            for (i, j), values in found:
                yield i, j, [np.asarray(value) for value in values]
                bar.update(1)

    def _tile(self, one: Side, two: Side) -> Out:
        if self.by_numpy:
            with np.errstate(all="ignore"):
                return select(pairs(network_of(self.program), one, two), self.program.which)
        needs, which = self.program.needs, self.program.which
        start = compiled(_start, needs, options=stages.OPTIONS)(one, two)
        end = stages.run(network_of(self.program).arch, start, needs)
        made = stages.finish(end, needs, which)
        return tuple(np.broadcast_to(one_kind, (one.size, two.size)) for one_kind in made)

    def _alone(self, index: np.ndarray, images: Images) -> tuple[Out, Notes]:
        some: Images = jax.tree.map(lambda part: part[index], images)
        if self.by_numpy or not self.program.needs.all_pairs:  # few numbers, for single inputs
            with np.errstate(all="ignore"):
                kernels, notes = own(network_of(self.program), some)
            return select(kernels, self.program.which), notes
        needs, which = self.program.needs, self.program.which
        start = compiled(_start_alone, needs, options=stages.OPTIONS)(some)
        end = stages.run(network_of(self.program).arch, start, needs)
        made = stages.finish(end, needs, which)
        return tuple(np.broadcast_to(one, index.shape) for one in made), end.notes


def _start(needs: Needs, one: Side, two: Side) -> stages.Carried:
    """All pairs of inputs, before the first layer."""
    at = _positions(needs, one, two)
    first, second = (_with_lengths(needs, side.images) for side in (one, two))
    state = pairs_at_input(needs, first, second, at)
    return stages.pack(state, Reading(one.notes, two.notes))


def _start_alone(needs: Needs, images: Images) -> stages.Carried:
    """Every input with itself."""
    record = Noting()
    return stages.pack(same_at_input(needs, _with_lengths(needs, images), record), record)


def _with_lengths(needs: Needs, images: Images) -> Images:
    """The images with squared lengths as the programs take them."""
    return with_plain_lengths(images) if stages.has_plain_lengths(needs) else images
