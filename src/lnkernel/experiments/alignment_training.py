"""Networks of sines of one depth, of all frequencies, pictures and seeds, trained in one program."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from lnkernel.experiments.alignment_measures import ORDER, measures
from lnkernel.experiments.alignment_plan import RATE, WIDTH, AlignmentPlan, Kind
from lnkernel.experiments.descent import descend
from lnkernel.experiments.siren import siren
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
    every time, the first eigenvectors, and the loss on the finer grid. A network that diverges has its
    step in `diverged`, where others have -1, and NaN everywhere else; it does not stop the others."""
    x = grid(plan.side)
    X = np.stack([x] * len(trials))
    y = np.stack([trial.task.picture.ravel() for trial in trials])
    w = watch(X, y, measures(plan.scattered), at=plan.times, loss="half-mean")
    networks = [siren(t.kind.depth, WIDTH, t.kind.omega, t.seed) for t in trials]
    rates = [RATE / len(x)] * len(trials)  # of half the mean, for half the sum
    fine = np.stack([grid(plan.side * plan.finer)] * len(trials))
    run = descend(networks, X, y, rates, plan.steps, w, progress=progress, predict_at=fine)
    assert run.outputs is not None
    made = {name: values for name, values in run.values.items() if name != "order"}
    made |= {name: run.values["order"][..., i] for i, name in enumerate(ORDER)}
    made["auc"] = np.array(
        [
            [float(roc_auc(jnp.asarray(v), jnp.asarray(t.task.edges.ravel()))) for v in of_one]
            for t, of_one in zip(trials, made["principal"], strict=True)
        ]
    )
    large = np.stack([trial.task.finer.ravel() for trial in trials])
    made["finer loss"] = 0.5 * np.mean((run.outputs[..., 0] - large) ** 2, 1)
    gone = run.diverged >= 0
    made["auc"][gone], made["finer loss"][gone] = np.nan, np.nan
    return {**made, "steps": run.steps, "diverged": run.diverged}
