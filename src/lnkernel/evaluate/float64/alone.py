"""Products of matrices by this thread alone.

OpenBLAS takes threads for all but small ones. Where other work keeps the cores busy these wait for one another longer
than they compute, and go on waiting for the next product on the cores where pairs are computed. So it is handed small
pieces.
"""

from __future__ import annotations

import numpy as np

ALONE = 1 << 18  # multiplications, up to which OpenBLAS takes one thread
ROWS = 8  # of a piece at least, where there are so many: a single row is another, slower function


def multiply_alone(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two matrices."""
    (rows, inner), columns = left.shape, right.shape[1]
    if not left.size or not right.size:
        return left @ right
    if rows == 1:
        return multiply_alone(np.concatenate([left, left]), right)[:1]
    width = max(1, min(columns, ALONE // (inner * min(rows, ROWS))))
    height = max(2, ALONE // (inner * width))
    made = np.empty((rows, columns))
    for top in range(0, rows, height):
        start = min(top, max(rows - height, 0))  # no single row is left over
        for side in range(0, columns, width):
            some = slice(start, top + height), slice(side, side + width)
            made[some] = left[some[0]] @ right[:, some[1]]
    return made
