"""The measurements of one run: what of a `Watch` goes into the compiled program, and comes back."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.errors import InputError
from lnkernel.finite.training.data import as_ensemble_data, as_training_data, is_of_each
from lnkernel.finite.training.fingerprint import digest, trace_text
from lnkernel.finite.training.program import Learner, TrainingState
from lnkernel.finite.watching.measured import Measured
from lnkernel.finite.watching.program import (
    NEVER,
    Record,
    Recorder,
    empty_values,
    measure_networks,
)
from lnkernel.finite.watching.watch import Watch

SLOTS = 32  # room for measurements is made for a multiple of it, so that few programs are compiled


class Recording:
    """A `Watch` in a run. It fills the watch as the run goes on."""

    def __init__(
        self, watch: Watch, learner: Learner, start: TrainingState, seeds: list[int], steps: int
    ):
        self.watch, self.seeds, self.learner, self.start = watch, seeds, learner, start
        dtype = jnp.result_type(*jax.tree.leaves(start.params))
        own = learner.own_data and is_of_each(watch.X)
        data = (
            as_ensemble_data(watch.X, watch.y, len(seeds), dtype)
            if own
            else as_training_data(watch.X, watch.y, dtype, stacklevel=6)
        )
        self.watched = jnp.asarray(data.x), jnp.asarray(data.y)
        self.recorder = Recorder(tuple(watch.measured.items()), own)
        self.shapes = self._find_shapes()
        self.steps = watch.choose_steps(steps)
        self.record = self._make_record(np.zeros(0, np.int32), {}, self.steps)

    def resume(self, done: int, measured: Measured) -> None:
        """Go on behind measurements of a run that was stopped after `done` steps."""
        left = self.steps[self.steps > done]
        self.record = self._make_record(measured.steps, measured.values, left)
        self.publish(self.record)

    def publish(self, record: Record) -> None:
        """Give the watch all that was measured so far."""
        self.record = record
        self.watch.take(self.seeds, *self.measured())

    def measured(self, done: int = NEVER) -> Measured:
        """What was measured so far, in the first `done` steps."""
        taken = min(int(self.record.taken), int((np.asarray(self.record.at) <= done).sum()))
        values = {name: np.asarray(whole)[:taken] for name, whole in self.record.values.items()}
        return Measured(np.asarray(self.record.at)[:taken], values)

    def identity(self) -> str:
        """A text that is another for other data or measures."""
        one = jax.tree.map(lambda leaf: leaf[0], self.start)
        now = one.params, one.rest
        x, y = self.watched
        some = (x[0], y[0]) if self.recorder.own_data else (x, y)

        def measures(now: Any, before: Any, x: Array, y: Array) -> Any:
            return self.recorder.measure_one(self.learner, now, before, x, y)

        return digest(np.asarray(x), np.asarray(y), trace_text(measures, now, now, *some))

    def template(self, taken: int) -> Measured:
        """Arrays of the shapes that `measured` has after so many measurements."""
        values = {name: np.zeros((taken, *s.shape), s.dtype) for name, s in self.shapes.items()}
        return Measured(np.zeros(taken, np.int32), values)

    def _make_record(
        self, done: np.ndarray, values: dict[str, np.ndarray], left: np.ndarray
    ) -> Record:
        taken, many = len(done), len(done) + len(left)
        slots = (many // SLOTS + 1) * SLOTS  # so that it ends with NEVER
        at = np.full(slots, NEVER, np.int32)
        at[:taken], at[taken:many] = done, left
        room = empty_values(self.shapes, slots)
        filled = {
            name: whole.at[:taken].set(values[name]) if taken else whole
            for name, whole in room.items()
        }
        return Record(jnp.asarray(at), jnp.asarray(taken, jnp.int32), filled)

    def _find_shapes(self) -> dict[str, Any]:
        """The shape of every measure, (networks, ...)."""
        self._check_outputs()
        made = measure_networks.eval_shape(  # which is traced once for all runs alike
            self.learner, self.recorder, self.start, self.start, *self.watched
        )
        for name, one in made.items():
            if one.ndim > 2:
                raise InputError(
                    "measures",
                    "functions that return a number or a vector",
                    f"{name} of shape {one.shape[1:]}",
                    "Ravel it, or reduce it to what is wanted",
                )
        found: dict[str, Any] = made
        return found

    def _check_outputs(self) -> None:
        x, y = self.watched
        one = jax.tree.map(lambda leaf: leaf[0], self.start)
        point = (x[0] if self.recorder.own_data else x)[:1]
        made, _ = jax.eval_shape(self.learner.outputs, one.params, one.rest, point)
        if made.shape[-1] != y.shape[-1]:
            raise InputError(
                "watch",
                f"targets for as many outputs as the network has, {made.shape[-1]}",
                f"{y.shape[-1]} for each point",
                "Give `watch` a y with one column for each output",
            )
