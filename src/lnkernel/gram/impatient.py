"""An arithmetic for quick pairs that stops when nearly all of them ask for care.

Deep networks bring all inputs together or, behind a bias, to one angle of nearly 0. A few layers on there is no pair
left that a rounded cosine tells enough of, and what the quick way goes on to compute is thrown away.
"""

from __future__ import annotations

import numpy as np

from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.gram.network import Needs
from lnkernel.types import Array

MOST = 0.9  # of the pairs: the others with all care take less than the layers that are left


class GivenUp(Exception):  # noqa: N818 (it is no error)
    """Nearly all pairs ask for more care."""


class Impatient(EagerFloat64):
    """Raises `GivenUp` as soon as too few pairs are left."""

    def __init__(self, needs: Needs):
        super().__init__(
            needs.range, quick=True, sharp=needs.sharp_lengths, delicate=needs.delicate
        )

    def angle(self, cosine: Array) -> tuple[Array, Array, Array]:
        w, z, c = super().angle(cosine)
        if np.count_nonzero(w != w) > MOST * np.size(w):
            raise GivenUp
        return w, z, c
