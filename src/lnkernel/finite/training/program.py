r"""The compiled program: many steps of training of many networks at once.

The loss is half the sum of the squared errors, $\frac12\sum_{i,j} (f_j(x_i) - y_{ij})^2$, over points
and outputs, the one of `Posterior.at` and `.after`. A mini-batch of b of the n points estimates it,
without bias, by n/b times the sum over the batch, so that a learning rate means the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from lnkernel.finite.training.batches import Batches
from lnkernel.finite.training.blocks import sum_over_blocks

CHUNK = 1024  # steps of one call, at most


def take_apart(network: Any, trained: Any) -> tuple[Any, Any, Any]:
    """The structure of a network, the variables to train and all others, as plain arrays."""
    graph, *states = nnx.split(network, trained, ...)
    params, rest = map(nnx.as_pure, states)
    return graph, params, rest


class TrainingState(NamedTuple):
    """What training changes. In a run every leaf has the networks along its first axis."""

    params: Any
    rest: Any  # the network's other variables: statistics, random keys
    optimizer: Any


class Learner(NamedTuple):
    """What training does not change: it is compiled into the program, and is the key to it."""

    graph: Any  # the network's structure
    trained: Any  # the filter of NNX that selects the variables to train
    optimizer: optax.GradientTransformationExtraArgs
    batches: Batches
    rows: int | None = None  # at a time, in steps that see all points; None is all of them
    own_data: bool = False  # whether x and y have the networks along their first axis, too

    @property
    def data_axis(self) -> int | None:
        """The axis of x and y that `jax.vmap` maps over the networks."""
        return 0 if self.own_data else None

    def first(self, x: Array, points: int) -> Array:
        """The first so many points, of each network if each has its own."""
        return x[:, :points] if self.own_data else x[:points]

    def outputs(self, params: Any, rest: Any, x: Array) -> tuple[Array, Any]:
        """f(x) as (n, k), and the other variables as this call left them."""
        network = nnx.merge(self.graph, params, rest, copy=True)
        out = network(x)
        return out.reshape(len(x), -1), take_apart(network, self.trained)[2]

    def loss(self, params: Any, rest: Any, x: Array, y: Array, weights: Array) -> tuple[Array, Any]:
        out, after = self.outputs(params, rest, x)
        return 0.5 * jnp.sum(jnp.square(out - y) * weights), after

    def batch(self, x: Array, y: Array, order: Array, step: Array) -> tuple[Array, Array, Array]:
        """The points of one step, and their weights in the loss."""
        if self.batches.whole:
            return x, y, jnp.ones((), y.dtype)
        points, counts = self.batches.choose_points(order, step)
        share = jnp.where(counts, self.batches.points / counts.sum(), 0).astype(y.dtype)
        return x[points], y[points], share[:, None]

    def step(
        self, state: TrainingState, order: Array, key: Array, step: Array, x: Array, y: Array
    ) -> tuple[TrainingState, Array, Array]:
        """One step of one network: the new state, the order of the epoch, the loss before."""
        order = self.batches.renew_order(order, key, step)
        some, targets, weights = self.batch(x, y, order, step)

        def loss(params: Any) -> tuple[Array, Any]:
            return self.loss(params, state.rest, some, targets, weights)

        if self.rows is None or len(some) <= self.rows or not self.batches.whole:
            (value, rest), slope = jax.value_and_grad(loss, has_aux=True)(state.params)
        else:
            value, slope = self.in_blocks(state, some, targets, weights)
            rest = state.rest
        updates, optimizer = self.optimizer.update(
            slope,
            state.optimizer,
            state.params,
            value=value,  # for line searches and the like
            grad=slope,
            value_fn=lambda params: loss(params)[0],
        )
        return (
            TrainingState(optax.apply_updates(state.params, updates), rest, optimizer),
            order,
            value,
        )

    def in_blocks(
        self, state: TrainingState, x: Array, y: Array, weight: Array
    ) -> tuple[Array, Any]:
        """The loss and its gradient, of networks that take every row by itself."""

        def loss(params: Any, x: Array, y: Array) -> Array:
            return self.loss(params, state.rest, x, y, weight)[0]

        assert self.rows is not None
        return sum_over_blocks(partial(jax.value_and_grad(loss), state.params), x, y, self.rows)


@partial(jax.jit, static_argnames="learner")
def initial_state(learner: Learner, params: Any, rest: Any) -> TrainingState:
    """The state before the first step."""
    return TrainingState(params, rest, jax.vmap(learner.optimizer.init)(params))


@partial(jax.jit, static_argnames="learner")
def advance(
    learner: Learner,
    state: TrainingState,
    keys: Array,
    x: Array,
    y: Array,
    start: Array,
    count: Array,
    limit: Array,
) -> tuple[Array, TrainingState, Array]:
    """Up to `count` steps from step `start` on: how many, the state after, the losses before each.

    It ends early after the first step with a loss that is not finite or above `limit`. The number
    of steps is no part of the compiled program, so that there is one for runs of any length, and
    however a run is divided, its numbers are the same.

    Args:
        keys: one for each network, (networks,).
        x, y: the data, with the networks along the first axis if each has its own.
        limit: the largest loss allowed to each network, (networks,); NaN allows all.
    """
    walk = begin_walk(learner, state, keys, y, start)
    walk = walk_on(learner, walk, keys, x, y, start, count, limit)
    return walk.done, walk.state, walk.losses


class Walk(NamedTuple):
    """Steps under way within one call of the program."""

    done: Array
    healthy: Array  # whether all losses were finite and below their limits
    state: TrainingState
    orders: Array
    losses: Array  # before each step, (CHUNK, networks)


def begin_walk(learner: Learner, state: TrainingState, keys: Array, y: Array, start: Array) -> Walk:
    """No step done yet."""
    orders = jax.vmap(learner.batches.order, (0, None))(keys, start)
    losses = jnp.zeros((CHUNK, len(keys)), y.dtype)
    return Walk(jnp.zeros((), jnp.int32), jnp.ones((), bool), state, orders, losses)


def walk_on(
    learner: Learner,
    walk: Walk,
    keys: Array,
    x: Array,
    y: Array,
    start: Array,
    count: Array,
    limit: Array,
) -> Walk:
    """The walk until `count` steps from step `start` on are done, or it is not healthy."""
    steps = jax.vmap(learner.step, (0, 0, 0, None, learner.data_axis, learner.data_axis))

    def goes_on(walk: Walk) -> Array:
        return (walk.done < count) & walk.healthy

    def more(walk: Walk) -> Walk:
        done, _, state, orders, losses = walk
        state, orders, loss = steps(state, orders, keys, start + done, x, y)
        healthy = jnp.all((loss <= limit) | jnp.isnan(limit))  # false for a loss that is NaN
        return Walk(done + 1, healthy, state, orders, losses.at[done].set(loss))

    return jax.lax.while_loop(goes_on, more, walk)


@partial(jax.jit, static_argnames="learner")
def losses_on_all(learner: Learner, state: TrainingState, x: Array, y: Array) -> Array:
    """The loss of each network on all points, in batches: (networks,)."""
    batches = learner.batches

    def part(network: TrainingState, x: Array, y: Array, step: Array) -> Array:
        some, targets, weights = learner.batch(x, y, jnp.arange(batches.points), step)
        counts = weights > 0
        return learner.loss(network.params, network.rest, some, targets, counts)[0]

    def whole(network: TrainingState, x: Array, y: Array) -> Array:
        parts = jax.lax.map(partial(part, network, x, y), jnp.arange(batches.per_epoch))
        return jnp.sum(parts)

    return jax.vmap(whole, (0, learner.data_axis, learner.data_axis))(state, x, y)


@partial(jax.jit, static_argnames=("learner", "own"))
def predict(learner: Learner, state: TrainingState, x: Array, own: bool) -> Array:
    """The outputs of each network, at x (n, ...) or each at its `own` (networks, n, d): (networks, n, k)."""

    def one(network: TrainingState, x: Array) -> Array:
        return learner.outputs(network.params, network.rest, x)[0]

    return jax.vmap(one, (0, 0 if own else None))(state, x)
