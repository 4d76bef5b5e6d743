r"""Mehler's series of a pair in balls, with proven remainders.

For unit vectors of features $\hat a$, $\hat b$ of an odd or even function, and $x = |\rho| = 1 - 2m$,

    c' = sum a_n b_n x^n,   slope = sum n a_n b_n x^(n-1),   w' = (1 - c')/2.

The terms from n = N on are at most $x^N$ times the root of what both vectors leave (Cauchy and Schwarz). For equal
vectors all terms are positive, and w' keeps its relative digits where m is small:

    w' = m sum_k s_k x^k,   s_k = sum_{n > k} a_n^2,   sum_{k >= N} s_k x^k <= x^N sum_{n > N} n a_n^2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb, arb_poly

from lnkernel.evaluate.balls.features import Features
from lnkernel.evaluate.balls.numbers import upper_end


class Image(NamedTuple):
    """A part of the image of one pair, for rho >= 0: the angle, and the sums for the NTK, over both lengths."""

    w: arb
    c: arb
    slope: arb
    euler: arb


class Series(NamedTuple):
    """A power series cut off before x^start: what is cut off is in [0, rest] x^start, or in [-rest, rest] x^start."""

    polynomial: arb_poly
    start: int
    rest: arb
    positive: bool

    def __call__(self, x: arb, most: arb) -> arb:
        """Its value at a ball x, whose upper end is `most`."""
        rest = (self.rest * most**self.start).upper()
        return self.polynomial(x) + (arb(0).union(rest) if self.positive else arb(0, rest))


def image_of_pairs(one: Features, two: Features) -> Callable[[arb, arb], Image]:
    """(m, x) -> the image, for two lengths."""
    equal, terms = one is two, min(len(one.a), len(two.a))
    one, two = one.first(terms), two.first(terms)
    size = 1 / (one.moments.variance.sqrt() * two.moments.variance.sqrt())
    n = np.array(range(terms), dtype=object)
    product = one.a * two.a * size
    product[0] = arb(0)  # less the means

    def series(coefficients: np.ndarray, start: int, left: str) -> Series:
        ends = (getattr(each.left, left) for each in (one, two))
        rest = size * (next(ends) * next(ends)).sqrt()
        return Series(arb_poly(coefficients.tolist()), start, rest, equal)

    cosine = series(product, terms, "square")
    slope = series((n * product)[1:], terms - 1, "slope")
    euler = series(one.euler * two.euler * size, terms - 2, "euler")
    gap = series(_sums_beyond(product, cosine.rest), terms, "slope") if equal else None

    def at(m: arb, x: arb) -> Image:
        most = min(upper_end(abs(x)), arb(1))
        c = cosine(x, most)
        w = (1 - c) / 2 if gap is None else m * gap(x, most)
        return Image(w, c, slope(x, most), euler(x, most))

    return at


def _sums_beyond(squares: np.ndarray, left: arb) -> np.ndarray:
    """s_k for all k < N, where `left` is at most the sum of what comes behind N."""
    total, out = arb(0).union(left.upper()), []
    for square in squares[::-1]:
        out.append(total)
        total = total + square
    return np.array(out[::-1], dtype=object)
