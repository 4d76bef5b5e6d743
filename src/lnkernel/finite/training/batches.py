"""Which points a step sees: all, or a mini-batch of an epoch that is shuffled by a key.

Epoch e visits the points in the order `permutation(fold_in(key, e))`, in batches; where the batch
size does not divide the number of points, the last batch of an epoch is smaller. The order depends
on key and epoch only, so that a run can start at any step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Batches(NamedTuple):
    """The division of so many points into batches of one size."""

    points: int
    size: int

    @property
    def whole(self) -> bool:
        """Whether every step sees all points, in their own order."""
        return self.size == self.points

    @property
    def per_epoch(self) -> int:
        return -(-self.points // self.size)

    def order(self, key: Array, step: Array) -> Array:
        """The order of the points in the epoch to which this step belongs: (points,)."""
        if self.whole:
            return jnp.zeros(0, jnp.int32)  # not needed
        epoch = jax.random.fold_in(key, step // self.per_epoch)
        return jax.random.permutation(epoch, self.points).astype(jnp.int32)

    def renew_order(self, order: Array, key: Array, step: Array) -> Array:
        """The order at this step, given that of the step before."""
        if self.whole:
            return order
        begins = step % self.per_epoch == 0
        return jax.lax.cond(begins, lambda: self.order(key, step), lambda: order)

    def choose_points(self, order: Array, step: Array) -> tuple[Array, Array]:
        """The points of a step's batch, (size,), and which of them count.

        A last, smaller batch is filled up with points that do not count.
        """
        place = (step % self.per_epoch) * self.size + jnp.arange(self.size)
        return order[place % self.points], place < self.points
