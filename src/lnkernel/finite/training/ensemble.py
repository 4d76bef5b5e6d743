"""Training of many networks of one architecture, which differ by their random start."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from lnkernel.arch.facts import acts_on_positions
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.arrays import as_inputs
from lnkernel.check.numbers import as_seeds
from lnkernel.errors import InputError, TrainingInterrupted
from lnkernel.finite.build import network
from lnkernel.finite.training.arguments import check_optimizer, precision_of, settings_of
from lnkernel.finite.training.blocks import rows_at_a_time
from lnkernel.finite.training.data import as_ensemble_data, as_training_data, is_of_each
from lnkernel.finite.training.placement import placement
from lnkernel.finite.training.prepare import prepare_run
from lnkernel.finite.training.program import Learner, TrainingState, predict, take_apart
from lnkernel.finite.watching.watch import Watch
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.sharded import Layout
from lnkernel.precision import as_own_numpy
from lnkernel.tangents.inputs import convert
from lnkernel.types import Array, Outputs

# for all networks alike, or for each its own, also as a list of arrays
EnsembleInputs = Float[Array, "m d"] | Float[Array, "seeds m d"] | ArrayLike
EnsembleTargets = (
    Float[Array, " m"] | Float[Array, "m k"] | Float[Array, "seeds m k"] | ArrayLike
)  # also (seeds, m), where each network has its own
ADAM = optax.adam(1e-3)
ROWS = 4096  # points that are predicted at a time


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Networks that `train_ensemble` has trained. Called on x (m, d), it gives (seeds, m, k)."""

    seeds: list[int]
    loss: Float[np.ndarray, " seeds"]  # of each network after the last step, on all points
    losses: Float[np.ndarray, "seeds steps"]  # before each step, as the step saw it
    _learner: Learner
    _state: TrainingState
    _dimension: int | tuple[int, ...]  # of images and sequences the shape of one
    _one_output: bool

    def __repr__(self) -> str:
        many, steps = self.losses.shape
        return f"Ensemble(seeds={many}, steps={steps}, loss={self.loss.mean():.3g})"

    def __call__(self, x: EnsembleInputs) -> Float[Array, "seeds m k"]:
        """The outputs of all networks at the points x (m, d): (seeds, m, k), in their precision.

        x (seeds, m, d) are points for each network of its own. Of networks on images x is (m, ...).
        """
        dtype = self.losses.dtype
        inputs = convert("x", self._points(x), dtype)
        own = isinstance(self._dimension, int) and inputs.ndim == 3
        points, rows = inputs.shape[own], _rows(ROWS, self._dimension)
        with jax.enable_x64(dtype == np.float64):
            parts = [
                predict(
                    self._learner,
                    self._state,
                    inputs[:, start : start + rows] if own else inputs[start : start + rows],
                    own,
                )
                for start in range(0, points, rows)
            ]
            outputs = jnp.concatenate(parts, axis=1)
        return as_own_numpy(outputs)

    def mean(self, x: EnsembleInputs) -> Outputs:
        """The networks' mean output at x (m, d): (m,), or (m, k) if y had columns, float64.

        It is what `Posterior.mean` predicts, in the same shape.
        """
        return self._as_targets(np.asarray(self(x), np.float64).mean(axis=0))

    def std(self, x: EnsembleInputs) -> Outputs:
        """The standard deviation over the networks at x (m, d), shaped like `mean`, float64.

        It estimates the square root of `Posterior.ensemble_variance`, with n - 1 in the denominator.
        """
        if len(self.seeds) < 2:
            raise InputError(
                "seeds", "at least 2 networks for a spread", "1", "Train with seeds=2 or more"
            )
        return self._as_targets(np.asarray(self(x), np.float64).std(axis=0, ddof=1))

    @cached_property
    def networks(self) -> list[nnx.Module]:
        """The trained networks, one by one."""
        with jax.enable_x64(self.losses.dtype == np.float64):
            states = [
                jax.tree.map(lambda leaf, i=i: leaf[i], self._state) for i in range(len(self.seeds))
            ]
            return [nnx.merge(self._learner.graph, s.params, s.rest) for s in states]

    def _points(self, x: Any) -> np.ndarray:
        if isinstance(self._dimension, tuple) or not is_of_each(x):
            return as_inputs(x, self._dimension)
        if len(x) != len(self.seeds):
            raise InputError(
                "x",
                f"points for each of the {len(self.seeds)} networks, along the first axis",
                f"{len(x)} times {np.shape(x[0])}",
                "Give (m, d) for points that are the same for all",
            )
        return np.stack([as_inputs(points, self._dimension) for points in x])

    def _as_targets(self, values: Float64[np.ndarray, "m k"]) -> Outputs:
        return values[:, 0] if self._one_output else values


def train_ensemble(
    arch: Architecture,
    X: EnsembleInputs,
    y: EnsembleTargets,
    seeds: int | Iterable[int] = 5,
    optimizer: optax.GradientTransformation = ADAM,
    steps: int = 3000,
    *,
    width: int | None = None,
    parameterization: str = "ntk",
    batch_size: int | None = None,
    dtype: DTypeLike = jnp.float32,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    progress: bool | None = None,
    watch: Watch | None = None,
    sharding: Layout | None = None,
) -> Ensemble:
    r"""Train networks of one architecture from different random starts, all in one program.

    Each is trained as by `train`, on the loss $\frac12\sum_{i,j} (f_j(x_i) - y_{ij})^2$ (half the
    SUM of the squared errors, as in `Posterior.after`); that of seed s is
    `network(arch, d, width, rngs=s)`, and its mini-batches are those of `train(..., seed=s)`.

    Args:
        arch: the network.
        X: inputs, (n, d); or (seeds, n, d), where each network has data of its own. Images and sequences, (n, ...),
            are the same for all.
        y: targets, (n,) or, for k outputs, (n, k); or those for each, (seeds, n) or (seeds, n, k).
        seeds: how many networks, with the seeds 0, 1, ...; or a list of seeds.
        optimizer: any optimizer of optax; by default `optax.adam(1e-3)`.
        steps: how many steps the optimizer takes.
        width: the width of the hidden layers; by default their own.
        parameterization: "ntk" or "standard", see `network`.
        batch_size: points in a mini-batch, see `train`; by default all points.
        dtype: float32 or float64.
        checkpoint: a folder to go on from after an interruption, see `train`.
        checkpoint_every: steps from one checkpoint to the next.
        progress: whether to show a bar; by default when it takes more than 2 seconds.
        watch: what to measure of every network on the way, see `lnkernel.watch`.
        sharding: a `jax.sharding.Sharding` or `Mesh`, over whose devices the networks are dealt out; their number is a
            multiple of that of the devices. Each network is the same as without.

    >>> import numpy as np, lnkernel as lnk
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> arch = lnk.mlp(norm="first")
    >>> e = lnk.finite.train_ensemble(arch, X, np.sin(X[:, 0]), seeds=3, steps=300, width=32)
    >>> e([[0.5], [100.0]]).shape, e.mean([[0.5], [100.0]]).shape, e.losses.shape
    ((3, 2, 1), (2,), (3, 300))
    """
    check_optimizer(optimizer)
    chosen, precision = as_seeds(seeds, 1), precision_of(dtype)
    place = placement(sharding, len(chosen))
    with jax.enable_x64(precision == np.float64):
        described = as_architecture(arch)
        of_positions = acts_on_positions(described)
        data = (
            as_training_data(X, y, precision)
            if of_positions
            else as_ensemble_data(X, y, len(chosen), precision)
        )
        settings = settings_of(
            data.points, steps, batch_size, checkpoint, checkpoint_every, progress
        )
        d = data.x.shape[1:] if of_positions else data.x.shape[-1]
        start = partial(
            network, described, d, width, parameterization=parameterization, dtype=precision
        )
        first = start(rngs=chosen[0])
        _demand_memory(first, len(chosen), optimizer)
        known = list(chosen)
        graph, params, rest = stack([first, *(start(rngs=seed) for seed in known[1:])])
        together = rows_at_a_time(len(known))
        rows = None if together is None else _rows(together, d)
        with prepare_run(
            graph,
            nnx.Param,
            params,
            rest,
            optimizer,
            data,
            known,
            settings,
            rows,
            watch,
            place=place,
        ) as run:

            def result(loss: np.ndarray) -> Ensemble:
                losses = run.losses[:, : run.done]
                return Ensemble(known, loss, losses, run.learner, run.state, d, data.one_output)

            try:
                return result(run.go())
            except KeyboardInterrupt:
                partly = result(np.full(len(known), np.nan))
                raise TrainingInterrupted(partly, run.done) from None


def _demand_memory(one: nnx.Module, count: int, optimizer: optax.GradientTransformation) -> None:
    """An error for networks like this one, so many, that do not fit into memory while they are trained."""
    params = nnx.state(one, nnx.Param)
    kept = jax.eval_shape(optimizer.init, params)
    leaves = jax.tree.leaves(
        (params, params, kept)
    )  # numbers, their gradients, the optimizer's own
    demand_memory(
        count,
        1,
        f"The training of {_so_many(count)} {sum(leaf.size for leaf in leaves):,} numbers with gradients and "
        "what the optimizer keeps,",
        m=sum(leaf.size * leaf.dtype.itemsize for leaf in leaves),
        itemsize=1,
        remedy="Take fewer seeds or a smaller width" if count > 1 else "Take a smaller width",
    )


def _so_many(count: int) -> str:
    return "one network of" if count == 1 else f"{count} networks, each of"


def _rows(rows: int, dimension: int | tuple[int, ...]) -> int:
    """So many rows at a time; of images as many positions."""
    return rows if isinstance(dimension, int) else max(rows // math.prod(dimension[:-1]), 1)


def stack(networks: list[Any]) -> tuple[Any, Any, Any]:
    """The networks' common structure, and their variables stacked along a new first axis."""
    graphs, *parts = zip(*(take_apart(one, nnx.Param) for one in networks), strict=True)
    params, rest = (jax.tree.map(lambda *leaves: jnp.stack(leaves), *part) for part in parts)
    return graphs[0], params, rest
