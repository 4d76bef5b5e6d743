r"""The dual of sign and step functions: an arc sine of the angle, and no derivative.

$E\,\mathrm{sign}(u)\,\mathrm{sign}(v) = 1 - 2\theta/\pi$ with $\theta = 2\arcsin\sqrt w$ (Sheppard 1899).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lnkernel.arch.jumps import Sign, Step
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.special import special
from lnkernel.calculus.state import Mean

INFINITE = math.nan  # stands for what the NTK would need, which is not asked for


class Turn(NamedTuple):
    """The angle over π, and what is left of a half turn: both are small without a cancellation."""

    near: Number
    far: Number


@special
def turn(num: Arithmetic, w: Number, z: Number) -> Turn:
    """the angle as a part of a half turn."""
    raise NotImplementedError


@dual.register
def _(layer: Sign, cov: Covariance, num: Arithmetic) -> Dual:
    """Lengths do not matter, but that a zero vector becomes one."""
    image = _image(num, cov, 1.0)
    return Dual(image, None, INFINITE, INFINITE, centred=image)


@dual.register
def _(layer: Step, cov: Covariance, num: Arithmetic) -> Dual:
    """Half of a sign, and its mean 1/2."""
    centred = _image(num, cov, 0.25)
    half, share = 0.5 * centred.w, math.sqrt(0.5)
    first, second = (side.masked(num, 0.5) for side in (cov.first, cov.second))
    total = Covariance(first, second, half, 1 - half, centred.z, 0.0, True)
    return Dual(total, Mean(share, share, 0.0), INFINITE, INFINITE, centred=centred)


def _image(num: Arithmetic, cov: Covariance, size: float) -> Covariance:
    near, far = turn(num, cov.w, cov.z)
    first, second = (side.masked(num, size) for side in (cov.first, cov.second))
    return Covariance(first, second, near, far, far - near, 0.0)
