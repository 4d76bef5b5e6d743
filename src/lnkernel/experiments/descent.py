"""Gradient descent of networks of one shape, each with a rate of its own, watched in one program.

The rates are no part of the compiled program, so that one program serves all of them; and a network that
diverges is told and does not stop the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from lnkernel.finite.training.arguments import settings_of
from lnkernel.finite.training.blocks import rows_at_a_time
from lnkernel.finite.training.data import as_ensemble_data
from lnkernel.finite.training.ensemble import stack
from lnkernel.finite.training.prepare import prepare_run
from lnkernel.finite.training.program import predict
from lnkernel.finite.watching.watch import Watch


class Descent(NamedTuple):
    """What became of the networks."""

    steps: np.ndarray  # where they were measured, (m,)
    diverged: np.ndarray  # the step where a network diverged, or -1: (networks,)
    values: dict[str, np.ndarray]  # every measure, (networks, m, ...); NaN for those that diverged
    outputs: (
        np.ndarray | None
    )  # of the trained networks at `predict_at`, (networks, points, outputs)


def descend(
    networks: Sequence[nnx.Module],
    x: np.ndarray,
    y: np.ndarray,
    rates: Sequence[float],
    steps: int,
    w: Watch,
    *,
    progress: bool = False,
    predict_at: np.ndarray | None = None,
) -> Descent:
    """Gradient descent on half the sum of the squared errors.

    Args:
        networks: of one shape, in one precision.
        x, y: the data, those of all networks or of each, with the networks along the first axis.
        rates: one for each network.
        steps: how many.
        w: what to measure.
        progress: whether to show a bar.
        predict_at: inputs at which the trained networks are evaluated, for all or for each.
    """
    many, grid = len(networks), w.choose_steps(steps)
    graph, params, rest = stack(list(networks))
    dtype = jnp.result_type(*jax.tree.leaves(params))
    with jax.enable_x64(dtype == np.float64):
        data = as_ensemble_data(x, y, many, dtype)
        settings = settings_of(data.points, steps, None, None, 1000, progress)
        optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=1.0)
        start = jax.vmap(lambda p, rate: _with_rate(optimizer, p, rate))(
            params, jnp.asarray(rates, dtype)
        )
        rows, seeds = rows_at_a_time(many), list(range(many))
        with prepare_run(
            graph, nnx.Param, params, rest, optimizer, data, seeds, settings, rows, w, start
        ) as run:
            run.go(past_divergence=True)
            outputs = None
            if predict_at is not None:
                there = jnp.asarray(predict_at, dtype)
                each_its_own = there.ndim == 3
                outputs = np.asarray(predict(run.learner, run.state, there, each_its_own))
    values = {name: _whole(w[name], len(grid), run.diverged) for name in w.names}
    return Descent(grid, run.diverged, values, outputs)


def _with_rate(optimizer: Any, params: Any, rate: jax.Array) -> Any:
    return optimizer.init(params)._replace(hyperparams={"learning_rate": rate})


def _whole(values: np.ndarray, many: int, diverged: np.ndarray) -> np.ndarray:
    """The measurements, with NaN for all of a network that diverged, and where none was left to measure."""
    made = np.full((len(values), many, *values.shape[2:]), np.nan)
    made[:, : values.shape[1]] = values
    made[diverged >= 0] = np.nan
    return made
