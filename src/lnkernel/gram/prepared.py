"""What is done once for every point of concrete data, by NumPy: directions, lengths and diagonals.

It is little work beside that for the pairs, and it would take as long to compile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.evaluate.float64.per_input import Nothing, Record, Remembering
from lnkernel.gram import pairs
from lnkernel.gram.network import Network
from lnkernel.gram.of_length import Range, diagonals_of, range_for, records_of
from lnkernel.gram.packed import Packed, pack
from lnkernel.gram.program import Program, network_of, select
from lnkernel.gram.structure import Structure, assemble
from lnkernel.types import Array

FEW = 3  # points that show what the rules do
AT_ONCE = 4096  # points: some rules take thousands of numbers for each
MOST_CONSTANTS = 1024
MANY_NUMBERS = 64  # of an input, which sums of products take


class Prepared(NamedTuple):
    """Points, ready for comparison, in blocks."""

    points: pairs.Points  # (n, ...)
    units: pairs.Points | None  # directions, (blocks, size, d), where the coordinates are many
    rest: pairs.Points  # what else `pairs.quick` reads of them, (blocks, ..., size)
    # `rest`, and what the rules compute of every point as the first and as the second of a pair; if only one of the two
    # was asked for, it stands for both
    sides: tuple[Packed, Packed]
    of: Range | None = None  # where numbers of the points are taken as functions of their lengths


def prepare(program: Program, x: Array, size: int, sides: tuple[int, ...] = (0, 1)) -> Prepared:
    """The points x (n, d), for these sides of the pairs; the last one fills up the last block."""
    net, n = network_of(program), len(x)
    with np.errstate(all="ignore"):
        points = pairs.prepare(net.needs, np.asarray(x))
        index = np.minimum(np.arange(-(-n // size) * size), n - 1).reshape(-1, size)
        blocks = pairs.blocks(net, points, index)
        units, rest = pairs.units(blocks), pairs.without_units(blocks)
        if not net.needs.quick_way:
            return Prepared(points, units, rest, (pack((rest, None)),) * 2)
        # NumPy's numbers, since a comparison of plain ones is a fact: the program's are not known when it is made
        arch = assemble(program.structure, np.asarray(program.varying))
        by_numbers = Network(arch, net.needs)
        few = pairs.some(points, FEW)  # a copy, since what is kept must be small
        habit = _habit_of(_Sample(program.structure, program.all_live, by_numbers, few))

        of = range_for(program, points) if habit.rows >= MANY_NUMBERS else None

        def side(number: int) -> Packed:
            record = None
            if of is not None:
                lengths = np.sqrt(points.raw.square.high)[index.ravel()]
                record = records_of(of, number, lengths)
            if record is None:
                known = habit.steps[number], habit.nothing[number]
                made = pairs.remember(by_numbers, points, number, program.all_live, *known)
                record = None if made is None else made.record(index.size)
            return pack((rest, record and _in_blocks(record, size)))

        made = side(sides[0])
        other = made if len(sides) == 1 or habit.alike else side(sides[1])
        return Prepared(points, units, rest, (made, other), of)


@dataclass(frozen=True)
class _Sample:
    """Some numbers and points, of which only the structure counts."""

    structure: Structure
    all_live: bool
    by_numbers: Network = field(compare=False)
    points: pairs.Points = field(compare=False)


class _Habit(NamedTuple):
    """What the rules of a structure do with single inputs."""

    alike: bool  # the same with the first as with the second of a pair
    steps: tuple[int, int]  # how many, with each
    nothing: tuple[Nothing, Nothing]  # what they make of no points on the other side
    rows: int = 0  # numbers of an input


@lru_cache(maxsize=1024)
def _habit_of(sample: _Sample) -> _Habit:
    """Seen from few points. Rules that do otherwise later are found out when the program asks for what is missing."""
    made = [
        pairs.remember(sample.by_numbers, sample.points, side, sample.all_live) for side in (0, 1)
    ]
    runs = [run for run in made if run is not None]
    if len(runs) < 2:
        return _Habit(True, (0, 0), ((), ()))
    (first, nothing), (second, nothing2) = ((run.record(), _of_no_points(run)) for run in runs)
    same = first.steps == second.steps
    same = same and np.array_equal(first.numbers, second.numbers, equal_nan=True)
    steps = len(first.steps), len(second.steps)
    return _Habit(same, steps, (nothing, nothing2), len(first.numbers))


def _of_no_points(run: Remembering) -> Nothing:
    """What has been noted, as far as it holds no numbers."""
    return tuple(takewhile(lambda noted: _is_empty(noted[1]), run.noted))


def _is_empty(result: Any) -> bool:
    return all(np.size(leaf) == 0 for leaf in jax.tree.leaves(result))


def _in_blocks(record: Record, size: int) -> Record:
    numbers = record.numbers
    blocks = numbers.reshape(len(numbers), numbers.shape[1] // size, size)
    return replace(record, numbers=blocks.swapaxes(0, 1))


def diagonal_of(
    program: Program, points: pairs.Points, of: Range | None = None
) -> tuple[np.ndarray, ...]:
    """The kernels of every point with itself, (n,) each; as functions of the lengths of a range, if that is given."""
    n = len(points.raw.live)
    if of is not None:
        found = diagonals_of(of, np.sqrt(points.raw.square.high))
        if found is not None:
            return found
    numbers = program.varying.tobytes()
    key = program.structure, numbers, program.needs, program.which, program.all_live
    constant = _constants.get(key)
    if constant is None:
        parts = [_some_of_diagonal(program, points, k) for k in range(0, n, AT_ONCE)]
        if any(np.ndim(value) for value in parts[0]):
            counts = [min(AT_ONCE, n - k) for k in range(0, n, AT_ONCE)]
            columns = [
                [np.broadcast_to(value, count) for value, count in zip(column, counts, strict=True)]
                for column in zip(*parts, strict=True)
            ]
            return tuple(np.concatenate(column) for column in columns)
        constant = _constants[key] = parts[0]
        if len(_constants) > MOST_CONSTANTS:
            _constants.popitem(last=False)
    return tuple(np.full(n, value) for value in constant)


def _some_of_diagonal(program: Program, points: pairs.Points, start: int) -> tuple[Array, ...]:
    """From this point on; single numbers where they are the same for all inputs, as behind a LayerNorm."""
    index = np.arange(start, min(start + AT_ONCE, len(points.raw.live)))
    with np.errstate(all="ignore"):
        kernels = pairs.diagonal(network_of(program), pairs.take(points, index), program.all_live)
    return select(kernels, program.which)


# diagonals that do not depend on the inputs, of the latest networks
_constants: OrderedDict[Hashable, tuple[Array, ...]] = OrderedDict()
