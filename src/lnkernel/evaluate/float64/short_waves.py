r"""The angle between the images of short vectors under a sine or cosine.

With $Q_i = \omega^2 r_i^2$ and $K = \omega^2 r_1 r_2\rho$ the kernels of both parts are, but for a factor of each
input, $\rho\,S(K^2)$ of the odd one, $S(K^2) = \sinh K/K$, and $\rho^2\,C(K^2)$ of the even one,
$C(K^2) = 2\,(\cosh K - 1)/K^2$.
Where the lengths differ and are small, so that both kernels are nearly 1, the small angle is made of
$Q_1^2 - K^2 = Q_1(Q_1 - Q_2) + 4Q_1Q_2wz$ and of divided differences of S and C, in which nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any

from lnkernel.calculus.closed import Pair, angle_from_gaps
from lnkernel.calculus.elementary import refine_wave
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.elementary import divided_difference, polynomial

SHORT = 4.0  # beyond this Q, vectors whose lengths differ much do not have nearly parallel images
WIDE = 0.9  # cosines below which the angle follows from them
SINH = tuple(1 / math.factorial(2 * n + 1) for n in range(18))  # the first term left out is 1e-21
COSH = tuple(2 / math.factorial(2 * n + 2) for n in range(18))


@refine_wave.register
def _(num: Float64, omega: Any, pair: Pair, odd: bool, w: Any, c: Any) -> Any:
    """w' of a pair with rho >= 0."""
    one, two = (omega * side.r for side in (pair.first, pair.second))
    q1, q2 = one * one, two * two
    short = (q1 < SHORT) & (q2 < SHORT)
    q1, q2 = (num.xp.where(short, q, 0.0) for q in (q1, q2))
    apart = num.xp.where(short, (omega * pair.apart) * (one + two), 0.0)  # Q1 - Q2
    turned = 4 * (pair.w * pair.z)  # 1 - rho²
    both = q1 * q2 * turned
    k = q1 * q2 * (pair.c * pair.c)
    series, cosine, rest = (SINH, pair.c, 2 * pair.w) if odd else (COSH, pair.c * pair.c, turned)
    common = polynomial(series, k)
    gaps = [
        (lean + both) * divided_difference(series, q * q, k) + rest * common
        for q, lean in ((q1, q1 * apart), (q2, -q2 * apart))
    ]
    ends = [polynomial(series, q * q) for q in (q1, q2)]
    wide = num.where(c < WIDE, 0.5 - 0.5 * c, w)
    return num.where(short, angle_from_gaps(num, ends, cosine * common, gaps)[0], wide)
