r"""Hermite polynomials at equidistant nodes $x_k = kh$, $k = 1..K$, for sums that replace integrals."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

from lnkernel.evaluate.balls.numbers import exact, working_precision


class Rule(NamedTuple):
    """The trapezoidal rule with step h on [-Kh, Kh], for Hermite polynomials of degrees below `terms`."""

    step: float  # a multiple of a power of two: the nodes are exact
    nodes_on_a_side: int  # K
    terms: int

    @property
    def nodes(self) -> list[arb]:
        return [exact(self.step) * k for k in range(1, self.nodes_on_a_side + 1)]


def round_step(step: float) -> float:
    """A little less, with a few bits, so that nodes are exact and tables can be shared.

    >>> round_step(0.07), round_step(0.0625)
    (0.0625, 0.0625)
    """
    unit = 2.0 ** math.floor(math.log2(step))
    return unit * (1.5 if step >= 1.5 * unit else 1.25 if step >= 1.25 * unit else 1.0)


@lru_cache(maxsize=4)
def hermite_table(rule: Rule, bits: int, odd: bool) -> arb_mat:
    r"""$h_n(x_k)\,e^{-x_k^2/4}$ for all odd or all even $n$ below `terms`, one row each.

    None exceeds 1 (DLMF 18.14.9). In the recurrence the radii of balls grow like $h_n(ix)$, that is at most like
    $e^{x\sqrt n}$; so many bits more are carried in it.
    """
    x = np.array(rule.nodes, dtype=object)
    growth = rule.step * rule.nodes_on_a_side * math.sqrt(rule.terms)
    rows = []
    with working_precision(bits + math.ceil(growth / math.log(2)) + 16):
        before, row = 0 * x, np.array([(-t * t / 4).exp() for t in x], dtype=object)
        for n in range(rule.terms):
            if n % 2 == odd:
                rows.append(row)
            before, row = row, (x * row - arb(n).sqrt() * before) * (1 / arb(n + 1).sqrt())
    with working_precision(bits):
        return arb_mat([[+value for value in row] for row in rows])


def cut_off() -> float:
    """Kh, such that what lies beyond it, of functions that fall like e^(-x²/4), is below the working precision."""
    return 2 * math.sqrt(math.log(2) * ctx.prec) + 2
