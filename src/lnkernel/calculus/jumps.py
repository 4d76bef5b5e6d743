r"""The dual of sign and step functions: an arc sine of the angle, and no derivative.

$E\,\mathrm{sign}(u)\,\mathrm{sign}(v) = 1 - 2\theta/\pi$ with $\theta = 2\arcsin\sqrt w$ (Sheppard 1899).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lnkernel.arch.jumps import Jump, Sign
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.special import special
from lnkernel.calculus.state import Mean


class Turn(NamedTuple):
    """The angle over π, and what is left of a half turn: both are small without a cancellation."""

    near: Number
    far: Number


@special
def turn(num: Arithmetic, w: Number, z: Number) -> Turn:
    """the angle as a part of a half turn."""
    raise NotImplementedError


@dual.register(Jump)
def _(layer: Jump, cov: Covariance, num: Arithmetic) -> Dual:
    """Lengths do not matter, but that a zero vector becomes one."""
    near, far = turn(num, cov.w, cov.z)
    centred_size = 1.0 if isinstance(layer, Sign) else 0.25
    first, second = (
        Length(side.masked(num, centred_size).q, side.live) for side in (cov.first, cov.second)
    )
    centred = Covariance(first, second, near, far, far - near, 0.0)
    infinite = num.real(math.nan)
    if isinstance(layer, Sign):
        return Dual(centred, None, infinite, infinite, centred=centred)
    half, share = 0.5 * near, math.sqrt(0.5)
    first, second = (Length(side.masked(num, 0.5).q, side.live) for side in (cov.first, cov.second))
    total = Covariance(first, second, half, 1 - half, far, 0.0, True)
    return Dual(total, Mean(share, share, 0.0), infinite, infinite, centred=centred)
