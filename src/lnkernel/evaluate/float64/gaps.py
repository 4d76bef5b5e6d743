"""Angles from their cosines, where that is exact enough."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

DELICATE = 2.0**-8  # angles below which the quick way leaves a pair to the careful one


def with_gap(c: Array) -> tuple[Array, Array, Array]:
    """(w, z, c); w and z are NaN where too few digits would be left of a small one.

    Both are, so that no rule takes the angle for an obtuse one and goes on with the other.
    """
    w, z = 0.5 - 0.5 * c, 0.5 + 0.5 * c
    good = (w > DELICATE) & (z > DELICATE)
    return jnp.where(good, w, jnp.nan), jnp.where(good, z, jnp.nan), c
