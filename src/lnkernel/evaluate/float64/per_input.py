"""What a rule computes for every single input, done once by NumPy and only read in the loop over pairs.

Most of a program would be the lengths of the inputs, to twice the digits, layer by layer: they take most of the time
of the compiler. So the rules run twice. First on NumPy's numbers, with all points on one side and none on the
other: `Remembering` keeps the results of operations that belong to a single input, in their order. Then, when the
program of the pairs is made, `Recalling` takes them from there. The same rules run both times, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.types import Array

OPERATIONS = ("squared", "sqrt", "power", "cosines", "softened", "divide", "of_input")


# results of the operations on no points, in their order: the same for all points and hyperparameters
Nothing = tuple[tuple[str, Any], ...]


class OutOfStepError(Exception):
    """The rules did not do the same with JAX's numbers as with NumPy's."""


class Complete(Exception):  # noqa: N818 (it is no error)
    """As many steps are remembered as were asked for."""


class Step(NamedTuple):
    """One operation: its name, and the form of its result."""

    name: str
    form: Any  # a tree of arrays
    types: tuple[str, ...]  # of the arrays


@partial(jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["steps"])
@dataclass(frozen=True)
class Record:
    """The results of all steps for every input, one row for each array, (rows, n), as float64."""

    numbers: Any
    steps: tuple[Step, ...]


def _of_one_side(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def operation(self: Any, *arguments: Any) -> Any:
        side = None if self.busy else self.side_of(arguments)
        if side is None:
            return plain(self, *arguments)
        self.busy = True
        try:
            return self.once(name, side, lambda: plain(self, *arguments))
        finally:
            self.busy = False

    return operation


class Remembering(EagerFloat64):
    """Keeps what belongs to the inputs of one side, 0 for the first and 1 for the second."""

    keeps = False  # by their numbers: another run asks for all steps in their order

    def prepares(self, pairs: int) -> bool:
        return True

    def __init__(
        self,
        with_range: bool,
        sharp: bool,
        delicate: float,
        side: int,
        points: int,
        most: int | None = None,
        nothing: Nothing = (),
    ):
        super().__init__(with_range, quick=True, sharp=sharp, delicate=delicate)
        self.most = most  # steps
        self.busy, self.shape = False, (points, 1) if side == 0 else (1, points)
        # the other side has no points; with one point here, that would be the shape of the pairs too
        self.absent = ((1, 0) if side == 0 else (0, 1)) if points > 1 else None
        self.nothing, self.noted = iter(nothing), list[tuple[str, Any]]()
        self.rows: list[np.ndarray] = []
        self.steps: list[Step] = []

    def side_of(self, arguments: tuple[Any, ...]) -> int | None:
        shape = _shape(arguments)
        return 0 if shape == self.shape else 1 if shape == self.absent else None

    def once(self, name: str, side: int, compute: Callable[[], Any]) -> Any:
        if side == 1:
            return self._of_nothing(name, compute)
        result = compute()
        leaves, form = jax.tree.flatten(result)
        arrays = [np.asarray(leaf) for leaf in leaves]
        whole = (a if a.shape == self.shape else np.broadcast_to(a, self.shape) for a in arrays)
        self.rows += [array.ravel() for array in whole]
        self.steps.append(Step(name, form, tuple(array.dtype.str for array in arrays)))
        if len(self.steps) == self.most:
            raise Complete
        return result

    def _of_nothing(self, name: str, compute: Callable[[], Any]) -> Any:
        """A result of the side without points, as another run of the same rules has noted it."""
        noted = next(self.nothing, None)
        if noted is not None and noted[0] == name:
            return noted[1]
        self.nothing = iter(())  # other rules: from here on they compute it themselves
        result = compute()
        self.noted.append((name, result))
        return result

    def record(self, count: int | None = None) -> Record:
        """What was kept of so many points, of which the last one fills up."""
        known = max(self.shape)
        numbers = np.empty((len(self.rows), count or known))
        for row, values in zip(numbers, self.rows, strict=True):
            row[:known] = values
            row[known:] = values[-1]
        return Record(numbers, tuple(self.steps))


class Recalling(Float64):
    """Takes what belongs to one input from the records of both sides."""

    def prepares(self, pairs: int) -> bool:
        return True

    def __init__(
        self, with_range: bool, sharp: bool, delicate: float, records: tuple[Record, Record]
    ):
        super().__init__(with_range, quick=True, sharp=sharp, delicate=delicate)
        self.busy, self.records = False, records
        sizes = [record.numbers.shape[1] for record in records]
        self.shapes = [(sizes[0], 1), (1, sizes[1])]
        self.places = [[0, 0], [0, 0]]  # of the next step and row of each side

    def side_of(self, arguments: tuple[Any, ...]) -> int | None:
        shape = _shape(arguments)
        return self.shapes.index(shape) if shape in self.shapes else None

    def once(self, name: str, side: int, compute: Callable[[], Any]) -> Any:
        record, (place, row) = self.records[side], self.places[side]
        if place >= len(record.steps) or record.steps[place].name != name:
            raise OutOfStepError
        step, shape = record.steps[place], self.shapes[side]
        leaves: list[Array] = [
            record.numbers[row + k].reshape(shape).astype(kind) for k, kind in enumerate(step.types)
        ]
        self.places[side] = [place + 1, row + len(leaves)]
        return jax.tree.unflatten(step.form, leaves)

    def demand_finished(self) -> None:
        """All that was remembered has been asked for."""
        for record, (place, _) in zip(self.records, self.places, strict=True):
            if place != len(record.steps):
                raise OutOfStepError


for _name in OPERATIONS:
    setattr(Remembering, _name, _of_one_side(_name, getattr(EagerFloat64, _name)))
    setattr(Recalling, _name, _of_one_side(_name, getattr(Float64, _name)))


def _shape(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    shapes = {np.shape(leaf) for leaf in jax.tree.leaves(arguments)} - {()}
    if len(shapes) <= 1:  # mostly, and found sooner than by broadcasting
        return shapes.pop() if shapes else ()
    return np.broadcast_shapes(*shapes)
