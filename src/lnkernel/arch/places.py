"""Which position before a layer stands at each position behind it, along each axis."""

from __future__ import annotations

import numpy as np

NOTHING = -1  # a position that is not there: zeros

Places = tuple[np.ndarray, ...]  # of whole numbers, one array for each axis of the positions


def nearest(length: int, count: int) -> np.ndarray:
    """The positions, of so many, that are nearest to `count` evenly spaced ones.

    >>> nearest(4, 2).tolist(), nearest(2, 4).tolist()
    ([1, 3], [0, 0, 1, 1])
    """
    return (2 * np.arange(count) + 1) * length // (2 * count)


def spread_out(length: int, size: int, stride: int, padding: str) -> np.ndarray:
    """What a window of this size reads, step by step of 1, in a transposed convolution of this stride: the positions
    with `stride` - 1 zeros between them, and what comes around them.

    >>> spread_out(2, 3, 2, "VALID").tolist()
    [-1, -1, 0, -1, 1, -1, -1]
    >>> spread_out(2, 3, 2, "SAME").tolist(), spread_out(2, 3, 2, "CIRCULAR").tolist()
    ([-1, -1, 0, -1, 1, -1], [1, -1, 0, -1, 1, -1])
    """
    whole, more = length * stride, max(size - stride, 0)
    cut = 0 if padding == "VALID" else more // 2  # of the first places that the filter reaches
    steps = whole + more if padding == "VALID" else whole
    at = np.arange(steps + size - 1) - (size - 1) + cut
    if padding == "CIRCULAR":
        at = at % whole
    there = (at % stride == 0) & (at >= 0) & (at < whole)
    return np.where(there, at // stride, NOTHING)
