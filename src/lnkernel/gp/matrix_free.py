"""Products with a Gram matrix that is stored nowhere: tile by tile, each used for both of its halves.

All tiles have one shape but for the edge, so that nothing is compiled for many points. Several processes deal the tiles
out among themselves and add up what they have; each then has the whole product, the same to the last bit.
"""

from __future__ import annotations

import jax
import numpy as np

from lnkernel.gp.packed import GramRows
from lnkernel.gram.hosts import gather
from lnkernel.progress import Bar

TILE = 4096  # rows and columns


def times_below(rows: GramRows, b: np.ndarray, shared: bool) -> np.ndarray:
    """K b but for the diagonal of K, for b of shape (n, k). `shared`: all processes call it, and share the work."""
    x, kernel = rows.x, rows.kernel
    corners = [(i, j) for i in range(0, len(x), TILE) for j in range(0, i + 1, TILE)]
    mine = corners[jax.process_index() :: jax.process_count()] if shared else corners
    product = np.zeros(b.shape)
    with Bar(None, len(mine), "tiles", "product") as bar:
        for i, j in mine:
            one, two = slice(i, i + TILE), slice(j, j + TILE)
            if i == j:
                tile = np.asarray(kernel(x[one]))
                np.fill_diagonal(tile, 0.0)
                product[one] += tile @ b[one]
            else:
                tile = np.asarray(kernel(x[one], x[two]))
                product[one] += tile @ b[two]
                product[two] += tile.T @ b[one]
            bar.update(1)
    if not shared:
        return product
    with jax.enable_x64(True):
        return np.asarray(gather(product).sum(axis=0))
