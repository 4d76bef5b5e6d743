r"""Hermite series for inputs that all have one length, as short polynomials.

Behind a normalisation without eps every length is the same number, and $\rho' = \sum_n s_n \rho^n$, with the squared
features $s_n = \hat a_n^2$, is a function of the angle alone. The even and the odd $n$ give functions of $x = \rho^2$,

    Q = sum s_n (1 - x^k)/(1 - x)   and   S = sum n s_n x^l,   where k = n/2 rounded down, and l = (n-1)/2 so,

that are smooth on [0, 1]. Their Chebyshev coefficients are linear in $s_n$, and all positive: nothing cancels. For
tanh of unit Gaussians 27 of them replace 256 Hermite polynomials. With $1 - x = 4wz$ the small angle keeps its digits,

    w' = w (odd + 2z (Q_even + rho Q_odd)),   z' = even + z (odd - 2w (Q_even + rho Q_odd)).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import cheb2poly

from lnkernel.calculus.arithmetic import Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.elementary import chebyshev, polynomial

Parity = tuple[int, int]  # a number for the even Hermite polynomials, and one for the odd ones

MOST = 120  # of the degrees
ENOUGH = 2.0**-56  # what is left out, where the squared features add up to 1
FEWEST = 512  # powers that are computed at once, of which fewer are a part
NONE = -1  # degree of a sum that is empty, because the activation is odd, or even
MONOMIAL = 32  # up to this degree the coefficients of powers are hardly larger than Chebyshev's


class Bases(NamedTuple):
    """From the squared features of one parity to Chebyshev coefficients, (degree + 1, terms/2) each."""

    gap: np.ndarray  # of Q
    slope: np.ndarray  # of S
    value: np.ndarray  # of sum s_n x^k


@lru_cache(maxsize=64)
def bases(terms: int, parity: int, degree: int) -> Bases:
    """The bases as Chebyshev polynomials of y = 2x - 1."""
    count = terms // 2
    powers = _powers(max(FEWEST, 1 << (count - 1).bit_length()))[: degree + 1, :count]
    before = np.roll(powers, 1, axis=1)  # x^(k-1)
    before[:, 0] = 0
    k = np.arange(terms // 2)
    slope = (2 * k + 1) * powers if parity else 2 * k * before
    tables = np.cumsum(before, axis=1), slope, powers
    return Bases(*(table.astype(np.float64) for table in tables))


@lru_cache(maxsize=8)
def _powers(count: int) -> np.ndarray:
    r"""The coefficients of $x^k = ((1+y)/2)^k = 4^{-k}\big(\binom{2k}{k} + 2\sum_j \binom{2k}{k-j}\,T_j(y)\big)$ up to
    T_MOST: all are positive, and each comes from the one before it by a product."""
    out = np.empty((MOST + 1, count), dtype=np.longdouble)
    k = np.arange(count).astype(np.longdouble)
    odd, even = 2 * k[1:] - 1, 2 * k[1:]
    out[0] = np.concatenate([np.ones(1, np.longdouble), np.cumprod(odd / even)])
    out[1] = 2 * out[0] * (k / (k + 1))
    for j in range(1, MOST):
        out[j + 1] = out[j] * (np.maximum(k - j, 0) / (k + j + 1))
    return out


def degrees_for(square: np.ndarray) -> Parity | None:
    """The degrees that suffice for these squared features; None where MOST does not."""
    if not square[1:].any():  # a constant
        return NONE, NONE
    share = square / np.sum(square[1:])

    def degree(parity: int) -> int:
        part = share[parity::2]
        # not a product of matrix and vector, for which OpenBLAS would take threads
        gap, slope, _ = ((table * part).sum(axis=1) for table in bases(len(square), parity, MOST))
        needed = np.flatnonzero(np.maximum(gap, slope) > ENOUGH)
        return int(needed[-1]) if needed.size else NONE

    even, odd = degree(0), degree(1)
    return None if max(even, odd) == MOST else (even, odd)


class Sums(NamedTuple):
    """Over the Hermite polynomials of one parity, at the angles of the pairs."""

    gap: Number
    slope: Number
    value: Number


def _sums(square: Array, euler: Array, parity: int, degree: int, y: Array) -> Sums:
    if degree == NONE:
        return Sums(0.0, 0.0, 0.0)
    parts = square[parity::2], square[parity::2], euler[parity::2]
    # float64 on every machine, which a product of matrices is not
    tables = (
        (table * part).sum(axis=1)
        for table, part in zip(bases(len(square), parity, degree), parts, strict=True)
    )
    return Sums(*(_evaluate(table, y) for table in tables))


def _evaluate(coefficients: Array, y: Array) -> Array:
    """The sum of c_k T_k(y)."""
    degree = len(coefficients) - 1
    if degree > MONOMIAL:
        return chebyshev(coefficients, y)
    powers = (_to_powers(degree) * coefficients).sum(axis=1)
    return polynomial(tuple(powers), y)


@lru_cache(maxsize=64)
def _to_powers(degree: int) -> np.ndarray:
    """The coefficients of the powers of y in T_0, T_1, ...: integers."""
    columns = [cheb2poly(np.eye(degree + 1)[k]) for k in range(degree + 1)]
    return np.stack([np.pad(c, (0, degree + 1 - len(c))) for c in columns], axis=1)


def dual_by_tables(
    unit: Array, euler: Array, size: Array, cov: Covariance, degrees: Parity, vanishes: bool
) -> Dual:
    """The dual at pairs whose lengths are one and the same number, from the features a_n/|a| and those
    of u phi'(u), over |a|. `vanishes`: whether phi(0) = 0."""
    w, z, c = cov.w, cov.z, cov.c
    square, y = unit * unit, 1 - 8 * (w * z)
    even, odd = (
        _sums(square, euler * euler, parity, degree, y) for parity, degree in enumerate(degrees)
    )
    odd_share, even_share = square[1::2].sum(), square[2::2].sum()  # that without the mean
    turned = 2 * (even.gap + c * odd.gap)

    def angle(least: Array, whole: Array | float) -> tuple[Array, Array, Array]:
        near = w * ((odd_share + z * turned) / whole)
        far = (least + z * (odd_share - w * turned)) / whole
        return near, far, far - near

    rest = odd_share + even_share
    length, share, left = Length(size * size), unit[0], namespace.of(rest).sqrt(rest)
    centred = Length(length.q * rest)
    return Dual(
        total=Covariance(length, length, *angle(square[0] + even_share, 1.0), 0.0),
        mean=None if vanishes and degrees[0] == NONE else Mean(share, share, 0.0, Both(left, left)),
        slope=odd.slope + c * even.slope,
        euler=even.value + c * odd.value,
        centred=Covariance(centred, centred, *angle(even_share, rest), 0.0),
    )
