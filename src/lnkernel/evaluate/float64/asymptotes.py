r"""The straight lines that activations approach as $u \to \pm\infty$.

At long inputs the moments of an activation are those of its lines, and of what is left near 0. A wave
approaches none; its moments are known in closed form (`lnkernel.evaluate.float64.moments`). Of a clip they are
integrals over one interval (`lnkernel.evaluate.float64.clip_moments`).
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

from lnkernel.arch.node import Node
from lnkernel.arch.piecewise import Elu, Selu
from lnkernel.arch.smooth import Erf, Gaussian, Gelu, Sigmoid, Silu, Softplus, Tanh
from lnkernel.evaluate.float64 import namespace

EXPONENTIAL_REACH = 45.0  # e^-45 = 3e-20


class Line(NamedTuple):
    """slope·u + level."""

    slope: Any
    level: Any


class Asymptotes(NamedTuple):
    """The lines, and the |u| beyond which float64 cannot tell phi and phi' from them."""

    left: Line  # u → -∞
    right: Line  # u → ∞
    reach: Any


FLAT = Line(0.0, 0.0)
DIAGONAL = Line(1.0, 0.0)


@singledispatch
def asymptotes_of(layer: Node) -> Asymptotes | None:
    """The asymptotes of an activation; None where they are not known, or where there are none."""
    return None


@asymptotes_of.register
def _(layer: Tanh) -> Asymptotes:
    return Asymptotes(Line(0.0, -1.0), Line(0.0, 1.0), EXPONENTIAL_REACH / 2)


@asymptotes_of.register
def _(layer: Erf) -> Asymptotes:
    return Asymptotes(Line(0.0, -1.0), Line(0.0, 1.0), 7.0)


@asymptotes_of.register
def _(layer: Sigmoid) -> Asymptotes:
    return Asymptotes(FLAT, Line(0.0, 1.0), EXPONENTIAL_REACH)


@asymptotes_of.register
def _(layer: Gaussian) -> Asymptotes:
    return Asymptotes(FLAT, FLAT, 7.0)


@asymptotes_of.register
def _(layer: Gelu) -> Asymptotes:
    return Asymptotes(FLAT, DIAGONAL, 10.0)


@asymptotes_of.register
def _(layer: Silu) -> Asymptotes:
    """With beta below 0 it is turned round; with beta = 0 it is u/2, on both sides."""
    sign = namespace.of(layer.beta).sign(layer.beta)
    left, right = (Line(0.5 * (1 + side * sign), 0.0) for side in (-1, 1))
    return Asymptotes(left, right, EXPONENTIAL_REACH / abs(layer.beta))


@asymptotes_of.register
def _(layer: Softplus) -> Asymptotes:
    return Asymptotes(FLAT, DIAGONAL, EXPONENTIAL_REACH / layer.beta)


@asymptotes_of.register
def _(layer: Elu) -> Asymptotes:
    return Asymptotes(Line(0.0, -layer.alpha), DIAGONAL, EXPONENTIAL_REACH)


@asymptotes_of.register
def _(layer: Selu) -> Asymptotes:
    left = Line(0.0, -layer.scale * layer.alpha)
    return Asymptotes(left, Line(layer.scale, 0.0), EXPONENTIAL_REACH)
