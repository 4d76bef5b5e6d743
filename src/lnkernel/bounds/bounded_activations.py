r"""Activations that are bounded: how far a data point can be felt through them.

For a Gaussian pair with $E u^2 = q$, $E v^2 = q'$ and $E uv = k$, $|k| \le \sqrt{qq'}$, the product
$|k\,E\,\phi'(u)\phi'(v)|$ is bounded for all q and k, if q' stays fixed. Where $\phi'$ is integrable,
$E|\phi'(u)| \le \|\phi'\|_1/\sqrt{2\pi q}$, because no density of u exceeds $1/\sqrt{2\pi q}$; hence it is at most

    |phi'|_max |phi'|_1 sqrt(q'/(2 pi)).

For $\sin(\omega u + c)$ it is at most $\omega^2 rr' e^{-\omega^2(r-r')^2/2}$ with $r = \sqrt q$, $r' = \sqrt{q'}$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.piecewise import Clip
from lnkernel.arch.smooth import Cos, Erf, Gaussian, Sigmoid, Sin, Tanh


class Bounded(NamedTuple):
    """A bounded activation, in numbers."""

    height: float  # the maximum of |phi|
    steepness: float  # the maximum of |phi'|
    product: Callable[[np.ndarray], np.ndarray]  # sup |k E phi' phi'| as a function of r'


@singledispatch
def numbers_of(layer: Node) -> Bounded | None:
    """The numbers of a bounded activation; None for every other layer."""
    return None


@numbers_of.register
def _(layer: Tanh) -> Bounded:
    return _integrable(1.0, 1.0, 2.0)


@numbers_of.register
def _(layer: Erf) -> Bounded:
    return _integrable(1.0, 2 / math.sqrt(math.pi), 2.0)


@numbers_of.register
def _(layer: Sigmoid) -> Bounded:
    return _integrable(1.0, 0.25, 1.0)


@numbers_of.register
def _(layer: Gaussian) -> Bounded:
    return _integrable(1.0, math.sqrt(2 / math.e), 2.0)


@numbers_of.register
def _(layer: Clip) -> Bounded:
    low, high = float(layer.low), float(layer.high)
    return _integrable(max(abs(low), abs(high)), 1.0, high - low)


@numbers_of.register(Sin)
@numbers_of.register(Cos)
def _(layer: Sin | Cos) -> Bounded:
    omega = abs(float(layer.omega))
    return Bounded(1.0, omega, lambda r: _most_of_wave(omega * r))


def _integrable(height: float, steepness: float, variation: float) -> Bounded:
    """`variation` is the integral of |phi'|."""
    factor = steepness * variation / math.sqrt(2 * math.pi)
    return Bounded(height, steepness, lambda r: factor * r)


def _most_of_wave(own: np.ndarray) -> np.ndarray:
    r"""$\max_x x\,x' e^{-(x-x')^2/2}$, at $x(x - x') = 1$."""
    x = 0.5 * (own + np.sqrt(own * own + 4))
    return x * own * np.exp(-0.5 * np.square(x - own))
