"""A spread of features that float64 cannot hold, and a norm that divides by it.

An activation that is constant around 0, such as `Clip(0.5, 2)`, makes features of short inputs that differ from their
mean by less than any power of the length: at a length of a fortieth of the nearer end their variance underflows. A
LayerNorm without eps behind it divides by that variance. The quotient is a moderate number, but its parts are lost,
so it is NaN, and the kernel refuses the input.
"""

from __future__ import annotations

import numpy as np

from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.state import Both, refuse_lost_spread
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.types import Array

LEAST = 1e-153  # the squares of shorter ones lose digits


@refuse_lost_spread.register
def _(num: Float64, t: Array, left: Both, centred: Covariance) -> Array:
    for rest, side in zip(left, (centred.first, centred.second), strict=True):
        t = num.xp.where(side.live & (rest < LEAST), np.nan, t)
    return t
