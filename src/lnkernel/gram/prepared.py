"""What is done once for every point of concrete data, by NumPy: directions, lengths and diagonals.

It is little work beside that for the pairs, and it would take as long to compile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from lnkernel.arch.facts import needs_compiler
from lnkernel.evaluate.float64.per_input import Record
from lnkernel.gram import pairs
from lnkernel.gram.program import Program, assembled, named
from lnkernel.gram.structure import assemble
from lnkernel.types import Array

T = TypeVar("T")

AT_ONCE = 4096  # points: some rules take thousands of numbers for each


class Prepared(NamedTuple):
    """Points, ready for comparison."""

    points: pairs.Points  # (n, ...)
    blocks: pairs.Points  # what `pairs.quick` reads of them, (blocks, size, ...)
    # and what its rules compute of each, as the first and as the second of a pair
    records: tuple[Record | None, Record | None]


def prepare(program: Program, x: Array, size: int, sides: tuple[int, ...] = (0, 1)) -> Prepared:
    """The points x (n, d), for these sides of the pairs; the last one fills up the last block."""
    arch, n = assembled(program), len(x)
    # NumPy's numbers, since a comparison of plain ones is a fact: the program's are not known when it is made
    by_numbers = assemble(program.structure, np.asarray(program.varying))
    with np.errstate(all="ignore"):
        points = pairs.prepare(arch, np.asarray(x))
        index = np.minimum(np.arange(-(-n // size) * size), n - 1).reshape(-1, size)
        first, second = (
            _in_blocks(pairs.remember(by_numbers, points, side, program.all_live), index)
            if side in sides and not needs_compiler(arch)
            else None
            for side in (0, 1)
        )
        return Prepared(points, pairs.blocks(arch, points, index), (first, second))


def _in_blocks(record: Record | None, index: np.ndarray) -> Record | None:
    if record is None:
        return None
    return replace(record, numbers=record.numbers[:, index].swapaxes(0, 1))


def diagonal_of(program: Program, points: pairs.Points) -> tuple[np.ndarray, ...]:
    """The kernels of every point with itself, (n,) each."""
    arch, n = assembled(program), len(points.raw.live)
    found = []
    for start in range(0, n, AT_ONCE):
        some = pairs.take(points, np.arange(start, min(start + AT_ONCE, n)))
        with np.errstate(all="ignore"):
            kernels = pairs.diagonal(arch, some, program.all_live)
        found.append([np.asarray(kernel) for kernel in named(kernels, program.which)])
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def blocks_at(blocks: T, index: np.ndarray) -> T:
    """The blocks with these numbers."""
    found: T = jax.tree.map(lambda part: part[index], blocks)
    return found
