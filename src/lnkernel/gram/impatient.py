"""An arithmetic for quick pairs that stops when most of them ask for care.

Deep networks bring all inputs together. Some layers on there is hardly a pair left that a rounded cosine tells enough
of, and what the quick way goes on to compute is thrown away: with care all pairs cost little more than most of them.
"""

from __future__ import annotations

import numpy as np
from jax import Array

from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.gram.network import Needs

MOST = 0.5  # of all pairs


class GivenUp(Exception):  # noqa: N818 (it is no error)
    """Most pairs ask for more care."""


class Impatient(EagerFloat64):
    """Raises `GivenUp` as soon as few pairs are left, or where care costs no more."""

    def __init__(self, needs: Needs):
        super().__init__(
            needs.range, quick=True, sharp=needs.sharp_lengths, delicate=needs.delicate
        )

    def prefer_care(self) -> None:
        raise GivenUp

    def angle(self, cosine: Array) -> tuple[Array, Array, Array]:
        w, z, c = super().angle(cosine)
        if np.count_nonzero(np.isnan(w)) > MOST * np.size(w):
            raise GivenUp
        return w, z, c
