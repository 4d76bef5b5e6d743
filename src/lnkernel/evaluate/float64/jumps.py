"""The angle itself, for activations with a jump."""

from __future__ import annotations

import math

from jax import Array

from lnkernel.calculus.jumps import Turn, turn
from lnkernel.evaluate.float64.arithmetic import Float64


@turn.register
def _(num: Float64, w: Array, z: Array) -> Turn:
    root_w, root_z = num.sqrt(w), num.sqrt(z)
    return Turn(
        *(num.xp.arctan2(x, y) * (2 / math.pi) for x, y in ((root_w, root_z), (root_z, root_w)))
    )
