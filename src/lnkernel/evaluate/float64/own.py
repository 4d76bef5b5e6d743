"""What single inputs tell of themselves where positions are mixed: noted of each with itself, and read for pairs.

First the rules run on every input with itself, where the kernel between its positions is at hand: `Noting`. Then they
run on pairs and ask for the same numbers in the same order: `Reading`. Where only the sizes of the lengths are asked
for, upper bounds will do: `Longest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.positions import FIRST, SECOND, Positions
from lnkernel.evaluate.float64 import namespace
from lnkernel.types import Array

Notes = tuple[Array, ...]  # (n, ...) each, in the order of the rules
Make = Callable[[Number], Number]


class Noting:
    """For blocks (n, positions, positions) of every input with itself."""

    def __init__(self) -> None:
        self.notes: list[Array] = []

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        matrix = _as_matrix(block, at)
        xp = namespace.of(block)
        square = xp.diagonal(matrix, axis1=-2, axis2=-1).reshape(*matrix.shape[:-2], *at.shape)
        self.notes.append(square)
        return _at(square, at, FIRST), _at(square, at, SECOND)

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Make
    ) -> tuple[Number, Number]:
        made = make(_as_matrix(block, at))
        self.notes.append(made)
        return made, made

    def certain(self, num: Arithmetic, at: Positions, w: Number) -> Number:
        count = int(np.prod(at.shape))
        same = np.eye(count, dtype=bool).reshape(at.form(None))
        return namespace.of(w).where(same, 0.0, w)


class Reading:
    """For blocks (n, m, positions, positions) of all pairs of inputs with these notes."""

    def __init__(self, first: Sequence[Array], second: Sequence[Array]):
        self.rest: tuple[Iterator[Array], Iterator[Array]] = iter(first), iter(second)

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        one, two = (next(side) for side in self.rest)
        return _at(one, at, FIRST)[:, None], _at(two, at, SECOND)[None]

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Make
    ) -> tuple[Number, Number]:
        one, two = (next(side) for side in self.rest)
        return one[:, None], two[None]

    def certain(self, num: Arithmetic, at: Positions, w: Number) -> Number:
        return w


class Longest:
    """For blocks (n, positions) of equal positions, of which only the sizes count: mean features are no longer than
    the features in the mean, so the kernel of a position with itself stands for all in its window."""

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        return block, block

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Make
    ) -> tuple[Number, Number]:
        count = int(np.prod(at.shape))
        largest = block.reshape(-1, count).max(axis=-1)
        made = make(np.broadcast_to(largest[:, None, None], (len(largest), count, count)))
        return made, made

    def certain(self, num: Arithmetic, at: Positions, w: Number) -> Number:
        return 0.0 * w


def _as_matrix(block: Array, at: Positions) -> Any:
    """(n, count, count)"""
    count = int(np.prod(at.shape))
    return block.reshape(*block.shape[: -2 * len(at.shape)], count, count)


def _at(square: Array, at: Positions, side: int) -> Any:
    """(n, positions) as the last axes of one input."""
    count = len(at.shape)
    return square.reshape(*square.shape[: square.ndim - count], *at.form(side))
