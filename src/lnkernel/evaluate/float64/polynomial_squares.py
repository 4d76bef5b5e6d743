r"""The squared lengths behind a polynomial, to twice the digits of float64.

$\sum_j c_j (ru)^j = \sum_n A_n(r)\,h_n(u)$ has $A_n^2 = \frac{q^s}{n!}\big(\sum_j c_j\,I_{jn}\,q^{(j-s)/2}\big)^2$,
with $s$ the parity of $n$ and whole numbers $I_{jn}$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lnkernel.calculus.polynomial import exact_squares, hermite_integer
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.powers import power
from lnkernel.evaluate.float64.precise import Precise, as_precise
from lnkernel.evaluate.float64.precise_functions import ratio


@exact_squares.register
def _(
    num: Float64, coefficients: Sequence[Any], q: Any, divisor: int
) -> tuple[Precise, Precise] | None:
    terms = {j: as_precise(c) for j, c in enumerate(coefficients) if not known_zero(c)}
    q = as_precise(q)
    powers = [power(q, float(i)) for i in range(max(terms) // 2 + 1)]
    zero = as_precise(0.0) * powers[0]
    mean, variance = zero, zero
    for n in range(max(terms) + 1):
        odd = n % 2
        feature = zero
        for j, c in terms.items():
            if j >= n and (j - n) % 2 == 0:
                whole = as_precise(float(hermite_integer(j, n)))
                feature = feature + powers[(j - odd) // 2] * (c * whole)
        square = ratio(feature * feature, float(math.factorial(n) * divisor))
        if odd:
            square = square * q
        if n == 0:
            mean = square
        else:
            variance = variance + square
    return mean + variance, variance
