"""Training of one network, any module of Flax NNX."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Float

from lnkernel.check.numbers import as_seeds
from lnkernel.errors import InputError, TrainingInterrupted
from lnkernel.finite.training.arguments import check_module, check_optimizer, settings_of
from lnkernel.finite.training.data import as_training_data
from lnkernel.finite.training.prepare import prepare_run
from lnkernel.finite.training.program import take_apart
from lnkernel.finite.watching.watch import Watch
from lnkernel.types import Inputs, Targets


@dataclass(frozen=True, eq=False)
class Training:
    """A network that `train` has trained."""

    network: nnx.Module  # the one that was given
    loss: float  # after the last step, on all points
    losses: Float[np.ndarray, " steps"]  # before each step, as the step saw it

    def __repr__(self) -> str:
        name = type(self.network).__name__
        return f"Training({name}, steps={self.losses.size}, loss={self.loss:.3g})"


def train(
    network: nnx.Module,
    X: Inputs,
    y: Targets,
    optimizer: optax.GradientTransformation,
    steps: int,
    batch_size: int | None = None,
    *,
    wrt: Any = nnx.Param,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    progress: bool | None = None,
    watch: Watch | None = None,
) -> Training:
    r"""Train a network on the loss $\frac12\sum_{i,j} (f_j(x_i) - y_{ij})^2$, in place.

    The network itself is changed, as by an `nnx.Optimizer`. The loss is half the SUM of the squared
    errors, as in `Posterior.at` and `.after`, so that with `optax.sgd(rate)` a wide network in NTK
    parametrisation follows `Posterior.after(steps, rate)`; a learning rate meant for the mean of
    the squared errors is to be multiplied by 2/(n k).

    Args:
        network: any `flax.nnx.Module` that maps (n, ...) to (n, k) or (n,). Its precision is that
            of its parameters; the data are converted to it. Statistics and random keys among its
            variables are carried along.
        X: inputs, (n, ...).
        y: targets, (n,) or, for k outputs, (n, k).
        optimizer: any optimizer of optax.
        steps: how many steps the optimizer takes.
        batch_size: points in a mini-batch. Every epoch visits all points once, in an order of its own;
            its last batch may be smaller. A batch of b points weighs n/b in the loss.
        wrt: which variables are trained, a filter of NNX.
        seed: for the order of the points in mini-batches.
        checkpoint: a folder. A run that was stopped, by whatever cause, goes on from the last
            checkpoint there when it is started again, to the same result, bit for bit.
        checkpoint_every: steps from one checkpoint to the next.
        progress: whether to show a bar; by default when it takes more than 2 seconds.
        watch: what to measure on the way, see `lnkernel.watch`.

    If the loss diverges a `DivergedError` tells the stable learning rate, and the network is as it
    was before. An interrupt leaves the network (and the checkpoint) as far as it got.

    >>> import numpy as np, optax, lnkernel as lnk
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> net = lnk.finite.network(lnk.mlp(norm="first"), in_dim=1, width=32, rngs=0)
    >>> result = lnk.finite.train(net, X, np.sin(X[:, 0]), optax.adam(1e-2), steps=300)
    >>> result.network is net, result.losses.shape, result.loss < 0.1
    (True, (300,), True)
    """
    check_module(network)
    check_optimizer(optimizer)
    graph, params, rest = take_apart(network, wrt)
    dtype = _precision(network, params)
    with jax.enable_x64(dtype == np.float64):
        data = as_training_data(X, y, dtype)
        settings = settings_of(
            len(data.x), steps, batch_size, checkpoint, checkpoint_every, progress
        )
        params, rest = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (params, rest))
        seeds = list(as_seeds([seed], 1))
        with prepare_run(
            graph, wrt, params, rest, optimizer, data, seeds, settings, watch=watch
        ) as run:

            def result(loss: float) -> Training:
                state = jax.tree.map(lambda leaf: leaf[0], run.state)
                nnx.update(network, state.params, state.rest)
                return Training(network, loss, run.losses[0, : run.done])

            try:
                return result(float(run.go()[0]))
            except KeyboardInterrupt:
                raise TrainingInterrupted(result(math.nan), run.done) from None


def _precision(network: Any, params: Any) -> Any:
    leaves = jax.tree.leaves(params)
    if not leaves:
        raise InputError(
            "network",
            "at least one variable to train, an nnx.Param by default",
            f"{type(network).__name__} without any",
            "Make its parameters variables of type flax.nnx.Param, or select others by wrt=...",
        )
    return jnp.result_type(*leaves)
