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
from typing import Any, NamedTuple

import numpy as np

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.gaps import relative_difference
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.hermite_features import SHORTEST
from lnkernel.evaluate.float64.length_curves import Curves, curves_through
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.evaluate.float64.separable import Orders
from lnkernel.evaluate.float64.separated import (
    euler_of,
    features_at_nodes,
    image_of,
    table_for,
    vanishes,
)
from lnkernel.types import Array

# Of numbers whose squares add up to 1 for each input: the squares of their differences are asked for.
NEGLIGIBLE = 2.0**-40
AT_ONCE = 512  # pairs: what is compared at a time stays in the cache
DENSE = 8  # in this share of all pairs of the inputs their products come from a matrix of all


class Ends(NamedTuple):
    """Factors of the kernels of features at one angle, 0, as functions of the length: of even features, and of odd."""

    curves: Curves
    even: int

    def at(self, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of unit vectors, (n, rank) each."""
        numbers = self.curves.at(length)
        numbers = np.ascontiguousarray((numbers / np.sqrt(np.square(numbers).sum(axis=0))).T)
        return numbers[:, : self.even], numbers[:, self.even :]


@lru_cache(maxsize=64)
def end_table(layer: Smooth, terms: int, longest: float) -> Ends:
    """Of the features without their mean."""
    unit, _, _, rest = features_at_nodes(layer, terms, longest)
    centred = unit / rest
    centred[0] = 0.0
    even, odd = (_principal(centred[parity::2]) for parity in (0, 1))
    return Ends(curves_through(longest, np.column_stack([even, odd])), even.shape[1])


def _principal(features: np.ndarray) -> np.ndarray:
    """Fewer numbers of each column with the same distances, (columns, rank). Cholesky's factors would leave out what
    is as small as the root of a rounding error, and the differences of near columns are made of that."""
    _, sizes, directions = np.linalg.svd(np.linalg.qr(features, mode="r"), full_matrices=False)
    kept = sizes > NEGLIGIBLE
    made: np.ndarray = (sizes[kept, None] * directions[kept]).T
    return made


class Sums(NamedTuple):
    """Of the features of one parity, at the y of all pairs."""

    value: np.ndarray  # sum C_j T_j
    slope: np.ndarray  # sum C_j T_j'
    gap: np.ndarray  # sum C_j D_j


class Places(NamedTuple):
    """Which inputs make a pair: their numbers, and how many inputs there are."""

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]

    def products(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """The sums over (rank, n) and (rank, m) of all pairs."""
        n, m = self.shape
        if len(self.rows) * DENSE < n * m:
            made: np.ndarray = (one[:, self.rows] * two[:, self.columns]).sum(axis=0)
            return made
        return multiply_alone(one.T, two).ravel().take(self.rows * m + self.columns)

    def apart(self, one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """|one - two|² and |one + two|², of (n, rank) and (m, rank), of all pairs."""
        near, far = np.empty((2, len(self.rows)))
        for start in range(0, len(self.rows), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            left, right = one.take(self.rows[some], axis=0), two.take(self.columns[some], axis=0)
            for both, out in ((left - right, near), (left + right, far)):
                np.einsum("pk,pk->p", both, both, out=out[some])
        return near, far


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
    w_centred, z_centred = 0.25 * sum(apart) + near, 0.25 * (turned + apart[1]) + far

    def of_pairs(numbers: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return numbers[0][at.rows], numbers[1][at.columns]

    rest, share, size = (
        of_pairs([getattr(image, name) for image in (one, two)])
        for name in ("rest", "share", "size")
    )
    rests, more = rest[0] * rest[1], rest[0] - rest[1]
    norms = [of_pairs([np.square(side[parity]).sum(axis=1) for side in ends]) for parity in (0, 1)]
    # |rest1 a -+ rest2 b|², of even and of odd features
    left = [more * (rest[0] * norm[0] - rest[1] * norm[1]) for norm in norms]
    whole = np.square(share[0] - share[1]) + np.square(more) + rests * sum(apart)
    whole_turned = np.square(share[0] + share[1]) + sum(left) + rests * (turned + apart[1])
    cosine = share[0] * share[1] + rests * (even.value + c * odd.value)
    slope = rests * (odd.value + 4 * (c * (even.slope + c * odd.slope)))

    def euler() -> np.ndarray:
        factors = [euler_of(layer, terms, longest, r) for r in lengths]
        even, odd = (
            _clenshaw(_coefficients(f, g, at), y).value for f, g in zip(*factors, strict=True)
        )
        return even + c * odd

    alive = (cov.first.live, cov.second.live)
    squares = [image.size * image.size for image in (one, two)]
    lasting = [q * (side.rest * side.rest) for q, side in zip(squares, (one, two), strict=True)]
    total, centred = (
        [
            Length(Gathered(as_precise(numbers), index), live)
            for numbers, index, live in zip(each, (at.rows, at.columns), lives, strict=True)
        ]
        for each, lives in ((squares, alive if vanishes(layer) else (True, True)), (lasting, alive))
    )

    def difference(one: Any, two: Any) -> Array | None:
        """The relative difference, where a rule asks for it."""
        return None if cov.e is None else relative_difference(one, two)

    return Dual(
        total=Covariance(
            total[0],
            total[1],
            0.25 * whole + rests * near,
            0.25 * whole_turned + rests * far,
            cosine,
            difference(*size),
        ),
        mean=Mean(
            *share,
            difference(abs(share[0]) * size[0], abs(share[1]) * size[1]),
            Both(*rest),
        ),
        slope=slope,
        euler=euler,
        derivative=lambda: (
            slope,
            *(x / r for x, r in zip(size, of_pairs(lengths), strict=True)),
        ),
        centred=Covariance(
            centred[0],
            centred[1],
            w_centred,
            z_centred,
            z_centred - w_centred,
            difference(rest[0] * size[0], rest[1] * size[1]),
        ),
    )


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
