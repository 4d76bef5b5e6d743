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
        at_k, at_h = density(k) * normal_below(-across), density(h) * normal_below(-along)
        rest = s * density(h) * density(along)
        made.append(
            Corners(
                one,
                (rho + h * k) * one + rest - h * at_k - k * at_h,
                rho * (one + h * at_h + k * at_k) + rest,
            )
        )
    return made
