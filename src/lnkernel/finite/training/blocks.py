"""Sums over the points in blocks of rows, so small that what a block needs stays in the cache.

A full-batch step on 40,000 points streams every activation of every layer through memory, forwards
and backwards; in blocks of a few thousand rows it stays in a CPU's cache, and takes less time.
A GPU has the memory for it, and wants the large products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

ROWS = 4096  # rows of all networks together; 128 float32 features of them are 2 MB


def rows_at_a_time(networks: int) -> int | None:
    """The size of the blocks for so many networks in one program, or None for all rows at once."""
    return max(ROWS // networks, 1) if jax.default_backend() == "cpu" else None


def sum_over_blocks(part: Callable[[Array, Array], Any], x: Array, y: Array, rows: int) -> Any:
    """The sum of part(x_b, y_b), arrays of any kind, over the blocks of so many rows.

    >>> import jax.numpy as jnp
    >>> x = jnp.arange(10.0)
    >>> float(sum_over_blocks(lambda x, y: (x * y).sum(), x, x, rows=4)), float((x * x).sum())
    (285.0, 285.0)
    """
    even = (len(x) - 1) // rows * rows  # the last block may be smaller
    blocks = tuple(a[:even].reshape(-1, rows, *a.shape[1:]) for a in (x, y))

    def more(total: Any, block: tuple[Array, ...]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, part(*block)), None

    return jax.lax.scan(more, part(x[even:], y[even:]), blocks)[0]
