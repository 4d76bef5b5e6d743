r"""Delicate pairs behind an analytic activation, from the products of `separable.py`: small angles keep their digits.

Less its mean the activation has unit features $a_n(r_1)$, $b_n = a_n(r_2)$. With $y = 2\rho^2 - 1$ the series of the
even and of the odd ones are $E = \sum C_j T_j(y)$ and $\rho\,O = \rho\sum C_j T_j(y)$, and $1 - y = 8wz$, so that
of the polynomials $D_j = (1 - T_j)/(1 - y)$, which are positive sums at small angles, $G = \sum C_j D_j(y)$ gives

    1/2 sum a_n b_n (1 - rho^n) = w O + 4wz (G_odd + G_even),
    w' = 1/4 |a - b|^2 + that,   z' = 1/4 (|a_even + b_even|^2 + |a_odd - b_odd|^2) + z O + 4wz (G_odd - G_even).

The lengths of $a - b$ are a matter of two lengths alone: the kernels of the features at $\rho = 1$ have low rank too.
Errors of these factors enter squared where two inputs are close.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.hermite_features import SHORTEST
from lnkernel.evaluate.float64.separable import Orders
from lnkernel.evaluate.float64.separated import (
    euler_of,
    features_at_nodes,
    image_of,
    table_for,
    vanishes,
)
from lnkernel.evaluate.float64.sides_of_pairs import (
    Between,
    Ends,
    Image,
    Places,
    dual_of,
    ends_through,
)


@lru_cache(maxsize=64)
def end_table(layer: Smooth, terms: int, longest: float) -> Ends:
    """Of the features without their mean."""
    unit, _, _, rest = features_at_nodes(layer, terms, longest)
    centred = unit / rest
    centred[0] = 0.0
    return ends_through(longest, centred[0::2], centred[1::2])


class Sums(NamedTuple):
    """Of the features of one parity, at the y of all pairs."""

    value: np.ndarray  # sum C_j T_j
    slope: np.ndarray  # sum C_j T_j'
    gap: np.ndarray  # sum C_j D_j


def dual_with_care(layer: Smooth, cov: Covariance, terms: int, longest: float) -> Dual | None:
    """The dual of pairs of known inputs; None where these are not known or too long, or a table would be too large."""
    first, second = cov.first.q, cov.second.q
    if not (isinstance(first, Gathered) and isinstance(second, Gathered)):
        return None
    lengths = [np.maximum(side.inputs.root(), SHORTEST) for side in (first, second)]
    at = Places(first.index, second.index, (len(lengths[0]), len(lengths[1])))
    if max(float(r.max()) for r in lengths) > longest:
        return None
    alike = np.array_equal(lengths[0], lengths[1])  # as in a square matrix
    one = image_of(layer, terms, longest, lengths[0])
    two = one if alike else image_of(layer, terms, longest, lengths[1])
    if one is None or two is None:
        return None
    table = end_table(*table_for(layer, terms, longest))
    ends = [table.at(r) for r in lengths]
    w, z, c = cov.w, cov.z, cov.c
    y = 1 - 8 * (w * z)
    even, odd = (
        _clenshaw(_coefficients(f, g, at), y) for f, g in zip(one.factors, two.factors, strict=True)
    )
    apart, (turned, _) = zip(*(at.apart(f, g) for f, g in zip(*ends, strict=True)), strict=True)
    near = w * odd.value + 4 * (w * z) * (odd.gap + even.gap)
    far = z * odd.value + 4 * (w * z) * (odd.gap - even.gap)
    rests = np.multiply(*at.of((one.rest, two.rest)))

    def euler() -> np.ndarray:
        factors = [euler_of(layer, terms, longest, r) for r in lengths]
        even, odd = (
            _clenshaw(_coefficients(f, g, at), y).value for f, g in zip(*factors, strict=True)
        )
        return even + c * odd

    pairs = Between(
        w=0.25 * sum(apart) + near,
        z=0.25 * (turned + apart[1]) + far,
        slope=rests * (odd.value + 4 * (c * (even.slope + c * odd.slope))),
        euler=euler,
    )
    images = Image(*one[:3]), Image(*two[:3])
    return dual_of(cov, at, (lengths[0], lengths[1]), images, pairs, vanishes(layer))


def _coefficients(one: Orders, two: Orders, at: Places) -> list[np.ndarray]:
    """The C_j of all pairs."""
    return [at.products(np.stack(f), np.stack(g)) for f, g in zip(one, two, strict=True)]


def _clenshaw(coefficients: list[np.ndarray], y: np.ndarray) -> Sums:
    """With Clenshaw's b_j the series in T_j is y b_1 + C_0 - b_2. As D_(j+1) = 2y D_j - D_(j-1) + 2, that in D_j is
    b_1 + 2 (b_2 + b_3 + ...)."""
    if not coefficients:
        zero = np.zeros_like(y)
        return Sums(zero, zero, zero)
    twice = 2 * y
    value = above = slope = slope_above = beyond = np.zeros_like(y)
    for coefficient in coefficients[:0:-1]:
        beyond = beyond + value
        slope, slope_above = twice * slope + (2 * value - slope_above), slope
        value, above = twice * value + (coefficient - above), value
    return Sums(
        y * value + (coefficients[0] - above),
        y * slope + (value - slope_above),
        value + 2 * beyond,
    )
