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
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.evaluate.float64.per_input import OutOfStepError, Record
from lnkernel.gram import eager, pairs
from lnkernel.gram.compiled import compiled
from lnkernel.gram.prepared import Prepared, blocks_at, diagonal_of, prepare
from lnkernel.gram.program import Program, named
from lnkernel.gram.structure import Structure, assemble
from lnkernel.types import Array

Out = tuple[Array, ...]
Records = tuple[Record | None, Record | None]  # of the first and of the second of each pair
Pairs = tuple[np.ndarray, np.ndarray]  # their rows and columns


class Tiling(NamedTuple):
    """Rows and columns of a tile, and how many tiles at most are computed at once."""

    size: int
    batch: int


# Sizes are multiples of 4 (of 8 where that is the length of a vector register: what is left of a row is computed
# number by number), but not powers of two, at which the rows of a tile would fall on the same few lines of the cache.
SMALL = Tiling(112, 20)
LARGE = Tiling(504, 1)  # where many coordinates have to be read for each tile
MANY = 32  # coordinates
CHUNKS = (64, 1024, 16384)  # delicate pairs are computed so many at a time
MOST_COORDINATES = 1 << 22  # of a chunk
FEW = 1024  # pairs; up to so many all of them count as delicate, and only one program is compiled
OTHER = ThreadPoolExecutor(1, "lnkernel")  # kept: its thread starts once, not with every matrix


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    n, size = len(x), _tiling(x).size
    one = prepare(program, x, size)
    out = tuple(np.empty((n, n)) for _ in program.which)

    def write(run: Run) -> list[Pairs]:
        delicate = _delicate_pairs(run, one_half=True)
        i, j = run.corner
        for matrix, tiles in zip(out, run.tiles, strict=True):
            _paste(matrix, i, j, tiles)
            _paste(matrix.T, i, j, tiles)
            if i == j:  # both halves of this tile were computed
                tile = tiles[0, : n - i, : n - i]
                corner = np.add(tile, tile.T, out=matrix[i : i + size, i : i + size])
                corner *= 0.5
        return delicate

    few = n * (n - 1) // 2 <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(i, n, size)]
    batches = _started(_each_batch(program, one, one, [] if few else corners))
    ends = diagonal_of(program, one.points)  # while the first batches are computed
    delicate = [np.triu_indices(n, 1)] if few else []
    delicate += [found for batch in batches for found in _by_two(write, batch)]
    for a, b, values in _with_care(program, one.points, one.points, delicate, (n, n)):
        for matrix, value in zip(out, values, strict=True):
            matrix[a, b] = value
            matrix[b, a] = value
    for matrix, end in zip(out, ends, strict=True):
        np.fill_diagonal(matrix, end)
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    n, m, size = len(x), len(x2), _tiling(x).size
    one, two = prepare(program, x, size, (0,)), prepare(program, x2, size, (1,))
    out = tuple(np.empty((n, m)) for _ in program.which)

    def write(run: Run) -> list[Pairs]:
        delicate = _delicate_pairs(run, one_half=False)
        for matrix, tiles in zip(out, run.tiles, strict=True):
            _paste(matrix, *run.corner, tiles)
        return delicate

    few = n * m <= FEW
    corners = [(i, j) for i in range(0, n, size) for j in range(0, m, size)]
    batches = _started(_each_batch(program, one, two, [] if few else corners))
    ends, ends2 = (diagonal_of(program, side.points) for side in (one, two))
    rows, columns = np.indices((n, m) if few else (0, 0)).reshape(2, -1)
    delicate = [(rows, columns)]
    delicate += [found for batch in batches for found in _by_two(write, batch)]
    for a, b, values in _with_care(program, one.points, two.points, delicate, (n, m)):
        for matrix, value in zip(out, values, strict=True):
            matrix[a, b] = value
    return out, ends, ends2


class Run(NamedTuple):
    """Tiles that stand side by side. They may reach over the edge of the matrix."""

    corner: tuple[int, int]  # row and column of the first tile's first pair
    tiles: list[np.ndarray]  # for each kernel (run, size, size), NaN for delicate pairs


class Batch(NamedTuple):
    """Tiles that are being computed."""

    corners: list[tuple[int, int]]
    values: Out  # for each kernel (at least as many as corners, size, size)

    def runs(self) -> list[Run]:
        """The tiles by their rows, when all are there."""
        arrays = [np.asarray(v) for v in self.values]
        rows = [i for i, _ in self.corners]
        starts = [0, *(np.flatnonzero(np.diff(rows)) + 1), len(rows)]
        return [Run(self.corners[a], [array[a:b] for array in arrays]) for a, b in pairwise(starts)]


def _each_batch(
    program: Program, one: Prepared, two: Prepared, corners: list[tuple[int, int]]
) -> Iterator[Batch]:
    """The tiles with these corners, batch by batch."""
    size, batch = _tiling(one.points.raw.unit)
    compute = compiled(_batch, program.structure, program.which, program.all_live)
    known = one.records[0], two.records[1]
    ahead: Batch | None = None
    for k in range(0, len(corners), batch):
        some = corners[k : k + batch]
        index = np.asarray(some + some[-1:] * (batch - len(some))).T // size
        first, second = blocks_at(one.blocks, index[0]), blocks_at(two.blocks, index[1])
        units, units2 = pairs.units(first), pairs.units(second)
        cosines = None if units is None else _cosines(units, units2)
        sides = pairs.without_units(first), pairs.without_units(second)
        records = blocks_at(known[0], index[0]), blocks_at(known[1], index[1])
        try:
            values = compute(program.varying, *sides, cosines, records)
        except OutOfStepError:  # a layer from outside that branches on its numbers
            known = None, None
            values = compute(program.varying, *sides, cosines, known)
        if ahead is not None:
            yield ahead  # it is written while the next one is computed
        ahead = Batch(some, values)
    if ahead is not None:
        yield ahead


def _started(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, of which the first are being computed from now on."""
    return chain(list(islice(batches, 1)), batches)


def _by_two(write: Callable[[Run], list[Pairs]], batch: Batch) -> list[Pairs]:
    """What `write` finds in the runs, with two threads: copying waits for memory, not for a core.

    Every second run goes to the other thread, since runs of a symmetric matrix get shorter.
    """

    runs = batch.runs()

    def half(first: int) -> list[Pairs]:
        return [found for run in runs[first::2] for found in write(run)]

    rest = OTHER.submit(half, 1)
    return half(0) + rest.result()


def _paste(matrix: np.ndarray, i: int, j: int, tiles: np.ndarray) -> None:
    """Writes a run of tiles, the first one at (i, j), and cuts off what reaches over the edge."""
    size = tiles.shape[1]
    rows = matrix[i : i + size]
    whole = min(len(tiles), (rows.shape[1] - j) // size)
    edge = j + whole * size
    inside = rows[:, j:edge].reshape(len(rows), whole, size)
    inside[:] = tiles[:whole, : len(rows)].transpose(1, 0, 2)
    if whole < len(tiles):
        rows[:, edge:] = tiles[whole, : len(rows), : rows.shape[1] - edge]


@jax.jit
def _cosines(units: pairs.Points, units2: pairs.Points) -> pairs.Points:
    """A small program of its own, the only one for the user's dimension."""
    return jax.tree.map(lambda x, y: x @ y.transpose(0, 2, 1), units, units2)


def _batch(
    structure: Structure,
    which: tuple[str, ...],
    all_live: bool,
    varying: Array,
    one: pairs.Points,
    two: pairs.Points,
    cosines: pairs.Points | None,
    records: Records,
) -> Out:
    """A batch of tiles, (batch, size, size); NaN for delicate pairs."""
    arch = assemble(structure, varying)
    size = one.raw.live.shape[1]

    def tile(
        one: pairs.Points, two: pairs.Points, cosines: pairs.Points | None, records: Records
    ) -> Out:
        first, second = records
        if first is None or second is None:
            values, delicate = pairs.quick(arch, one, two, all_live, cosines)
        else:
            num = pairs.recalling(arch, (first, second))
            values, delicate = pairs.quick(arch, one, two, all_live, cosines, num)
            num.demand_finished()
        full = (jnp.broadcast_to(v, (size, size)) for v in named(values, which))
        return tuple(jnp.where(delicate, jnp.nan, v) for v in full)

    return jax.vmap(tile)(one, two, cosines, records)


def _delicate_pairs(run: Run, one_half: bool) -> list[Pairs]:
    """Rows and columns of the delicate pairs; of a symmetric matrix only above its diagonal."""
    (row, column), tiles = run.corner, run.tiles[0]
    found = []
    for number in np.flatnonzero(np.isnan(tiles.max(axis=(1, 2)))):
        delicate, start = np.isnan(tiles[number]), column + int(number) * tiles.shape[2]
        corner = one_half and start == row
        if corner:
            np.fill_diagonal(delicate, False)
        if delicate.any():
            a, b = np.nonzero(np.triu(delicate) if corner else delicate)
            found.append((row + a, start + b))
    return found


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
    allowed = [c for c in CHUNKS if c <= most] or CHUNKS[:1]
    chunk = next((c for c in allowed if c >= len(rows)), allowed[-1])
    compute = compiled(_careful, program.structure, program.which, program.all_live)
    for k in range(0, len(rows), chunk):
        a, b = rows[k : k + chunk], columns[k : k + chunk]
        sides = pairs.take(points, np.resize(a, chunk)), pairs.take(points2, np.resize(b, chunk))
        found = compute(program.varying, *sides)
        yield a, b, [np.asarray(value)[: len(a)] for value in found]


def _careful(
    structure: Structure,
    which: tuple[str, ...],
    all_live: bool,
    varying: Array,
    one: pairs.Points,
    two: pairs.Points,
) -> Out:
    """Some pairs, with all care."""
    values = named(pairs.careful(assemble(structure, varying), one, two, all_live), which)
    return tuple(jnp.broadcast_to(v, one.raw.live.shape) for v in values)


def _tiling(x: Array) -> Tiling:
    return SMALL if x.shape[1] <= MANY else LARGE
