"""Pictures with the number of the class that each belongs to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int


class Pictures(NamedTuple):
    """Pictures and their classes."""

    x: Float32[np.ndarray, "n height width channels"]  # from 0, black, to 1
    label: Int[np.ndarray, " n"]

    def take(self, rows: np.ndarray | slice) -> Pictures:
        """Some of them, by number or by a mask.

        >>> one = Pictures(np.zeros((2, 1, 1, 1), np.float32), np.array([7, 9]))
        >>> one.take(one.label > 7).label
        array([9])
        """
        return Pictures(self.x[rows], self.label[rows])

    def shuffle(self, seed: int) -> Pictures:
        """All of them in another order.

        >>> one = Pictures(np.zeros((9, 1, 1, 1), np.float32), np.arange(9))
        >>> sorted(one.shuffle(0).label.tolist()) == list(range(9)), one.shuffle(0).label[0] == 0
        (True, np.False_)
        """
        return self.take(np.random.default_rng(seed).permutation(len(self.label)))
