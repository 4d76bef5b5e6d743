"""Gram matrices of images and sequences.

A pair of inputs is a block of pairs of positions (`lnkernel.calculus.positions`), and the same rules run on it. What a
single input tells of itself is found first, once for each (`evaluate.float64.own`). Then come the pairs, tile by tile:
so many at a time that a tile takes a known amount of memory, whatever the number of inputs and the size of the images.
Few pairs are computed by NumPy, for which nothing is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from lnkernel.arch import Node
from lnkernel.calculus.positions import Positions
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, State, at_input
from lnkernel.evaluate.float64 import namespace, pixels
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.deep import run
from lnkernel.evaluate.float64.own import Notes, Noting, Reading
from lnkernel.evaluate.float64.pixels import Pixels
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram import stages
from lnkernel.gram.compiled import compiled
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.network import Needs, Network, network
from lnkernel.gram.program import Program, network_of, select
from lnkernel.progress import Bar
from lnkernel.types import Array

AT_ONCE = 1 << 18  # pairs of positions in a tile: a few megabytes for each number of a pair
MOST_WORK = 1 << 12  # where each takes an integration
MOST = 1 << 17  # pairs of positions that NumPy computes sooner than a program is compiled
NUMBERS = 24  # of a pair of positions that are in memory at a time

Out = tuple[Array, ...]


class Images(NamedTuple):
    """Inputs as they are, and less the means of their channels where a LayerNorm acts on the raw input."""

    raw: Pixels
    centred: Pixels | None


class Side(NamedTuple):
    """Inputs with what they tell of themselves."""

    images: Images
    notes: Notes


def prepare(needs: Needs, x: Array) -> Images:
    """The inputs (n, positions, channels) as a network with these needs takes them."""
    centred = pixels.prepare(x, True, needs.range) if needs.centred_input else None
    return Images(pixels.prepare(x, False, needs.range), centred)


def without_zeros(images: Images) -> Images:
    """The same, where no position is known to be the zero vector."""
    return images._replace(raw=images.raw._replace(live=None))


def own(net: Network, images: Images) -> tuple[Kernels, Notes]:
    """The kernels of every input with itself, (n,), and what pairs need to know of it."""
    record = Noting()
    start = _same_at_input(net.needs, images, record)
    kernels = _through(net, start, equal=not net.needs.all_pairs)
    n = len(images.raw.length)
    xp = namespace.of(images.raw.length)
    return Kernels(*(xp.broadcast_to(kernel, (n,)) for kernel in kernels)), record.packed


def pairs(net: Network, one: Side, two: Side) -> Kernels:
    """The kernels of all pairs of inputs, (n, m)."""
    record = Reading(one.notes, two.notes)
    kernels = _through(net, _pairs_at_input(net.needs, one.images, two.images, record))
    shape = len(one.images.raw.length), len(two.images.raw.length)
    xp = namespace.of(one.images.raw.length, two.images.raw.length)
    return Kernels(*(xp.broadcast_to(kernel, shape) for kernel in kernels))


def _same_at_input(needs: Needs, images: Images, record: Noting) -> State:
    at = Positions(_shape(images), needs.all_pairs, record)
    compare = partial(pixels.of_same, at=at, with_difference=needs.difference)
    total = compare(images.raw)
    return at_input(total, total if images.centred is None else compare(images.centred), at)


def _pairs_at_input(needs: Needs, one: Images, two: Images, record: Reading) -> State:
    at = Positions(_shape(one), needs.all_pairs, record)
    compare = partial(pixels.of_pairs, at=at, with_difference=needs.difference)
    total = centred = compare(one.raw, two.raw)
    if one.centred is not None and two.centred is not None:
        centred = compare(one.centred, two.centred)
    return at_input(total, centred, at)


def _through(net: Network, start: State, equal: bool = False) -> Kernels:
    settings = net.needs.range, False, equal, net.needs.sharp_lengths, net.needs.delicate
    if namespace.of(start.total.first.q.high) is np:
        eager = EagerFloat64(*settings)
        kernels = rule(net.arch, start, eager).kernels(eager)
    else:
        num = Float64(*settings)
        kernels = run(net.arch, start, num, net.source).kernels(num)
    return Kernels(*map(plain, kernels))


def _shape(images: Images) -> tuple[int, ...]:
    return tuple(images.raw.length.shape[1:])


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
    n, work = len(x), _Work(program, x, len(x) * (len(x) + 1) // 2)
    side, ends = work.side(x)
    out = tuple(np.empty((n, n)) for _ in program.which)
    for i, j, tiles in work.tiles(side, side, one_half=True):
        for matrix, tile in zip(out, tiles, strict=True):
            rows, columns = slice(i, i + work.size), slice(j, j + work.size)
            part = matrix[rows, columns]
            tile = tile[: part.shape[0], : part.shape[1]]
            part[:] = 0.5 * (tile + tile.T) if i == j else tile
            if i != j:
                matrix[columns, rows] = tile.T
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    work = _Work(program, x, len(x) * len(x2))
    (one, ends), (two, ends2) = work.side(x), work.side(x2)
    out = tuple(np.empty((len(x), len(x2))) for _ in program.which)
    for i, j, tiles in work.tiles(one, two):
        for matrix, tile in zip(out, tiles, strict=True):
            part = matrix[i : i + work.size, j : j + work.size]
            part[:] = tile[: part.shape[0], : part.shape[1]]
    return out, ends, ends2


def diagonal(program: Program, x: Array) -> Out:
    """The kernels of every input with itself."""
    return _Work(program, x, len(x)).side(x)[1]


class _Work:
    """How the pairs of a matrix are computed: by NumPy or by programs, and how many at a time."""

    def __init__(self, program: Program, x: Array, count: int):
        self.program = program
        shape = x.shape[1:-1]
        self.block = pixels.count(shape, program.needs.all_pairs)
        demand_memory(self.block, NUMBERS, f"A pair of inputs of {math.prod(shape)} positions", m=1)
        self.by_numpy = count * self.block <= MOST and not program.needs.compiler
        # inputs on each side of a tile, by powers of two, so that few programs are compiled
        at_once = AT_ONCE if not program.needs.compiler else MOST_WORK
        fit = max(1, math.isqrt(at_once // self.block))
        self.size = min(1 << (fit.bit_length() - 1), 1 << (len(x) - 1).bit_length())

    def side(self, x: Array) -> tuple[Side, Out]:
        """The inputs, and their kernels with themselves."""
        n, found = len(x), []
        with np.errstate(all="ignore"):
            images = prepare(self.program.needs, np.asarray(x))
        images = without_zeros(images) if self.program.all_live else images
        at_once = max(1, AT_ONCE // self.block)
        for start in range(0, n, at_once):
            rows = np.arange(start, min(start + at_once, n))
            values, notes = self._alone(np.resize(rows, min(at_once, n)), images)
            found.append(
                [[np.asarray(part)[: len(rows)] for part in parts] for parts in (values, notes)]
            )
        values, notes = (
            tuple(np.concatenate(column) for column in zip(*parts, strict=True))
            for parts in zip(*found, strict=True)
        )
        return Side(images, notes), values

    def tiles(
        self, one: Side, two: Side, one_half: bool = False
    ) -> Iterator[tuple[int, int, list[np.ndarray]]]:
        """The tiles of the matrix with their corners; of a symmetric one only those above the diagonal."""
        n, m = (len(side.images.raw.length) for side in (one, two))
        corners = [
            (i, j)
            for i in range(0, n, self.size)
            for j in range(i if one_half else 0, m, self.size)
            if not (one_half and i == j and self.size == 1)  # the diagonal is known
        ]
        wanted = False if self.by_numpy else None
        with Bar(wanted, len(corners), "tile", "kernel") as bar:
            for i, j in corners:
                values = self._tile(_take(one, i, self.size, n), _take(two, j, self.size, m))
                yield i, j, [np.asarray(value) for value in values]
                bar.update(1)

    def _tile(self, one: Side, two: Side) -> Out:
        if self.by_numpy:
            with np.errstate(all="ignore"):
                return select(pairs(network_of(self.program), one, two), self.program.which)
        needs, which = self.program.needs, self.program.which
        start = compiled(_start, needs, options=stages.OPTIONS)(one, two)
        end = stages.run(network_of(self.program).arch, start, needs)
        shape = len(one.images.raw.length), len(two.images.raw.length)
        return tuple(np.broadcast_to(made, shape) for made in stages.finish(end, needs, which))

    def _alone(self, rows: np.ndarray, images: Images) -> tuple[Out, Notes]:
        some = _some(images, rows)
        if self.by_numpy or not self.program.needs.all_pairs:  # few numbers, for single inputs
            with np.errstate(all="ignore"):
                kernels, notes = own(network_of(self.program), some)
            return select(kernels, self.program.which), notes
        needs, which = self.program.needs, self.program.which
        start = compiled(_start_alone, needs, options=stages.OPTIONS)(some)
        end = stages.run(network_of(self.program).arch, start, needs)
        made = stages.finish(end, needs, which)
        return tuple(np.broadcast_to(one, rows.shape) for one in made), end.notes


def _take(side: Side, start: int, size: int, count: int) -> Side:
    """So many inputs from here on; the last one fills up."""
    rows = np.minimum(np.arange(start, start + size), count - 1)
    return Side(_some(side.images, rows), tuple(note[rows] for note in side.notes))


def _some(images: Images, rows: np.ndarray) -> Images:
    centred = images.centred and pixels.take(images.centred, rows)
    return Images(pixels.take(images.raw, rows), centred)


def _start(needs: Needs, one: Side, two: Side) -> stages.Carried:
    """All pairs of inputs, before the first layer."""
    record = Reading(one.notes, two.notes)
    return stages.pack(_pairs_at_input(needs, one.images, two.images, record), record)


def _start_alone(needs: Needs, images: Images) -> stages.Carried:
    """Every input with itself."""
    record = Noting()
    return stages.pack(_same_at_input(needs, images, record), record)
