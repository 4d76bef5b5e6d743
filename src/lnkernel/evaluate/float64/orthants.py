r"""The probability $L(h, k; \rho) = P(x > h,\ y > k)$ of two unit Gaussians with the cosine $\rho = z - w$.

By Plackett it is $\bar\Phi(h)\bar\Phi(k)$ and an integral over the correlation, from 0 to $\rho$. In $y$ with
$\rho = \tanh y$, which ends at $Y = \frac12\log(z/w)$, that is

    1/(2 pi) ∫ exp(-(h - k)²(1 + e^(2y))/8 - (h + k)²(1 + e^(-2y))/8) dy/cosh y.

There is no singularity nearer than $\pm i\pi/2$, so one Gauss-Legendre rule serves all pairs from w or z of 2^-8 on,
with an error of 3e-16. Of $-\rho$ it is the same with $y$ and $-y$ exchanged: what the nodes take is shared by all $h$,
$k$ and signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.functions import density, normal_below

COUNT = 30
LEAST = 2.0**-8  # of w and z
NODES, WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(COUNT))
NODES = NODES + 0.5  # of (0, 1)


class Corner(NamedTuple):
    """x > h and y > k, of a pair with the cosine ρ, or -ρ where `sign` is -1."""

    h: Any
    k: Any
    sign: Any = 1.0


class Corners(NamedTuple):
    """Moments over x > h, y > k."""

    one: Any  # L
    ramps: Any  # E (x - h)(y - k)
    product: Any  # E x y


def orthants(w: Any, z: Any, corners: Sequence[Corner]) -> list[Any]:
    """L of each of these corners, for pairs with these w and z."""
    xp = namespace.of(w, z, *(part for corner in corners for part in corner))
    end = 0.5 * xp.log(z / w)
    near = [0.125 * xp.square(h - sign * k) for h, k, sign in corners]
    far = [0.125 * xp.square(h + sign * k) for h, k, sign in corners]

    def at(node: Any, weight: Any) -> list[Any]:
        grown = xp.exp(end * node)
        square = grown * grown
        share = weight * (grown / (1 + square))
        ahead, behind = -1 - square, -1 - 1 / square
        return [share * xp.exp(a * ahead + b * behind) for a, b in zip(near, far, strict=True)]

    sums = _sum_over_nodes(xp, at)
    return [
        normal_below(-h) * normal_below(-k) + (sign / math.pi) * end * total
        for (h, k, sign), total in zip(corners, sums, strict=True)
    ]


def _sum_over_nodes(xp: Any, at: Callable[[Any, Any], list[Any]]) -> list[Any]:
    """In a program, a loop: written out it would take long to compile."""
    totals = at(NODES[0], WEIGHTS[0])
    if xp is np:
        for node, weight in zip(NODES[1:], WEIGHTS[1:], strict=True):
            for total, term in zip(totals, at(node, weight), strict=True):
                total += term
        return totals
    nodes, weights = jnp.asarray(NODES), jnp.asarray(WEIGHTS)

    def step(number: Any, sums: list[Any]) -> list[Any]:
        return [
            total + term
            for total, term in zip(sums, at(nodes[number], weights[number]), strict=True)
        ]

    found: list[Any] = lax.fori_loop(1, COUNT, step, totals)
    return found


GAUSS = np.polynomial.legendre.leggauss(24)
# Panels of (0, 1), ever shorter towards 0, where exp(-1/t²) has its singularity
PANELS = np.concatenate([[0.0], 2.0 ** np.arange(-10, 1)])
FINE_NODES, FINE_WEIGHTS = (
    np.ravel(PANELS[:-1, None] + np.diff(PANELS)[:, None] * (0.5 + 0.5 * GAUSS[0])),
    np.ravel(np.diff(PANELS)[:, None] * (0.5 * GAUSS[1])),
)


def moments_at_all_angles(w: np.ndarray, z: np.ndarray, corners: Sequence[Corner]) -> list[Corners]:
    r"""The same of few pairs for $h, k \ge 0$, however small w or z, by NumPy.

    Let $t$ be the angle between x and y, or between x and -y if that is smaller. L ends at $\bar\Phi(\max(h, k))$, or
    at 0, from which it is

        1/(2 pi) ∫ exp(-(h - k)²/(2 sin² t) - hk/(1 + cos t)) dt   less, or
        1/(2 pi) ∫ exp(-(h + k)²/(2 sin² t) + hk/(1 + cos t)) dt   more.
    """
    m = np.minimum(w, z)
    angle, s = 2 * np.arcsin(np.sqrt(m)), 2 * np.sqrt(w * z)
    t = angle[..., None] * FINE_NODES
    sines, cosines = np.square(np.sin(t)), 1 + np.cos(t)
    weights = angle[..., None] * FINE_WEIGHTS / (2 * math.pi)
    made = []
    for h, k, sign in corners:
        near = sign * (z - w) >= 0
        turn = np.where(near, 1.0, -1.0)
        apart, inside = h - turn * k, (turn * h * k)[..., None]
        turned = np.exp(-0.5 * np.square(apart)[..., None] / sines - inside / cosines)
        part = (weights * turned).sum(axis=-1)
        one = np.where(near, normal_below(-np.maximum(h, k)) - part, part)
        # h - rho k and k - rho h, where rho is nearly 1 or -1
        across, along = (apart + 2 * turn * m * k) / s, (turn * (2 * m * h - apart)) / s
        made.append(_moments_of(h, k, turn * (1 - 2 * m), s, one, across, along))
    return made


def moments(w: Any, z: Any, corners: Sequence[Corner]) -> list[Corners]:
    r"""Moments over each of these corners. With $s = \sqrt{1-\rho^2}$ and the joint density $f$,

    E (x-h)(y-k) = (rho + hk) L + s² f - h n(k) P(x > h | y = k) - k n(h) P(y > k | x = h),
    E xy         = rho L + s² f + rho h n(h) P(y > k | x = h) + rho k n(k) P(x > h | y = k).
    """
    xp = namespace.of(w, z)
    s = 2 * xp.sqrt(w * z)
    made = []
    for (h, k, sign), one in zip(corners, orthants(w, z, corners), strict=True):
        rho = sign * (z - w)
        across, along = (h - rho * k) / s, (k - rho * h) / s
        made.append(_moments_of(h, k, rho, s, one, across, along))
    return made


def _moments_of(h: Any, k: Any, rho: Any, s: Any, one: Any, across: Any, along: Any) -> Corners:
    """From L, and from (h - rho k)/s and (k - rho h)/s."""
    at_k, at_h = density(k) * normal_below(-across), density(h) * normal_below(-along)
    rest = s * density(h) * density(along)
    return Corners(
        one,
        (rho + h * k) * one + rest - h * at_k - k * at_h,
        rho * (one + h * at_h + k * at_k) + rest,
    )
