"""Gram matrices of few points, by NumPy: nothing is compiled.

The same formulas as in `tiled`, on one tile that is the whole matrix. A program would take seconds to compile for
milliseconds of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import needs_compiler
from lnkernel.calculus.state import Kernels
from lnkernel.gram import pairs
from lnkernel.gram.program import Program
from lnkernel.gram.structure import assemble
from lnkernel.types import Array

MOST = 10_000  # pairs
MOST_CAREFUL = 1 << 20  # coordinates that are compared at a time, with all care

Out = tuple[Array, ...]


@contextmanager
def switched_off() -> Iterator[None]:
    """Inside, all matrices are compiled: for tests and measurements."""
    global MOST
    usual, MOST = MOST, 0
    try:
        yield
    finally:
        MOST = usual


def suits(program: Program, pairs: int) -> bool:
    """Whether so many pairs are computed faster than a program is compiled."""
    return pairs <= MOST and not needs_compiler(_read(program)[0])


def symmetric(program: Program, x: Array) -> tuple[Out, Out]:
    """The kernels of all pairs of x; and their diagonals."""
    arch, which, all_live = _read(program)
    n = len(x)
    with np.errstate(all="ignore"):
        points = pairs.prepare(arch, np.asarray(x))
        ends = _select(pairs.diagonal(arch, points, all_live), which)
        rough, delicate = _quickly(arch, which, all_live, points, points)
        out = tuple(0.5 * (matrix + matrix.T) for matrix in rough)
        rows, columns = np.nonzero(np.triu(delicate | delicate.T, 1))
        values = _carefully(arch, which, all_live, points, points, rows, columns)
    for matrix, value, end in zip(out, values, ends, strict=True):
        matrix[rows, columns] = value
        matrix[columns, rows] = value
        matrix[np.arange(n), np.arange(n)] = end
    return out, ends


def rectangular(program: Program, x: Array, x2: Array) -> tuple[Out, Out, Out]:
    """The kernels of all pairs of x and x2; and the diagonals of both."""
    arch, which, all_live = _read(program)
    with np.errstate(all="ignore"):
        one, two = (pairs.prepare(arch, np.asarray(some)) for some in (x, x2))
        ends, ends2 = (_select(pairs.diagonal(arch, some, all_live), which) for some in (one, two))
        out, delicate = _quickly(arch, which, all_live, one, two)
        rows, columns = np.nonzero(delicate)
        values = _carefully(arch, which, all_live, one, two, rows, columns)
    for matrix, value in zip(out, values, strict=True):
        matrix[rows, columns] = value
    return out, ends, ends2


def diagonal(program: Program, x: Array) -> Out:
    """The kernels of every point with itself."""
    arch, which, all_live = _read(program)
    with np.errstate(all="ignore"):
        return _select(pairs.diagonal(arch, pairs.prepare(arch, np.asarray(x)), all_live), which)


def _read(program: Program) -> tuple[Node, tuple[str, ...], bool]:
    arch = assemble(program.structure, np.asarray(program.varying).tolist())
    return arch, program.which, program.all_live


def _quickly(
    arch: Node, which: tuple[str, ...], all_live: bool, one: pairs.Points, two: pairs.Points
) -> tuple[Out, np.ndarray]:
    """All pairs; and those that need more care."""
    tiles = (pairs.blocks(arch, some, np.arange(len(some.raw.live))[None]) for some in (one, two))
    first, second = (jax.tree.map(lambda part: part[0], tile) for tile in tiles)
    kernels, delicate = pairs.quick(arch, first, second, all_live)
    shape = len(one.raw.live), len(two.raw.live)
    out = tuple(np.array(np.broadcast_to(k, shape)) for k in _select(kernels, which))
    unknown = np.isnan(out[0])
    return out, np.broadcast_to(delicate, shape) | unknown


def _carefully(
    arch: Node,
    which: tuple[str, ...],
    all_live: bool,
    one: pairs.Points,
    two: pairs.Points,
    rows: np.ndarray,
    columns: np.ndarray,
) -> Out:
    """The pairs with these places, with all care."""
    if not len(rows):
        return tuple(np.empty(0) for _ in which)
    step = max(1, MOST_CAREFUL // one.raw.unit.shape[1])
    found = []
    for k in range(0, len(rows), step):
        some, others = rows[k : k + step], columns[k : k + step]
        sides = pairs.take(one, some), pairs.take(two, others)
        values = _select(pairs.careful(arch, *sides, all_live), which)
        found.append([np.broadcast_to(v, some.shape) for v in values])
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def _select(kernels: Kernels, which: tuple[str, ...]) -> Out:
    return tuple(np.asarray(getattr(kernels, name)) for name in which)
