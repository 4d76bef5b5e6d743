"""Gram matrices of few points, by NumPy: nothing is compiled.

The same formulas as in `tiled`, on one tile that is the whole matrix. A program would take seconds to compile for
milliseconds of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lnkernel.gram import pairs
from lnkernel.gram.by_angle import without_care
from lnkernel.gram.careful import by_program
from lnkernel.gram.impatient import GivenUp, Impatient
from lnkernel.gram.network import Needs
from lnkernel.gram.prepared import diagonal_of
from lnkernel.gram.program import Program, network_of, select
from lnkernel.types import Array

MOST = 10_000  # pairs
# Of deep networks of smooth activations, whose programs take from seconds to a minute to compile
MOST_DEEP = 250_000
SHALLOW = 2  # such activations
MOST_CHEAP = 100_000  # pairs of networks without series, which take a few 100 ns each
# Pairs of a larger matrix, whose other pairs are compiled: NumPy takes from 1 to 25 microseconds for each, XLA up to a
# minute for the careful rules of closed forms. On a line most pairs are delicate to a smooth activation.
MOST_DELICATE = 1 << 18
# In memory at a time, of diagonals: the growth of the process for one million points
NUMBERS_OF_A_POINT = 20
NUMBERS_OF_A_COORDINATE = 5
MOST_CAREFUL = 1 << 20  # coordinates that are compared at a time, with all care

Out = tuple[Array, ...]


@contextmanager
def without_numpy() -> Iterator[None]:
    """A scope in which all matrices are compiled, for tests and measurements."""
    global MOST, MOST_CHEAP, MOST_DEEP, MOST_DELICATE
    usual = MOST, MOST_CHEAP, MOST_DEEP, MOST_DELICATE
    MOST = MOST_CHEAP = MOST_DEEP = MOST_DELICATE = 0
    try:
        yield
    finally:
        MOST, MOST_CHEAP, MOST_DEEP, MOST_DELICATE = usual


def suits(needs: Needs, pairs: int, series: int) -> bool:
    """Whether so many pairs are computed faster than a program is compiled, which takes the longer the more activations
    with series there are one after the other. Of equal blocks it is compiled soon."""
    most: float
    if needs.compiler:  # its program would integrate every pair that asks for care
        most = MOST_DEEP
    elif series > SHALLOW:
        most = min(MOST * (series / SHALLOW) ** 2, MOST_DEEP)
    else:
        most = MOST if series or needs.loop else MOST_CHEAP
    return pairs <= most and needs.quick_way


def suits_delicate(program: Program, pairs: int) -> bool:
    """Whether so many delicate pairs are computed faster than a program is compiled."""
    if program.needs.compiler:  # whose programs take a millisecond for a pair
        return program.needs.pair_tables and MOST_DELICATE > 0
    return pairs <= MOST_DELICATE


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    n, program = len(x), without_care(program)
    with np.errstate(all="ignore"):
        points = pairs.prepare(program.needs, np.asarray(x))
        ends = diagonal_of(program, points)
        rough, delicate = _quickly(program, points, points)
        out = tuple(0.5 * (matrix + matrix.T) for matrix in rough)
        rows, columns = np.nonzero(np.triu(delicate | delicate.T, 1))
    values = carefully(program, points, points, rows, columns)
    for matrix, value, end in zip(out, values, ends, strict=True):
        matrix[rows, columns] = value
        matrix[columns, rows] = value
        matrix[np.arange(n), np.arange(n)] = end
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    program = without_care(program)
    net = network_of(program)
    with np.errstate(all="ignore"):
        one, two = (pairs.prepare(net.needs, np.asarray(some)) for some in (x, x2))
        ends, ends2 = (diagonal_of(program, some) for some in (one, two))
        out, delicate = _quickly(program, one, two)
        rows, columns = np.nonzero(delicate)
    for matrix, value in zip(out, carefully(program, one, two, rows, columns), strict=True):
        matrix[rows, columns] = value
    return out, ends, ends2


def diagonal(program: Program, x: Array) -> Out:
    """The kernels of every point with itself, however many points there are."""
    with np.errstate(all="ignore"):
        return diagonal_of(program, pairs.prepare(program.needs, np.asarray(x)))


def _quickly(program: Program, one: pairs.Points, two: pairs.Points) -> tuple[Out, np.ndarray]:
    """The kernels of all pairs; and which pairs need more care."""
    net = network_of(program)
    first, second = (
        pairs.blocks_of_one(net, some, np.arange(len(some.raw.live))) for some in (one, two)
    )
    shape = len(one.raw.live), len(two.raw.live)
    try:
        by = Impatient(program.needs)
        kernels, delicate = pairs.quick(net, first, second, program.all_live, by=by)
    except GivenUp:
        return tuple(np.empty(shape) for _ in program.which), np.ones(shape, bool)
    out = tuple(np.array(np.broadcast_to(k, shape)) for k in select(kernels, program.which))
    unknown = np.isnan(out[0])
    return out, np.broadcast_to(delicate, shape) | unknown


def carefully(
    program: Program, one: pairs.Points, two: pairs.Points, rows: np.ndarray, columns: np.ndarray
) -> Out:
    """The kernels of the pairs at these places, computed with all care."""
    if not len(rows):
        return tuple(np.empty(0) for _ in program.which)
    if program.needs.compiler and not program.needs.pair_tables:
        parts = [values for _, _, values in by_program(program, one, two, rows, columns)]
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    net, step = network_of(program), max(1, MOST_CAREFUL // one.raw.unit.shape[1])
    found = []
    with np.errstate(all="ignore"):
        for k in range(0, len(rows), step):
            some, others = rows[k : k + step], columns[k : k + step]
            kernels = pairs.careful_at(net, one, two, (some, others), program.all_live)
            values = select(kernels, program.which)
            found.append([np.broadcast_to(v, some.shape) for v in values])
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))
