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

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.evaluate.float64.per_input import OutOfStepError
from lnkernel.gram import eager, pairs
from lnkernel.gram.by_angle import quickest
from lnkernel.gram.careful import THREADS, by_program
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
SMALL = Tiling(112, 19)
CHEAP = Tiling(168, 39)  # where a pair costs so little that to start a batch counts
WIDE = Tiling(252, 18)  # where it costs still less, since no pair is delicate: to write it counts
LARGE = Tiling(504, 1)  # where many coordinates have to be read for each tile
MANY = 32  # coordinates
MANY_LEFT = 3  # batches, during which other work can be done
MANY_FOUND = 1024  # delicate pairs; fewer take as long as a single one
FEW = 1024  # pairs; up to so many all of them count as delicate, and only one program is compiled


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    n, quick = len(x), quickest(program)
    size, batch = _tiling(x, quick, quick.structure is not program.structure)
    one = prepare(quick, x, size)
    out = tuple(np.empty((n, n)) for _ in program.which)

    def write(tile: Tile) -> None:
        i, j = tile.corner
        for matrix, values in zip(out, tile.values, strict=True):
            inside = values[: n - i, : n - j]
            if i == j:  # both halves of this tile were computed
                corner = np.add(inside, inside.T, out=matrix[i : i + size, i : i + size])
                corner *= 0.5
            else:
                matrix[i : i + size, j : j + size] = inside
                matrix[j : j + size, i : i + size] = inside.T

    few = n * (n - 1) // 2 <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(i, n, size)]
    found = Tiles(quick, one, one, [] if few else corners, batch).write(write, one_half=True)
    ends = _diagonal(program, quick, one)  # while tiles are computed
    for delicate, written in [([np.triu_indices(n, 1)], [])] if few else found:
        for a, b, values in _with_care(quick, one.points, one.points, delicate, (n, n)):
            _wait_for(written)
            for matrix, value in zip(out, values, strict=True):
                matrix[a, b] = value
                matrix[b, a] = value
        _wait_for(written)
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    n, m, quick = len(x), len(x2), quickest(program)
    size, batch = _tiling(x, quick, quick.structure is not program.structure)
    one, two = prepare(quick, x, size, (0,)), prepare(quick, x2, size, (1,))
    out = tuple(np.empty((n, m)) for _ in program.which)

    def write(tile: Tile) -> None:
        i, j = tile.corner
        for matrix, values in zip(out, tile.values, strict=True):
            matrix[i : i + size, j : j + size] = values[: n - i, : m - j]

    few = n * m <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(0, m, size)]
    found = Tiles(quick, one, two, [] if few else corners, batch).write(write, one_half=False)
    ends, ends2 = (_diagonal(program, quick, side) for side in (one, two))
    rows, columns = np.indices((n, m) if few else (0, 0)).reshape(2, -1)
    for delicate, written in [([(rows, columns)], [])] if few else found:
        for a, b, values in _with_care(quick, one.points, two.points, delicate, (n, m)):
            _wait_for(written)
            for matrix, value in zip(out, values, strict=True):
                matrix[a, b] = value
        _wait_for(written)
    return out, ends, ends2


def _diagonal(program: Program, quick: Program, side: Prepared) -> Out:
    """The kernels of every point with itself: by the rules of all layers, also where pairs are a function of the angle,
    and with the digits that pairs have."""
    by_angle = quick.structure is not program.structure
    return diagonal_of(program if by_angle else quick, side.points, side.of)


class Tile(NamedTuple):
    """A tile, which may reach over the edge of the matrix."""

    corner: Corner
    values: tuple[np.ndarray, ...]  # for each kernel (size, size), NaN for delicate pairs


class Part(NamedTuple):
    """A batch under way."""

    delicate: Future[Pairs]
    written: Future[None]


NO_PAIRS = np.empty(0, int), np.empty(0, int)
Piece = tuple[list[Pairs], list[Future[None]]]  # delicate pairs, and when their tiles are written


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
        # what is known of an input may be NaN: where it is longer than all that the network is prepared for
        self.sure = program.needs.delicate == NOTHING_DELICATE and all(
            bool(np.isfinite(side.numbers).all()) for side in self.sides
        )
        try:
            first = [self._start(some) for some in self.batches[:1]]
        except OutOfStepError:  # a layer from outside that branches on its numbers
            self.sides = pack((one.rest, None)), pack((two.rest, None))
            first = [self._start(some) for some in self.batches[:1]]
        self.started = first + [None] * (len(self.batches) - len(first))

    def write(self, write: Callable[[Tile], None], one_half: bool) -> Iterator[Piece]:
        """Lets `write` have all tiles, from now on; and the delicate pairs in them, as soon as they are known: before
        their tiles are written. With `one_half` only those above the diagonal of the matrix."""

        def finish(some: list[Corner], values: Out | None, delicate: Future[Pairs]) -> None:
            try:
                with jax.enable_x64(True):  # each thread has settings of its own
                    arrays = [np.asarray(v) for v in (values or self._start(some))]
                found = NO_PAIRS if self.sure else _delicate_pairs(some, arrays[0], one_half)
                delicate.set_result(found)
            except BaseException as problem:
                delicate.set_exception(problem)
                raise
            for tile in map(Tile, some, zip(*arrays, strict=True)):
                write(tile)

        parts = []
        for some, values in zip(self.batches, self.started, strict=True):
            delicate: Future[Pairs] = Future()
            parts.append(Part(delicate, THREADS.submit(finish, some, values, delicate)))
        return _collect(parts)

    def _start(self, some: list[Corner]) -> Out:
        places = np.asarray(some + some[-1:] * (self.batch - len(some))).T // self.size
        units = [_at(*both) for both in zip(self.units, places, strict=True)]
        sides = [side.at(index) for side, index in zip(self.sides, places, strict=True)]
        return self.compute(*sides, None if None in units else _cosines(*units))


def _collect(parts: list[Part]) -> Iterator[Piece]:
    """What these give, in two pieces: the first that is worth it, to be worked on while the others are computed, and
    the rest. Each piece takes the careful rules once, which for few pairs is all that counts; and while Python works
    on it, threads that copy have to wait, so that there is only one piece if there is little to compute."""
    found, written = list[Pairs](), list[Future[None]]()
    early = False
    try:
        for number, part in enumerate(parts, 1):
            found += [pairs for pairs in [part.delicate.result()] if len(pairs[0])]
            written.append(part.written)
            many = sum(len(rows) for rows, _ in found) >= MANY_FOUND
            if many and not early and len(parts) - number >= MANY_LEFT:
                early = True
                yield found, written
                found, written = [], []
        yield found, written
    finally:
        for part in parts:
            part.written.cancel()  # the rest, after an error


def _wait_for(written: list[Future[None]]) -> None:
    """Until these tiles are there; an error in a thread is one here."""
    for part in written:
        part.result()


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


def _delicate_pairs(corners: list[Corner], tiles: np.ndarray, one_half: bool) -> Pairs:
    """Rows and columns of the delicate pairs in these tiles; of a symmetric matrix only above its diagonal."""
    unknown = np.isnan(tiles[: len(corners)])
    # in one dimension, since NumPy finds places in several ten times as slowly
    tile, a, b = np.unravel_index(np.flatnonzero(unknown), unknown.shape)
    starts = np.asarray(corners)
    rows, columns = starts[tile, 0] + a, starts[tile, 1] + b
    above = rows < columns if one_half else slice(None)
    return rows[above], columns[above]


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
    yield from by_program(program, points, points2, rows, columns)


def _tiling(x: Array, program: Program, cheap: bool) -> Tiling:
    if x.shape[1] > MANY:
        return LARGE
    if not cheap:
        return SMALL
    return WIDE if program.needs.delicate == NOTHING_DELICATE else CHEAP
