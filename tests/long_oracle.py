r"""Gaussian expectations of analytic activations of long inputs to 18 digits, by the rule of `smooth_oracle`.

Inputs of length r take r² times the nodes: too many for balls, so these are NumPy's long doubles. The nodes are
as close as the singularities of the function demand, and uniform; the library's panels are graded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf
from smooth_oracle import Expectations

Vector = np.ndarray
LONG = np.longdouble
ROUNDING = 46.0  # 20 digits: errors of the rule are exp(-ROUNDING)
ROWS = 64  # at a time


def _sigmoid(u: Vector) -> Vector:
    return 0.5 * (1 + np.tanh(0.5 * u))


def _tanh(layer: Any, u: Vector) -> tuple[Vector, Vector]:
    t = np.tanh(u)
    return t, (1 - t) * (1 + t)


def _logistic(layer: Any, u: Vector) -> tuple[Vector, Vector]:
    s = _sigmoid(u)
    return s, s * (1 - s)


def _silu(layer: Any, u: Vector) -> tuple[Vector, Vector]:
    beta = LONG(layer.beta)
    s = _sigmoid(beta * u)
    return u * s, s + beta * u * s * (1 - s)


def _softplus(layer: Any, u: Vector) -> tuple[Vector, Vector]:
    beta = LONG(layer.beta)
    return np.logaddexp(beta * u, LONG(0)) / beta, _sigmoid(beta * u)


def _gelu(layer: Any, u: Vector) -> tuple[Vector, Vector]:
    if not layer.approximate:
        raise NotImplementedError("the exact GELU has a closed form: closed_oracle")
    scale, cubic = np.sqrt(LONG(0.5) / np.arctan(LONG(1))), LONG(0.044715)
    t = np.tanh(scale * (u + cubic * u**3))
    return u * (1 + t) / 2, (1 + t) / 2 + u * (1 - t) * (1 + t) / 2 * scale * (
        1 + 3 * cubic * u * u
    )


# phi and phi', and half the width of the strip around the real line in which they are analytic
FUNCTIONS: dict[str, tuple[Callable[[Any, Vector], tuple[Vector, Vector]], float]] = {
    "Tanh": (_tanh, 1.3),
    "Sigmoid": (_logistic, 2.6),
    "Silu": (_silu, 2.6),
    "Softplus": (_softplus, 2.6),
    "Gelu": (_gelu, 0.7),  # its poles come closer where it is straight to all digits
}


@cache
def expectations(layer: Any, q1: mpf, q2: mpf, rho: mpf, fineness: float = 1.0) -> Expectations:
    """`fineness`: by how much more nodes there are than it takes."""
    phi, strip = FUNCTIONS[type(layer).__name__]
    strip /= float(getattr(layer, "beta", 1.0)) * fineness
    with mp.workdps(40):
        r1, r2 = (_long(mpmath.sqrt(q)) for q in (q1, q2))
        z, w = (_long(mpmath.sqrt((1 + sign * rho) / 2)) for sign in (1, -1))
    longest = max(float(r1), float(r2))
    (x, over_x), (y, over_y) = (_rule(longest * float(root), strip) for root in (z, w))
    total = np.zeros(4, LONG)
    for start in range(0, len(x), ROWS):
        some, weights = x[start : start + ROWS, None], over_x[start : start + ROWS]
        u, v = r1 * (z * some + w * y), r2 * (z * some - w * y)
        (f, df), (g, dg) = phi(layer, u), phi(layer, v)
        total += [weights @ (t @ over_y) for t in (f * g, df * dg, u * df * v * dg, f)]
    return Expectations(*(_number(t) for t in total))


def _rule(steepness: float, strip: float) -> tuple[Vector, Vector]:
    """Nodes and weights of a unit Gaussian, for functions analytic in `strip`, of `steepness` times x."""
    if steepness == 0:
        return np.zeros(1, LONG), np.ones(1, LONG)
    d = min(strip / steepness, (2 * ROUNDING) ** 0.5)
    step = LONG(2 * np.pi * d / (ROUNDING + d * d / 2))
    x = step * np.arange(-int(9.6 / step) - 1, int(9.6 / step) + 2)
    weights = np.exp(-x * x / 2)
    return x, weights / weights.sum()


def _long(t: mpf) -> np.longdouble:
    high = float(t)
    return LONG(high) + LONG(float(t - mpf(high)))


def _number(t: np.longdouble) -> mpf:
    high = float(t)
    with mp.workdps(40):
        return mpf(high) + mpf(float(t - LONG(high)))
