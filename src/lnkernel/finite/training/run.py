"""The run: chunks of compiled steps, and between them the bar, the checkpoints, the checks."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.errors import DivergedError
from lnkernel.finite.training import stability
from lnkernel.finite.training.arguments import Settings
from lnkernel.finite.training.checkpoint import Checkpoints, Saved
from lnkernel.finite.training.program import CHUNK, Learner, TrainingState, advance, losses_on_all
from lnkernel.finite.watching.program import advance_and_watch
from lnkernel.finite.watching.recording import Recording
from lnkernel.progress import Bar

SECONDS = 0.2  # that a chunk takes: how often the bar moves, and how soon an interrupt is heard
# In units of the loss at the start or of that of predicting 0, whichever is larger: a loss that does
# not come back, and one to end with that no noise of mini-batches or dropout explains.
BLOWN_UP, WORSE = 1e4, 10


class TrainingRun:
    """Training under way. After an interrupt `done` and `state` are those of the last chunk."""

    def __init__(
        self,
        learner: Learner,
        start: TrainingState,
        keys: Array,
        x: Array,
        y: Array,
        settings: Settings,
        checkpoints: Checkpoints | None,
        recording: Recording | None = None,
    ):
        self.learner, self.start, self.keys, self.x, self.y = learner, start, keys, x, y
        self.settings, self.checkpoints, self.recording = settings, checkpoints, recording
        self.losses = np.zeros((len(keys), settings.steps), y.dtype)
        self.diverged = np.full(
            len(keys), -1
        )  # in a run that goes on: the step where a network did
        self._reached: tuple[int, TrainingState] = (
            0,
            start,
        )  # one assignment, which no interrupt divides

    @property
    def done(self) -> int:
        return self._reached[0]

    @property
    def state(self) -> TrainingState:
        return self._reached[1]

    def resume(self, saved: Saved) -> None:
        self.losses[:, : saved.done] = saved.losses
        self._reached = saved.done, saved.state
        if self.recording is not None and saved.measured is not None:
            self.recording.resume(saved.done, saved.measured)

    def go(self, *, past_divergence: bool = False) -> np.ndarray:
        """Train to the last step, and return the loss of each network there, on all points: (networks,).

        Args:
            past_divergence: go on where a network diverges, for the others, until none is left; `diverged`
                has the step then, and the losses of that network mean nothing from there on.
        """
        reference = self._reference()
        bar = Bar(self.settings.progress, self.settings.steps, "step", "training", self.done)
        try:
            self._chunks(bar, BLOWN_UP * reference, past_divergence)
        except KeyboardInterrupt:
            self._save()
            raise
        finally:
            bar.close()
        final = self._losses(self.state)
        bad = ~(final <= WORSE * reference) & (self.diverged < 0)
        if bad.any() and not past_divergence:
            raise self._divergence(self.done, final)
        self.diverged[bad] = self.done
        return final

    def _chunks(self, bar: Bar, limit: np.ndarray, past_divergence: bool) -> None:
        count = 1  # the first step compiles
        while self.done < self.settings.steps and (self.diverged < 0).any():
            began, before = time.perf_counter(), self.done
            allowed = np.where(self.diverged < 0, limit, np.nan)
            self._chunk(min(count, self._until_pause()), allowed, past_divergence)
            loss = float(self.losses[:, self.done - 1].mean())
            bar.update(self.done - before, f"loss {loss:.3g}")
            if self._is_time_to_save():
                self._save()
            elif time.perf_counter() - began < SECONDS / 2:
                count = min(2 * count, CHUNK)

    def _chunk(self, count: int, limit: np.ndarray, past_divergence: bool) -> None:
        done, state, losses = self._advance(
            self.state,
            self.keys,
            self.x,
            self.y,
            np.int32(self.done),
            np.int32(count),
            jnp.asarray(limit),
        )
        after = self.done + int(done)
        self.losses[:, self.done : after] = np.asarray(losses)[: int(done)].T
        last = self.losses[:, after - 1]
        bad = ~(last <= limit) & ~np.isnan(limit)  # also if the loss is NaN
        if bad.any() and not past_divergence:
            raise self._divergence(after - 1, last)
        self.diverged[bad] = after - 1
        self._reached = after, state

    def _advance(self, *arguments: Any) -> tuple[Array, TrainingState, Array]:
        """`advance`, with measurements if there is a watch; it has them even of a run that diverges."""
        if self.recording is None:
            return advance(self.learner, *arguments)
        watching = self.recording
        done, state, losses, record = advance_and_watch(
            self.learner,
            watching.recorder,
            *arguments,
            watching.record,
            self.start,
            watching.watched,
        )
        watching.publish(record)
        return done, state, losses

    def _until_pause(self) -> int:
        left = self.settings.steps - self.done
        every = self.settings.checkpoint_every
        return left if self.checkpoints is None else min(left, every - self.done % every)

    def _is_time_to_save(self) -> bool:
        at_end = self.done == self.settings.steps
        return at_end or self.done % self.settings.checkpoint_every == 0

    def _save(self) -> None:
        if self.checkpoints is not None and self.done:
            measured = None if self.recording is None else self.recording.measured(self.done)
            losses = self.losses[:, : self.done]
            self.checkpoints.save(Saved(self.done, self.state, losses, measured))

    def _losses(self, state: TrainingState) -> np.ndarray:
        return np.asarray(losses_on_all(self.learner, state, self.x, self.y))

    def _reference(self) -> np.ndarray:
        """The loss at the start or that of predicting 0, whichever is larger: (networks,)."""
        first = self._losses(self.start)
        largest = np.finfo(first.dtype).max / BLOWN_UP
        squares = np.square(self.y).sum(axis=(-2, -1))  # of each network's own targets, if any
        return np.minimum(np.maximum(first, 0.5 * squares), largest)

    def _divergence(self, step: int, losses: np.ndarray) -> DivergedError:
        worst = int(np.argmax(np.where(np.isfinite(losses), losses, np.inf)))
        one = jax.tree.map(lambda leaf: leaf[0], self.start.params)
        return DivergedError(
            step,
            worst,
            float(losses[worst]),
            float(self._losses(self.start)[worst]),
            self.learner.batches.points,
            limit=stability.max_learning_rate(self.learner, self.start, self.x),
            rate=stability.plain_rate(self.learner, one),
        )
