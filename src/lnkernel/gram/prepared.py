"""What is done once for every point of concrete data, by NumPy: directions, lengths and diagonals.

It is little work beside that for the pairs, and it would take as long to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from lnkernel.gram import pairs
from lnkernel.gram.program import Program, assembled, named
from lnkernel.types import Array

AT_ONCE = 4096  # points: some rules take thousands of numbers for each


class Prepared(NamedTuple):
    """Points, ready for comparison."""

    points: pairs.Points  # (n, ...)
    blocks: pairs.Points  # what `pairs.quick` reads of them, (blocks, size, ...)


def prepare(program: Program, x: Array, size: int) -> Prepared:
    """The points x (n, d); the last one fills up the last block."""
    arch, n = assembled(program), len(x)
    with np.errstate(all="ignore"):
        points = pairs.prepare(arch, np.asarray(x))
        index = np.minimum(np.arange(-(-n // size) * size), n - 1).reshape(-1, size)
        return Prepared(points, pairs.blocks(arch, points, index))


def diagonal_of(program: Program, points: pairs.Points) -> tuple[np.ndarray, ...]:
    """The kernels of every point with itself, (n,) each."""
    arch, n = assembled(program), len(points.raw.live)
    found = []
    for start in range(0, n, AT_ONCE):
        some = pairs.take(points, slice(start, start + AT_ONCE))
        with np.errstate(all="ignore"):
            kernels = pairs.diagonal(arch, some, program.all_live)
        found.append([np.asarray(kernel) for kernel in named(kernels, program.which)])
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def blocks_at(blocks: pairs.Points, index: np.ndarray | int) -> pairs.Points:
    """The blocks with these numbers."""
    return jax.tree.map(lambda part: part[index], blocks)
