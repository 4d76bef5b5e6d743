"""Networks of sines of one depth, of all frequencies, pictures and seeds, trained in one program."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Float64

from lnkernel.experiments.alignment_measures import ORDER, measures
from lnkernel.experiments.alignment_plan import RATE, WIDTH, AlignmentPlan, Kind
from lnkernel.experiments.siren import siren
from lnkernel.finite.training.arguments import settings_of
from lnkernel.finite.training.blocks import rows_at_a_time
from lnkernel.finite.training.data import as_ensemble_data
from lnkernel.finite.training.ensemble import stack
from lnkernel.finite.training.prepare import prepare_run
from lnkernel.finite.training.program import predict
from lnkernel.finite.watching.watch import watch
from lnkernel.tangents.alignment import roc_auc


class Task(NamedTuple):
    """A picture to learn, from its coordinates in the square from -1 to 1."""

    name: str
    picture: Float64[np.ndarray, "side side"]
    finer: Float64[np.ndarray, "more more"]  # the same, larger, to evaluate on
    edges: np.ndarray  # which pixels of `picture` are on edges


class Trial(NamedTuple):
    """One network: its kind, its picture, its seed."""

    kind: Kind
    task: Task
    seed: int


def grid(side: int) -> Float64[np.ndarray, "pixels 2"]:
    """The middles of the pixels in the square from -1 to 1, row by row.

    >>> grid(2)
    array([[-0.5, -0.5],
           [-0.5,  0.5],
           [ 0.5, -0.5],
           [ 0.5,  0.5]])
    """
    line = (2 * np.arange(side) + 1) / side - 1
    return np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)


def train_trials(trials: list[Trial], plan: AlignmentPlan, progress: bool) -> dict[str, np.ndarray]:
    """Train networks of one depth, and measure on the way: arrays (networks, times), the step of
    every time, the first eigenvectors, and the loss on the finer grid."""
    x = grid(plan.side)
    X = np.stack([x] * len(trials))
    y = np.stack([trial.task.picture.ravel() for trial in trials])
    numbers = list(range(len(trials)))
    w = watch(X, y, measures(plan.scattered), at=plan.times, loss="half-mean")
    data = as_ensemble_data(X, y, len(trials), np.dtype(np.float32))
    settings = settings_of(len(x), plan.steps, None, None, 1000, progress)
    networks = [siren(t.kind.depth, WIDTH, t.kind.omega, t.seed) for t in trials]
    graph, params, rest = stack(networks)
    rate = optax.sgd(RATE / len(x))  # half the mean; a run's loss is half the sum
    rows = rows_at_a_time(len(trials))
    with prepare_run(
        graph, nnx.Param, params, rest, rate, data, numbers, settings, rows, watch=w
    ) as run:
        run.go()
        fine = np.asarray(predict(run.learner, run.state, _finer_inputs(plan, len(trials))))
    made = {name: w[name] for name in w.names if name != "order"}
    made |= {name: w["order"][..., i] for i, name in enumerate(ORDER)}
    made["auc"] = np.array(
        [
            [float(roc_auc(jnp.asarray(v), jnp.asarray(t.task.edges.ravel()))) for v in of_one]
            for t, of_one in zip(trials, made["principal"], strict=True)
        ]
    )
    large = np.stack([trial.task.finer.ravel() for trial in trials])
    made["finer loss"] = 0.5 * np.mean((fine[..., 0] - large) ** 2, 1)
    return {**made, "steps": w.steps}


def _finer_inputs(plan: AlignmentPlan, many: int) -> np.ndarray:
    return np.stack([grid(plan.side * plan.finer)] * many).astype(np.float32)
