r"""Gaussian moments of an activation at one length r: those of $\phi(u)$, $u \sim N(0, r^2)$, for every r.

Between $-R$ and $R$, Gauss-Legendre quadrature on panels that resolve both $\phi$ and the density; beyond,
$\phi$ is one of its asymptotes, whose moments are known. Where the density ends before that, it is
$R = 13r$. Nothing cancels: the variance is a sum of squares, of $\phi - \phi(0)$ less its mean where r
is small, and of $\phi$ less its mean where it is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from lnkernel.arch.node import Node
from lnkernel.arch.smooth import Cos, Sin
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.asymptotes import Asymptotes, asymptotes_of
from lnkernel.evaluate.float64.functions import Function, density, function_of, normal_below
from lnkernel.evaluate.float64.namespace import constant

WIDEST = 13.0  # the normal density there is 8e-38
NOTHING_LEFT = 40.0  # there it is 0: short inputs do not feel the lines at all
# One panel spans at most half a standard deviation, and at most 1.9 in u where poles are at a distance
# of pi (of the logistic function): 16 points then leave an error of 1e-20.
PANELS, POINTS = 24, 16


class Moments(NamedTuple):
    """E phi, E phi², the variance of phi, E phi'², and E (u phi')²."""

    mean: Any
    square: Any
    variance: Any
    slopes: Any
    euler: Any


Rule = Callable[[Any], Moments]  # a function of lengths, all above 0


def moments_of(layer: Node, length: float) -> Moments:
    """The moments at one length, as plain numbers.

    >>> from lnkernel import Gelu
    >>> round(moments_of(Gelu(), 1e9).square / 1e18, 9)     # nearly a ReLU: q/2
    0.5
    """
    return Moments(*map(float, moments_at(layer, np.asarray(length, dtype=float))))


def moments_at(layer: Node, lengths: np.ndarray) -> Moments:
    """The moments at many lengths, as arrays of NumPy."""
    with jax.enable_x64(True), np.errstate(all="ignore"):
        rule = moments_rule(layer)
        if rule is None:
            raise ValueError(f"no rule for the moments of {type(layer).__name__}")
        return Moments(*map(np.asarray, rule(np.asarray(lengths))))


@singledispatch
def moments_rule(layer: Node) -> Rule | None:
    """How the moments of an activation follow from the length; None where that is not known."""
    lines = asymptotes_of(layer)
    if lines is None:
        return None
    phi = function_of(layer)
    kinks = [kink for kink in phi.kinks if not known_zero(kink)]  # panels end at 0 in any case
    return partial(by_quadrature, phi, lines, kinks=kinks)


@moments_rule.register
def _(layer: Sin) -> Rule:
    xp, phase = namespace.of(layer.phase), layer.phase
    sine, cosine = (xp.square(f(phase)) for f in (xp.sin, xp.cos))
    return partial(_of_wave, layer.omega, xp.sin(phase), sine, cosine)


@moments_rule.register
def _(layer: Cos) -> Rule:
    return partial(_of_wave, layer.omega, 1.0, 1.0, 0.0)


def _of_wave(omega: Any, start: Any, sine: Any, cosine: Any, length: Array) -> Moments:
    r"""The moments of $\sin(\omega u + c)$, with `start` $= \sin c$, `sine` $= \sin^2 c$, `cosine` $= \cos^2 c$.

    With $x = (\omega r)^2$: $E\phi^2 = \frac12(1 - \cos 2c\,e^{-2x})$, written as a sum of positive terms, and so
    are the others.
    """
    xp = namespace.of(length, omega)
    x = xp.square(omega * length)
    once, twice, rest, rest2 = xp.exp(-x), xp.exp(-2 * x), -xp.expm1(-x), -xp.expm1(-2 * x)
    waves = 0.5 * cosine * (1 + (1 - 4 * x) * twice) + 0.5 * sine * (rest2 + 4 * x * twice)
    return Moments(
        mean=start * xp.exp(-0.5 * x),
        square=sine * twice + 0.5 * rest2,
        variance=0.5 * rest * (2 * cosine * once + rest),
        slopes=(omega * omega) * (cosine * twice + 0.5 * rest2),
        euler=x * waves,
    )


def by_quadrature(
    phi: Function, lines: Asymptotes, length: Array, kinks: Sequence[Any] = ()
) -> Moments:
    """The moments of a function that is analytic but for `kinks`, the u at which a derivative jumps."""
    xp = namespace.of(length, lines.reach)
    reach = constant(lines.reach / length)
    x, weights = _nodes(xp.minimum(WIDEST, reach), [abs(kink) / length for kink in kinks])
    cut = xp.minimum(NOTHING_LEFT, reach)
    u = length[..., None] * xp.stack([x, -x])  # both sides
    rest, slopes = phi.with_slope(u)
    start = xp.where(length < 1, phi.at_zero, 0.0)  # what is taken off phi
    values = (phi.at_zero - start)[..., None] + rest
    tails = [
        _Tail(side * line.slope * length, line.level, cut)
        for side, line in ((1.0, lines.right), (-1.0, lines.left))
    ]

    def total(values: Array) -> Array:
        """Both sides at once: what is odd cancels to exactly 0."""
        return (weights * (values[0] + values[1])).sum(axis=-1)

    shift = total(values) + sum(tail.minus(start).first for tail in tails)
    mean = start + shift
    variance = total(xp.square(values - shift[..., None]))
    variance = variance + sum(tail.minus(mean).second for tail in tails)
    steepness = sum(line.slope * line.slope for line in (lines.left, lines.right))
    beyond = _Tail(length, 0.0, cut)
    return Moments(
        mean,
        variance + xp.square(mean),
        variance,
        total(xp.square(slopes)) + steepness * beyond.zeroth,
        total(xp.square(u * slopes)) + steepness * beyond.second,
    )


class _Tail(NamedTuple):
    """E (rise·x + level)^n over x > cut, for a unit Gaussian x."""

    rise: Any
    level: Any
    cut: Array

    def minus(self, number: Array) -> _Tail:
        return self._replace(level=self.level - number)

    @property
    def zeroth(self) -> Array:
        return normal_below(-self.cut)

    @property
    def first(self) -> Array:
        return self.rise * density(self.cut) + self.level * self.zeroth

    @property
    def second(self) -> Array:
        end = density(self.cut)
        square = (self.rise * self.rise) * (self.zeroth + self.cut * end)
        return square + self.level * (2 * self.rise * end + self.level * self.zeroth)


def _nodes(cut: Array, breaks: list[Array]) -> tuple[Array, Array]:
    """Points of (0, cut), and weights with the normal density; panels end at the breaks."""
    xp = namespace.of(cut, *breaks)
    inside = [xp.minimum(place, cut) for place in breaks]
    edges = xp.sort(xp.stack([xp.zeros_like(cut), *inside, cut]), axis=0)
    points, weights = unit_rule()
    x, dx = [], []
    for low, high in pairwise(edges):
        width = (high - low)[..., None]
        x.append(low[..., None] + width * points)
        dx.append(width * weights)
    nodes = xp.concatenate(x, axis=-1)
    return nodes, xp.concatenate(dx, axis=-1) * density(nodes)


def unit_rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on equal panels of (0, 1)."""
    x, weights = np.polynomial.legendre.leggauss(POINTS)
    panel = np.arange(PANELS)[:, None]
    points = (panel + 0.5 * (1 + x)) / PANELS
    return points.ravel(), np.tile(0.5 * weights / PANELS, PANELS)
