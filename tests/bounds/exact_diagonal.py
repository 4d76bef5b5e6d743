"""Θ(x, x) to 60 digits as a function of |x|²/d, which may be any fraction."""

from __future__ import annotations

from fractions import Fraction

import oracle
from mpmath import mp, mpf

import lnkernel as lnk


def exact_diagonal(arch: lnk.Node, square: Fraction) -> mpf:
    """Θ(x, x) for |x|²/d = square, to 60 digits; no float holds such an x, a fraction does."""
    zero = Fraction(0)
    moments = oracle.Moments(zero, zero, square, square, square)
    with mp.workdps(60):
        return oracle.flow(arch, oracle.raw_input(moments, noise=mpf(10) ** -30)).mean_theta
