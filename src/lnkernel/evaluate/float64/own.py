"""What single inputs tell of themselves where positions are mixed: noted of each with itself, and read for pairs.

First the rules run on every input with itself, where the kernel between its positions is at hand: `Noting`. Then they
run on pairs and ask for the same numbers in the same order: `Reading`. Where only the sizes of the lengths are asked
for, upper bounds will do: `Longest`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.positions import FIRST, SECOND, Own, Positions
from lnkernel.evaluate.float64 import namespace
from lnkernel.types import Array

Notes = tuple[Array, ...]  # (n, ...) each, in the order of the rules
Make = Callable[[Number], Number]


class Record(Own, Protocol):
    """What is noted or read while the rules run, which may go on in another program."""

    @property
    def packed(self) -> Any:
        """Its arrays."""
        ...

    @classmethod
    def unpacked(cls, arrays: Any) -> Self:
        """The record with these arrays."""
        ...


class Noting:
    """For blocks (n, positions, positions) of every input with itself."""

    def __init__(self, notes: Sequence[Array] = ()) -> None:
        self.notes = list(notes)

    @property
    def packed(self) -> Notes:
        return tuple(self.notes)

    @classmethod
    def unpacked(cls, arrays: Notes) -> Noting:
        return cls(arrays)

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
        self.rest = list(first), list(second)

    @property
    def packed(self) -> tuple[Notes, Notes]:
        return tuple(self.rest[FIRST]), tuple(self.rest[SECOND])

    @classmethod
    def unpacked(cls, arrays: tuple[Notes, Notes]) -> Reading:
        return cls(*arrays)

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        one, two = (side.pop(0) for side in self.rest)
        return _at(one, at, FIRST)[:, None], _at(two, at, SECOND)[None]

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Make
    ) -> tuple[Number, Number]:
        one, two = (side.pop(0) for side in self.rest)
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
