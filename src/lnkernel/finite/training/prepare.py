"""From checked arguments to a run that is ready to go: the same for one network and for many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from lnkernel.errors import CheckpointError, InputError
from lnkernel.finite.training.arguments import Settings
from lnkernel.finite.training.batches import Batches
from lnkernel.finite.training.checkpoint import ELSEWHERE, NO_WATCH, Checkpoints, identity
from lnkernel.finite.training.data import TrainingData
from lnkernel.finite.training.fingerprint import recognise
from lnkernel.finite.training.placement import Placement
from lnkernel.finite.training.program import Learner, TrainingState, initial_state
from lnkernel.finite.training.run import TrainingRun
from lnkernel.finite.watching.recording import Recording
from lnkernel.finite.watching.watch import Watch

SHUFFLE = 1  # folded into a seed's key, so that what shuffles is not what initialises


@contextmanager
def prepare_run(
    graph: Any,
    wrt: Any,
    params: Any,
    rest: Any,
    optimizer: Any,
    data: TrainingData,
    seeds: list[int],
    settings: Settings,
    rows: int | None = None,
    watch: Watch | None = None,
    optimizer_state: Any = None,
    place: Placement | None = None,
) -> Iterator[TrainingRun]:
    """A run of networks that are stacked along the first axis of `params` and `rest`.

    `rows`: how many a full-batch step takes at a time, for networks that take each by itself.
    `optimizer_state`: in place of the optimizer's own at the start, stacked like `params`; by it each
    network can have a learning rate of its own that is no part of the compiled program.
    """
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    if place is not None:
        x, y = (place.of_networks if data.own else place.of_all)((x, y))
        params, rest = place.of_networks((params, rest))
    one = jax.tree.map(lambda leaf: leaf[0], params)
    batches = Batches(data.points, settings.batch_size or data.points)
    learner = Learner(graph, wrt, recognise(optimizer, one), batches, rows, data.own)
    start = initial_state(learner, params, rest)
    if optimizer_state is not None:
        start = start._replace(optimizer=optimizer_state)
    _check_outputs(learner, start, x, y)
    keys = jnp.stack([jax.random.fold_in(jax.random.key(seed), SHUFFLE) for seed in seeds])
    keys = keys if place is None else place.of_networks(keys)
    recording = None if watch is None else Recording(watch, learner, start, seeds, settings.steps)
    if settings.checkpoint is None:
        yield TrainingRun(learner, start, keys, x, y, settings, None, recording)
        return
    known = identity(learner, start, x, y, seeds)
    known["watch"] = NO_WATCH if recording is None else recording.identity()
    checkpoints = Checkpoints(settings.checkpoint, known)
    try:
        run = TrainingRun(learner, start, keys, x, y, settings, checkpoints, recording)
        saved = checkpoints.latest(start, None if recording is None else recording.template)
        if saved is not None and saved.done > settings.steps:
            problem = f"is at step {saved.done}, beyond steps={settings.steps}"
            raise CheckpointError(checkpoints.path, problem, ELSEWHERE)
        if saved is not None:
            state = saved.state if place is None else place.of_networks(saved.state)
            run.resume(saved._replace(state=state))
        yield run
    finally:
        checkpoints.close()


def _check_outputs(learner: Learner, start: TrainingState, x: Any, y: Any) -> None:
    one = jax.tree.map(lambda leaf: leaf[0], start)
    some = (x[0] if learner.own_data else x)[: learner.batches.size]
    made, _ = jax.eval_shape(learner.outputs, one.params, one.rest, some)
    if made.shape[-1] != y.shape[-1]:
        raise InputError(
            "y",
            f"as many outputs as the network has, {made.shape[1]}",
            f"{y.shape[-1]} for each point",
            "Give the last layer of the network as many outputs as y has columns",
        )
