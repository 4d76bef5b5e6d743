r"""One LayerNorm of three neurons as a map of the line, and chains of such maps, exactly.

LayerNorm of three neurons is $\sqrt3\,h/|h|$ in the plane orthogonal to (1, 1, 1). With an orthonormal basis
$e_1, e_2$ of that plane and $h = (t - c)\,e_1 + s\,e_2$ it leaves the angle $\psi = \mathrm{atan2}(s, t - c)$, and
the next affine layer can read $\cos(\psi - \varphi)$: the line is bent to an arc and seen from the direction
$\varphi$, which folds it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from lnkernel.evaluate.balls.numbers import exact, upper_end


@dataclass(frozen=True)
class Fold:
    r"""$t \mapsto \frac{(t - c)\,a + s\,b}{\sqrt{(t - c)^2 + s^2}}$; $a, b$ are $\cos\varphi, \sin\varphi$, rounded."""

    c: Fraction
    s: Fraction
    a: Fraction
    b: Fraction


@dataclass(frozen=True)
class Chain:
    """A function of points, in exact numbers: sign · (t - threshold), where t is w·x + offset after all folds."""

    w: tuple[float, ...]
    offset: Fraction
    folds: tuple[Fold, ...]
    threshold: Fraction
    sign: int


def as_fraction(number: arb) -> Fraction:
    """The midpoint of a ball, exactly."""
    mantissa, exponent = number.mid().man_exp()
    power = int(exponent)
    return Fraction(int(mantissa)) * (Fraction(2**power) if power >= 0 else Fraction(1, 2**-power))


def bend(t: arb, c: arb, s: arb, a: arb, b: arb) -> arb:
    """A fold of a number."""
    u = t - c
    return (u * a + s * b) / (u * u + s * s).sqrt()


def bend_ball(t: arb, c: arb, s: arb, a: arb, b: arb, slack: arb) -> arb:
    r"""A fold of a ball, by the mean value theorem: $|f(t) - f(m)| \le |f'(m)|\,r + (r/s)^2$, because
    $|f''| \le 2/s^2$.

    The ball also holds what float64 makes of it, where the vector h and the result have errors of up to `slack`.
    """
    middle, radius = t.mid(), t.rad()
    u = middle - c
    square = u * u + s * s
    length = square.sqrt()
    sine = abs(s * a - u * b) / length
    reach = sine * s / square * radius + sine / length * slack + ((radius + slack) / s) ** 2 + slack
    return (u * a + s * b) / length + arb(0, 1) * upper_end(reach)


class Evaluator:
    """A chain in balls of the working precision that it is made in."""

    def __init__(self, chain: Chain):
        self.w = [(place, exact(w)) for place, w in enumerate(chain.w) if w]
        self.offset = exact(chain.offset)
        self.folds = [tuple(map(exact, (f.c, f.s, f.a, f.b))) for f in chain.folds]
        self.threshold, self.sign = exact(chain.threshold), chain.sign

    def project(self, x: Sequence[float], rounding: arb) -> arb:
        """w·x + offset, with an error of `rounding` times the sum of the sizes of its terms."""
        terms = [*(w * arb(x[place]) for place, w in self.w), self.offset]
        size = sum((abs(term) for term in terms), arb(1))
        return sum(terms, arb(0)) + arb(0, 1) * upper_end(rounding * size)

    def score(self, x: Sequence[float], unit: arb, slack: int = 0) -> arb:
        """The chain's value as a ball: that of the exact function, or with some units of rounding in every layer."""
        errors = unit * slack
        t = self.project(x, unit * (slack + len(x) if slack else 0))
        for c, s, a, b in self.folds:
            t = bend_ball(t, c, s, a, b, errors)
        return self.sign * (t - self.threshold) + arb(0, 1) * upper_end(errors)
