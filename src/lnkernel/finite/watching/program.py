"""The compiled program of training that is watched: steps, and measurements where they are due.

The steps are those of the program without measurements, in the same loop; between two measurements
nothing is added to them. All networks of an ensemble are measured at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from lnkernel.finite.training.program import (
    Learner,
    TrainingState,
    begin_walk,
    walk_on,
)
from lnkernel.finite.watching.measures import Measure
from lnkernel.tangents.from_nnx import NNXApply
from lnkernel.tangents.function import Function
from lnkernel.tangents.snapshot import Snapshot
from lnkernel.tangents.structured import is_structured

NEVER = 2**31 - 1  # a step that does not come
Values = dict[str, Array]


@dataclass(frozen=True)
class EvaluationApply(NNXApply):
    """A module in evaluation mode, so that Dropout and BatchNorm take every input on its own."""

    def merge(self, params: Any, rest: Any) -> nnx.Module:
        network = super().merge(params, rest)
        network.eval()
        return network


class Recorder(NamedTuple):
    """What is measured. It is compiled into the program, and is a key to it."""

    measures: tuple[tuple[str, Measure], ...]
    own_data: bool  # whether X and y have the networks along their first axis

    def measure_one(
        self,
        learner: Learner,
        now: tuple[Any, Any],
        before: tuple[Any, Any],
        x: Array,
        y: Array,
    ) -> Values:
        """All measures of one network, from its variables (trained, others) now and at the start."""
        network = nnx.merge(learner.graph, *now, copy=True)
        structured = is_structured(network) and x.ndim == 2
        apply, outputs = EvaluationApply(learner.graph), y.shape[1]
        first = Snapshot(Function(apply, *before, outputs), structured)
        snapshot = Snapshot(Function(apply, *now, outputs), structured, first)
        return {name: jnp.asarray(measure(snapshot, x, y)) for name, measure in self.measures}

    def measure_all(
        self, learner: Learner, state: TrainingState, before: TrainingState, x: Array, y: Array
    ) -> Values:
        """The same of every network, along the first axis."""
        axis = 0 if self.own_data else None
        return jax.vmap(partial(self.measure_one, learner), (0, 0, axis, axis))(
            (state.params, state.rest), (before.params, before.rest), x, y
        )


class Record(NamedTuple):
    """Measurements so far."""

    at: Array  # steps in ascending order, filled up with NEVER: (slots,)
    taken: Array  # how many of them are done
    values: Values  # (slots, networks, ...)


@partial(jax.jit, static_argnames=("learner", "recorder"))
def measure_networks(
    learner: Learner,
    recorder: Recorder,
    state: TrainingState,
    before: TrainingState,
    x: Array,
    y: Array,
) -> Values:
    """All measures of networks as they stand, (networks, ...)."""
    return recorder.measure_all(learner, state, before, x, y)


def empty_values(shapes: Mapping[str, Any], slots: int) -> Values:
    """Room for so many measurements of these shapes."""
    return {name: jnp.zeros((slots, *one.shape), one.dtype) for name, one in shapes.items()}


@partial(jax.jit, static_argnames=("learner", "recorder"))
def advance_and_watch(
    learner: Learner,
    recorder: Recorder,
    state: TrainingState,
    keys: Array,
    x: Array,
    y: Array,
    start: Array,
    count: Array,
    limit: Array,
    record: Record,
    before: TrainingState,
    watched: tuple[Array, Array],
) -> tuple[Array, TrainingState, Array, Record]:
    """`advance`, with a measurement after every step that is in `record.at`.

    Args:
        record: the measurements of the steps before.
        before: the state before the first step of all.
        watched: the inputs and targets that are measured at.
    """

    def goes_on(carry: Any) -> Array:
        walk, record = carry
        return walk.healthy & ((walk.done < count) | (record.at[record.taken] == start + walk.done))

    def more(carry: Any) -> Any:
        walk, record = carry
        following = record.at[record.taken]
        walk = walk_on(
            learner, walk, keys, x, y, start, jnp.minimum(count, following - start), limit
        )

        def write() -> Record:
            made = recorder.measure_all(learner, walk.state, before, *watched)
            values = {
                name: whole.at[record.taken].set(made[name])
                for name, whole in record.values.items()
            }
            return Record(record.at, record.taken + 1, values)

        due = walk.healthy & (start + walk.done == following)
        return walk, jax.lax.cond(due, write, lambda: record)

    first = begin_walk(learner, state, keys, y, start), record
    walk, record = jax.lax.while_loop(goes_on, more, first)
    return walk.done, walk.state, walk.losses, record
