r"""The Gaussian expectation $F_p$ in float64, for every degree.

`near` and `far` refer to the side of the circle: $F_p(|\rho|)$ and $F_p(-|\rho|)$, as functions of
$m = (1-|\rho|)/2 \in [0, 1/2]$. Relative errors are below 2e-15, mostly at one unit in the last
place, for `far` and for `1 - near`.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from lnkernel.calculus.arithmetic import Spherical, Tails
from lnkernel.evaluate.float64 import tables
from lnkernel.evaluate.float64.elementary import half_root, polynomial, root

Array = Any


def tails(degree: float, m: Array) -> Tails:
    """F_p and F_{p-1} on both sides."""
    if float(degree).is_integer():
        return _integer_tails(int(degree), m)
    log = _safe_log(m)
    far, gap = _far(degree, m, log), _gap(degree, m, log)
    # degree p - 1 has an infinite derivative at m = 0; that of a constant is the symmetric choice
    apart = m > 0
    away = jnp.where(apart, m, 0.25)
    slope_gap = jnp.where(apart, _gap(degree - 1, away, _safe_log(away)), 0.0)
    far_slope = jnp.where(apart, _far(degree - 1, away, _safe_log(away)), 0.0)
    return Tails(far, gap, far_slope, 1 - slope_gap)


def _integer_tails(degree: int, m: Array) -> Tails:
    r"""The elementary closed forms. Both sides are one analytic function times $m^{p+1/2}$,
    and a polynomial: $F_1(-|\rho|) = (\sin\theta - \theta\cos\theta)/\pi$ with $\sin(\theta/2) = \sqrt m$, and
    $F_1(\rho) - F_1(-\rho) = \rho$.
    """
    half_sine = half_root(m)
    far, far_slope = (_integer_far(p, m, half_sine) for p in (degree, degree - 1))
    gap = _integer_gap(degree, m, far)
    return Tails(far, gap, far_slope, 1 - _integer_gap(degree - 1, m, far_slope))


def _integer_far(degree: int, m: Array, half_sine: Array) -> Array:
    powers = half_sine
    for _ in range(degree):
        powers = powers * m
    return powers * polynomial(tuple(2 * c for c in tables.far_factor(degree)), m)


def _integer_gap(degree: int, m: Array, far: Array) -> Array:
    if degree == 0:
        return far
    rest = m * polynomial(tables.integer_gap(degree), m)
    return rest + far if degree % 2 == 0 else rest - far


def _safe_log(m: Array) -> Array:
    """log m, and at m = 0 a finite number whose derivative is 0."""
    positive = m > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, m, 1.0)), -690.0)


def _far(degree: float, m: Array, log: Array) -> Array:
    return jnp.exp((degree + 0.5) * log) * polynomial(tables.far_factor(degree), m)


def _gap(degree: float, m: Array, log: Array) -> Array:
    return -_branched(tables.near_factor(degree), m, log)


def _branched(table: tables.Branched, w: Array, log: Array) -> Array:
    """F(w) - 1 for the function that `table` describes."""
    powers = math.prod([w] * table.order)
    if abs(table.delta) == 0.5:
        half_power = math.prod([w] * int(table.order + table.delta)) * root(w)
        grown = (half_power - powers) / table.delta
    elif abs(table.delta) > 0.2:  # w^s to the last digits, also where s is small
        grown = (jnp.exp((table.order + table.delta) * log) - powers) / table.delta
    else:
        ratio = log if table.delta == 0.0 else jnp.expm1(table.delta * log) / table.delta
        grown = powers * ratio
    value = powers * polynomial(table.E, w) - grown * polynomial(table.D, w)
    return value if not table.head else value + w * polynomial(table.head, w)


SPLIT = 0.125  # of y = 1 - rho^2, between the expansion at the branch point and the rest


def spherical(freedom: int, m: Array) -> Spherical:
    r"""GroupNorm's $\kappa_\nu$ at $\rho = 1 - 2m \ge 0$ and its derivative."""
    rho, y = 1 - 2 * m, 4 * m * (1 - m)
    near_value, near_slope = tables.sphere_near(freedom, SPLIT)
    rest_value, rest_slope = tables.sphere_rest(freedom, SPLIT)
    log, close = _safe_log(y), y < SPLIT
    safe = jnp.where(close, y, SPLIT)  # keeps the unused side finite
    drop = jnp.where(close, -_branched(near_value, safe, log), 1 - _clenshaw(rest_value, y))
    gap = 2 * m + rho * drop
    if freedom == 1:  # the outputs are +-1, and no derivative passes
        return Spherical(gap, 1 - gap, jnp.zeros_like(m))
    top = (freedom - 1) / (freedom - 2)
    near = top * (1 + _branched(near_slope, safe, log))
    return Spherical(gap, 1 - gap, jnp.where(close, near, _clenshaw(rest_slope, y)))


def _clenshaw(coefficients: tuple[float, ...], y: Array) -> Array:
    """A Chebyshev series on [SPLIT, 1], the even and the odd terms each for themselves.

    That halves the chain of dependent steps. XLA moves a change of shape along such a chain by one
    step in each of its passes, and after 50 passes it complains on the standard error.
    """
    x = (2 * y - (1 + SPLIT)) / (1 - SPLIT)
    second = 2 * x * x - 1
    even = _recurrence(coefficients[0::2], 2 * second, 1.0, second)
    return even + _recurrence(coefficients[1::2], 2 * second, x, x * (2 * second - 1))


def _recurrence(coefficients: tuple[float, ...], factor: Array, zeroth: Any, first: Array) -> Array:
    r"""$\sum_k c_k f_k$ for functions with $f_{k+1} = \mathrm{factor}\cdot f_k - f_{k-1}$ (Clenshaw 1955)."""
    above, value = 0.0, coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        above, value = value, factor * value - above + coefficient
    return first * value + zeroth * (coefficients[0] - above)
