"""Networks of one width beside their limit."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Float, Float64

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.errors import DivergedError
from lnkernel.finite.build import network
from lnkernel.finite.comparison.descent import Descent
from lnkernel.finite.comparison.row import Row
from lnkernel.finite.empirical.estimate import estimate
from lnkernel.finite.empirical.tangent import empirical_ntk
from lnkernel.finite.training.ensemble import Ensemble, train_ensemble
from lnkernel.gp.fit import matrix
from lnkernel.gp.posterior import Posterior
from lnkernel.gram.kernel import ntk
from lnkernel.types import Array, Outputs

KERNEL_POINTS = 200  # at which kernels are compared, at most
ATTEMPTS = 5  # at ever smaller learning rates
NEAR = 10  # times the goal: the networks' own eigenvalues scatter about those of the limit


class Task(NamedTuple):
    """What is the same at every width."""

    arch: Node
    data: Data
    x_eval: Float64[np.ndarray, "m d"]
    limit: Posterior
    descent: Descent
    seeds: list[int]
    goal: float
    max_steps: int
    dtype: Any
    progress: bool | None

    @property
    def targets(self) -> np.ndarray:
        return self.data.y[:, 0] if self.data.one_output else self.data.y

    @property
    def kernel_points(self) -> np.ndarray:
        points = np.concatenate([self.data.x, self.x_eval])
        few = np.linspace(0, len(points) - 1, min(len(points), KERNEL_POINTS)).round().astype(int)
        return points[few]


def compare_at_width(task: Task, width: int) -> Row:
    """Train the networks of this width, and compare."""
    points = task.kernel_points
    theta = matrix(ntk(task.arch), points)
    ends = np.diagonal(theta)
    scale = np.sqrt(np.where(ends > 0, ends, 1.0))  # where Θ(x, x) = 0, so is Θ̂(x, x)

    def distance(a: Float[np.ndarray, "p p"], b: Float[np.ndarray, "p p"]) -> float:
        return float(np.sqrt(np.mean(np.square((a - b) / scale / scale[:, None]))))

    rate, steps, trained = _train(task, width, float(task.limit.max_learning_rate) / 2)
    errors, drifts = [], []
    for seed, end in zip(task.seeds, trained.networks, strict=True):
        with jax.enable_x64(task.dtype == np.float64):
            start = network(task.arch, points.shape[1], width, rngs=seed, dtype=task.dtype)
        before = empirical_ntk(start, points).astype(np.float64)
        errors.append(distance(before, theta))
        drifts.append(distance(empirical_ntk(end, points), before))
    error, drift = estimate(errors), estimate(drifts)
    outputs = np.asarray(trained(task.x_eval), np.float64)
    stopped = task.limit.after(steps, rate)
    loss = float(np.mean(trained.loss))
    return Row(
        width=width,
        ntk_error=float(error.mean),
        ntk_error_se=float(error.standard_error),
        drift=float(drift.mean),
        drift_se=float(drift.standard_error),
        mean=outputs.mean(0),
        std=outputs.std(0, ddof=1),
        expected_mean=as_columns(stopped.mean(task.x_eval)),
        expected_std=as_spread(stopped.ensemble_variance(task.x_eval), task.data),
        max_output=float(np.abs(outputs).max()),
        loss=loss,
        expected_loss=task.descent.loss(steps, rate),
        learning_rate=rate,
        steps=steps,
        converged=loss <= NEAR * task.goal * task.descent.start,
    )


def _train(
    task: Task, width: int, rate: float, attempts: int = ATTEMPTS
) -> tuple[float, int, Ensemble]:
    """The learning rate at which all networks stay stable, the number of steps, the networks."""
    steps = task.descent.steps(rate, task.goal, task.max_steps)
    try:
        made = train_ensemble(
            task.arch,
            task.data.x,
            task.targets,
            task.seeds,
            optax.sgd(rate),
            steps,
            width=width,
            dtype=task.dtype,
            progress=task.progress,
        )
        return rate, steps, made
    except DivergedError:
        if attempts == 1:
            raise
    return _train(task, width, rate / 2, attempts - 1)


def as_columns(values: Outputs) -> Float64[np.ndarray, "m k"]:
    """(m,) or (m, k) as (m, k)."""
    made = np.asarray(values)
    return made[:, None] if made.ndim == 1 else made


def as_spread(variance: Float64[Array, " m"], data: Data) -> Float64[np.ndarray, "m k"]:
    """The standard deviation, the same for every output: (m, k)."""
    return np.repeat(np.sqrt(np.asarray(variance))[:, None], data.y.shape[1], axis=1)
