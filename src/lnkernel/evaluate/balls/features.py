r"""Hermite features $a_n(r) = E[f(ru)\,h_n(u)]$ of an odd or even function in balls, and what they leave.

By the trapezoidal rule, for all n at once. Let $\alpha$ be the half-width of a strip in which $u \mapsto f(ru)$ is
analytic and at most $Lr|u|$. The error of step h is at most $2M/(e^{2\pi\alpha/h} - 1)$ (Trefethen and Weideman 2014,
Theorem 5.1), where M bounds the integral of the absolute value along every line of the strip. Because
$E|h_n(u+iy)|^2 = \sum_k \binom nk y^{2k}/k! \le e^{2y\sqrt n}$ (the sum of He_n(u + iy) in powers of iy),

    M = L r sqrt(1 + alpha^2) exp(alpha^2/2 + alpha sqrt(n))

by the inequality of Cauchy and Schwarz. The sum is cut off at X; $|h_n(x)|\,e^{-x^2/4} \le 1$, so the rest is at most
$4sr\,e^{-X^2/4}/\sqrt{2\pi}$ with the steepness s.

By Parseval's theorem what the first N features leave is known as well,

    sum_{n >= N} a_n^2 = E f^2 - sum_{n < N} a_n^2,

and so for the derivative, $\sum n a_n^2 = r^2 E f'^2$, and for $uf'(u)$. These expectations are rigorous integrals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from flint import acb, arb, arb_mat, ctx

from lnkernel.evaluate.balls.analytic import Curve
from lnkernel.evaluate.balls.hermite_nodes import Rule, cut_off, hermite_table, round_step
from lnkernel.evaluate.balls.integrals import Moments
from lnkernel.evaluate.balls.numbers import lower_end, upper_end

CHOICES = (128, 256, 512, 1024)  # numbers of Hermite polynomials


class Features(NamedTuple):
    """The first features of one function at one length, and what they leave of three expectations."""

    a: np.ndarray  # (N,) balls; those of the wrong parity are 0
    euler: np.ndarray  # of u f'(u), (N - 2,)
    moments: Moments
    left: Moments  # upper bounds of the sums over n >= N; of `euler` over n >= N - 2

    def first(self, terms: int) -> Features:
        """Fewer of them."""
        return self if terms == len(self.a) else with_rests(self.a[:terms], self.moments)


def coefficients(curve: Curve, r: arb, odd: bool, terms: int) -> np.ndarray:
    """a_n for n below `terms`, (terms,) balls, at the working precision."""
    widest = (1 - 2.0**-30) * float(lower_end(curve.strip)) / float(upper_end(r))  # rounded down
    alpha = min(widest, math.sqrt(2 * ctx.prec))
    enough = ctx.prec * math.log(2) + alpha * alpha / 2 + alpha * math.sqrt(terms) + 8
    step = round_step(2 * math.pi * alpha / enough)
    rule = Rule(step, math.ceil(cut_off() / step), terms)
    scale = 2 * arb(step) / (2 * arb.pi()).sqrt()
    values = [scale * curve.value(acb(r * x), False).real * (-x * x / 4).exp() for x in rule.nodes]
    table = hermite_table(rule, ctx.prec, odd)
    sums = (table * arb_mat([[value] for value in values])).entries()
    out = np.array([arb(0)] * terms, dtype=object)
    for n, value in zip(range(int(odd), terms, 2), sums, strict=True):
        out[n] = value + arb(0, _error(curve, r, arb(alpha), rule, n).upper())
    return out


def _error(curve: Curve, r: arb, alpha: arb, rule: Rule, n: int) -> arb:
    """An upper bound of the distance between the sum for a_n and the integral."""
    step, end = arb(rule.step), arb(rule.step) * rule.nodes_on_a_side
    strip = alpha * alpha / 2 + alpha * arb(n).sqrt()
    line = curve.growth * r * (1 + alpha * alpha).sqrt() * strip.exp()
    beyond = 4 * curve.steepness * r * (-end * end / 4).exp() / (2 * arb.pi()).sqrt()
    return 2 * line / ((2 * arb.pi() * alpha / step).exp() - 1) + beyond


def features(curve: Curve, r: arb, odd: bool, known: Moments, wanted: float) -> Features:
    """As many as leave a fraction of at most `wanted` of the derivative, or the most that there are."""
    likely = likely_terms(curve, r, wanted)
    choices = [terms for terms in CHOICES if terms >= likely] or [CHOICES[-1]]
    for terms in choices:
        found = with_rests(coefficients(curve, r, odd, terms), known)
        if found.left.slope <= wanted * known.slope:
            break
    return found


def likely_terms(curve: Curve, r: arb, wanted: float) -> float:
    """The least number that may leave so little.

    Poles twice as far away as the strip is wide would leave e^(-4 alpha sqrt(n)).
    """
    return (-math.log(wanted) * float(r) / (4 * float(curve.strip))) ** 2


def with_rests(a: np.ndarray, known: Moments) -> Features:
    """The features of a function, together with what they leave of its moments."""
    n = np.array(range(len(a)), dtype=object)  # integers of Python, which balls know
    up = np.array([(arb(k + 1) * (k + 2)).sqrt() for k in n[:-2]], dtype=object)
    euler = n[:-2] * a[:-2] + up * a[2:]
    left = Moments(
        arb(0),
        _rest(known.square, a * a),
        _rest(known.slope, n * (a * a)),
        _rest(known.euler, euler * euler),
    )
    return Features(a, euler, known, left)


def _rest(whole: arb, parts: np.ndarray) -> arb:
    """What a sum of positive numbers leaves of the whole, at most."""
    left = whole - sum(parts.tolist(), arb(0))
    if left < 0:
        raise ArithmeticError("Parseval's theorem does not hold: a feature or an integral is wrong")
    return arb(left.upper())
