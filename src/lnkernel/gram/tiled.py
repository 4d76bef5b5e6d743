"""Gram matrices of concrete data, tile by tile, at full speed.

Tiles are computed in batches, each batch as one fused loop over all its pairs (`pairs.quick`).
Pairs that this is not exact enough for, nearly parallel or antipodal ones, come out of it
as NaN and are computed once more, with all care. A symmetric matrix costs half of its tiles.
Memory is the result and two batches. All batches have one shape, so a matrix of another size
compiles nothing, and nor do inputs of similar dimension: of many coordinates the program reads
only the products. Few delicate pairs are computed by NumPy, for which nothing is compiled.

The matrix itself is NumPy's: the pages of a large fresh matrix cost as much time as its
numbers, unless the system hands them out in large pieces, as it does to NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.evaluate.float64.per_input import OutOfStepError
from lnkernel.gram import eager, pairs
from lnkernel.gram.by_angle import by_angle
from lnkernel.gram.compiled import compiled
from lnkernel.gram.network import Needs
from lnkernel.gram.packed import Packed, pack, unpack
from lnkernel.gram.prepared import Prepared, diagonal_of, prepare
from lnkernel.gram.program import Program, network_from, select
from lnkernel.gram.structure import Structure
from lnkernel.types import Array

Out = tuple[Array, ...]
Pairs = tuple[np.ndarray, np.ndarray]  # their rows and columns
Corner = tuple[int, int]  # row and column of a tile's first pair


class Tiling(NamedTuple):
    """Rows and columns of a tile, and how many tiles at most are computed at once."""

    size: int
    batch: int


# Sizes are multiples of 4 (of 8 where that is the length of a vector register: what is left of a row is computed
# number by number), but not powers of two, at which the rows of a tile would fall on the same few lines of the cache.
SMALL = Tiling(112, 20)
CHEAP = Tiling(168, 39)  # where a pair costs so little that to start a batch counts
LARGE = Tiling(504, 1)  # where many coordinates have to be read for each tile
MANY = 32  # coordinates
MANY_LEFT = 3  # batches, during which other work can be done
CHUNKS = (64, 1024, 16384)  # delicate pairs are computed so many at a time
DEAR_CHUNKS = (16, 128)  # where a pair takes milliseconds, so that none is computed in vain
MOST_COORDINATES = 1 << 22  # of a chunk
FEW = 1024  # pairs; up to so many all of them count as delicate, and only one program is compiled


def _cores() -> int:
    """The cores that this process may use, which a scheduler may have chosen among all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


# Kept: threads start once, not with every matrix. One computes a batch, by XLA's threads on all cores, while others
# copy what is there; with one for each core the copying, which is bound by memory, never waits for a thread.
THREADS = ThreadPoolExecutor(_cores(), "lnkernel")


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    n, quick = len(x), by_angle(program)
    size, batch = _tiling(x, quick is not program)
    one = prepare(quick, x, size)
    out = tuple(np.empty((n, n)) for _ in program.which)

    def write(tile: Tile) -> Pairs | None:
        (i, j), delicate = tile.corner, _delicate_pairs(tile, one_half=True)
        for matrix, values in zip(out, tile.values, strict=True):
            inside = values[: n - i, : n - j]
            if i == j:  # both halves of this tile were computed
                corner = np.add(inside, inside.T, out=matrix[i : i + size, i : i + size])
                corner *= 0.5
            else:
                matrix[i : i + size, j : j + size] = inside
                matrix[j : j + size, i : i + size] = inside.T
        return delicate

    few = n * (n - 1) // 2 <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(i, n, size)]
    delicate = Tiles(quick, one, one, [] if few else corners, batch).write(write)
    ends = diagonal_of(program, one.points)  # while tiles are computed
    for found in [[np.triu_indices(n, 1)]] if few else delicate:
        for a, b, values in _with_care(quick, one.points, one.points, found, (n, n)):
            for matrix, value in zip(out, values, strict=True):
                matrix[a, b] = value
                matrix[b, a] = value
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    n, m, quick = len(x), len(x2), by_angle(program)
    size, batch = _tiling(x, quick is not program)
    one, two = prepare(quick, x, size, (0,)), prepare(quick, x2, size, (1,))
    out = tuple(np.empty((n, m)) for _ in program.which)

    def write(tile: Tile) -> Pairs | None:
        i, j = tile.corner
        for matrix, values in zip(out, tile.values, strict=True):
            matrix[i : i + size, j : j + size] = values[: n - i, : m - j]
        return _delicate_pairs(tile, one_half=False)

    few = n * m <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(0, m, size)]
    delicate = Tiles(quick, one, two, [] if few else corners, batch).write(write)
    ends, ends2 = (diagonal_of(program, side.points) for side in (one, two))
    rows, columns = np.indices((n, m) if few else (0, 0)).reshape(2, -1)
    for found in [[(rows, columns)]] if few else delicate:
        for a, b, values in _with_care(quick, one.points, two.points, found, (n, m)):
            for matrix, value in zip(out, values, strict=True):
                matrix[a, b] = value
    return out, ends, ends2


class Tile(NamedTuple):
    """A tile, which may reach over the edge of the matrix."""

    corner: Corner
    values: tuple[np.ndarray, ...]  # for each kernel (size, size), NaN for delicate pairs


class Tiles:
    """Computes the tiles with these corners and writes them, batch by batch.

    The first batch starts at once, for which the program is compiled if need be. The others, and all writing, wait for
    `write`, and are done by threads: one computes while another one copies.
    """

    def __init__(
        self, program: Program, one: Prepared, two: Prepared, corners: list[Corner], batch: int
    ):
        self.size, self.batch = one.rest.raw.live.shape[1], batch
        starts = range(0, len(corners), self.batch)
        self.batches = [corners[k : k + self.batch] for k in starts]
        self.compute = partial(
            compiled(_batch, program.structure, program.needs, program.which, program.all_live),
            program.varying,
        )
        self.units, self.sides = (one.units, two.units), (one.sides[0], two.sides[1])
        try:
            first = [self._start(some) for some in self.batches[:1]]
        except OutOfStepError:  # a layer from outside that branches on its numbers
            self.sides = pack((one.rest, None)), pack((two.rest, None))
            first = [self._start(some) for some in self.batches[:1]]
        self.started = first + [None] * (len(self.batches) - len(first))

    def write(self, write: Callable[[Tile], Pairs | None]) -> Iterator[list[Pairs]]:
        """Lets `write` have all tiles, from now on; and the delicate pairs that it finds in them.

        It does all with one tile before it turns to the next, since a tile fits into a core's cache.
        """

        def finish(some: list[Corner], values: Out | None) -> list[Pairs]:
            with jax.enable_x64(True):  # each thread has settings of its own
                arrays = [np.asarray(v) for v in (values or self._start(some))]
            tiles = map(Tile, some, zip(*arrays, strict=True))
            return [pairs for pairs in map(write, tiles) if pairs is not None]

        parts = zip(self.batches, self.started, strict=True)
        return _collect([THREADS.submit(finish, *both) for both in parts])

    def _start(self, some: list[Corner]) -> Out:
        places = np.asarray(some + some[-1:] * (self.batch - len(some))).T // self.size
        units = [_at(*both) for both in zip(self.units, places, strict=True)]
        sides = [side.at(index) for side, index in zip(self.sides, places, strict=True)]
        return self.compute(*sides, None if None in units else _cosines(*units))


def _collect(parts: list[Future[list[Pairs]]]) -> Iterator[list[Pairs]]:
    """What these give, in two pieces: the first that there is, to be worked on while the others are computed, and
    the rest. Each piece takes the careful rules once, which for few pairs is all that counts; and while Python works
    on it, threads that copy have to wait, so that there is only one piece if there is little to compute."""
    found: list[Pairs] = []
    early = False
    try:
        for number, part in enumerate(parts, 1):
            found += part.result()
            if found and not early and len(parts) - number >= MANY_LEFT:
                early = True
                yield found
                found = []
        yield found
    finally:
        for part in parts:
            part.cancel()  # the rest, after an error


def _at(blocks: pairs.Points | None, index: np.ndarray) -> pairs.Points | None:
    """The blocks with these numbers."""
    return jax.tree.map(lambda part: part[index], blocks)


@jax.jit
def _cosines(units: pairs.Points, units2: pairs.Points) -> pairs.Points:
    """A small program of its own, the only one for the user's dimension."""
    return jax.tree.map(lambda x, y: x @ y.transpose(0, 2, 1), units, units2)


def _batch(
    structure: Structure,
    needs: Needs,
    which: tuple[str, ...],
    all_live: bool,
    varying: Array,
    first: Packed,
    second: Packed,
    cosines: pairs.Points | None,
) -> Out:
    """A batch of tiles, (batch, size, size); NaN for delicate pairs."""
    net = network_from(structure, needs, varying)

    def tile(first: Packed, second: Packed, cosines: pairs.Points | None) -> Out:
        (one, record), (two, record2) = unpack(first), unpack(second)
        if record is None or record2 is None:
            values, delicate = pairs.quick(net, one, two, all_live, cosines)
        else:
            num = pairs.recalling(net, (record, record2))
            values, delicate = pairs.quick(net, one, two, all_live, cosines, num)
            num.demand_finished()
        size = one.raw.live.shape[0]
        full = (jnp.broadcast_to(v, (size, size)) for v in select(values, which))
        return tuple(jnp.where(delicate, jnp.nan, v) for v in full)

    return jax.vmap(tile)(first, second, cosines)


def _delicate_pairs(tile: Tile, one_half: bool) -> Pairs | None:
    """Rows and columns of the delicate pairs, if there are any; of a symmetric matrix only above its diagonal."""
    (row, column), values = tile.corner, tile.values[0]
    if not np.isnan(values.max()):
        return None
    delicate = np.isnan(values)
    if one_half and row == column:
        delicate = np.triu(delicate, 1)
    a, b = np.nonzero(delicate)
    return (row + a, column + b) if len(a) else None


def _with_care(
    program: Program,
    points: pairs.Points,
    points2: pairs.Points,
    delicate: list[Pairs],
    shape: tuple[int, int],
) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
    """Rows, columns and values of the delicate pairs, in chunks."""
    if not delicate:
        return
    rows, columns = (np.concatenate(index) for index in zip(*delicate, strict=True))
    inside = (rows < shape[0]) & (columns < shape[1])
    rows, columns = rows[inside], columns[inside]
    if not len(rows):
        return
    if eager.suits_delicate(program, len(rows)):
        values = eager.carefully(program, points, points2, rows, columns)
        yield rows, columns, [np.asarray(value) for value in values]
        return
    most = MOST_COORDINATES // points.raw.unit.shape[1]
    chunks = DEAR_CHUNKS if program.needs.compiler else CHUNKS
    allowed = [c for c in chunks if c <= most] or chunks[:1]
    chunk = next((c for c in allowed if c >= len(rows)), allowed[-1])
    static = program.structure, program.needs, program.which, program.all_live
    compute = compiled(_careful, *static)

    def some(k: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        a, b = rows[k : k + chunk], columns[k : k + chunk]
        sides = pairs.take(points, np.resize(a, chunk)), pairs.take(points2, np.resize(b, chunk))
        with jax.enable_x64(True):  # each thread has settings of its own
            found = compute(program.varying, *sides)
            return a, b, [np.asarray(value)[: len(a)] for value in found]

    # pairs that are integrated keep one core busy each, so that there are threads for all of them
    yield from THREADS.map(some, range(0, len(rows), chunk))


def _careful(
    structure: Structure,
    needs: Needs,
    which: tuple[str, ...],
    all_live: bool,
    varying: Array,
    one: pairs.Points,
    two: pairs.Points,
) -> Out:
    """Some pairs, with all care."""
    net = network_from(structure, needs, varying)
    values = select(pairs.careful(net, one, two, all_live), which)
    return tuple(jnp.broadcast_to(v, one.raw.live.shape) for v in values)


def _tiling(x: Array, cheap: bool) -> Tiling:
    if x.shape[1] > MANY:
        return LARGE
    return CHEAP if cheap else SMALL
