r"""The Gaussian expectation $F_p$ in float64, for every degree.

`near` and `far` refer to the side of the circle: $F_p(|\rho|)$ and $F_p(-|\rho|)$, as functions of
$m = (1-|\rho|)/2 \in [0, 1/2]$. Relative errors are below 2e-15, mostly at one unit in the last
place, for `far` and for `1 - near`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
from jax import Array

from lnkernel.calculus import homogeneous
from lnkernel.calculus.homogeneous import Tails, integer_moment
from lnkernel.evaluate.float64 import namespace, tables
from lnkernel.evaluate.float64.arithmetic import Float64, PlainLengths
from lnkernel.evaluate.float64.branched import evaluate_branched, safe_log
from lnkernel.evaluate.float64.elementary import computed_once, half_root, polynomial
from lnkernel.evaluate.float64.namespace import differentiable_in
from lnkernel.evaluate.float64.precise import Precise, is_single


def tails(degree: float, m: Array) -> Tails:
    """F_p and F_{p-1} on both sides."""
    if float(degree).is_integer():
        return _integer_tails(int(degree), m)
    log, xp = safe_log(m), namespace.of(m)
    far, gap = _far(degree, m, log), _gap(degree, m, log)
    # degree p - 1 has an infinite derivative at m = 0; that of a constant is the symmetric choice
    apart = m > 0
    away = xp.where(apart, m, 0.25)
    slope_gap = xp.where(apart, _gap(degree - 1, away, safe_log(away)), 0.0)
    far_slope = xp.where(apart, _far(degree - 1, away, safe_log(away)), 0.0)
    return Tails(far, gap, far_slope, 1 - slope_gap)


def _integer_tails(degree: int, m: Array) -> Tails:
    r"""The elementary closed forms. Both sides are one analytic function times $m^{p+1/2}$,
    and a polynomial: $F_1(-|\rho|) = (\sin\theta - \theta\cos\theta)/\pi$ with $\sin(\theta/2) = \sqrt m$, and
    $F_1(\rho) - F_1(-\rho) = \rho$.
    """
    far, far_slope = (_integer_far(p, m) for p in (degree, degree - 1))
    gap = _integer_gap(degree, m, far)
    return Tails(far, gap, far_slope, 1 - _integer_gap(degree - 1, m, far_slope))


@differentiable_in(fixed=(0,))
def _integer_far(degree: int, m: Array) -> Array:
    powers = half_root(m)
    for _ in range(degree):
        powers = powers * m
    return powers * polynomial(tuple(2 * c for c in tables.far_factor(degree)), m)


@_integer_far.defjvp
def _(degree: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r"""Price's theorem, $F_p' = \frac{p^2}{2p-1} F_{p-1}$; and $F_0(-|\rho|) = \theta/\pi$, whose derivative at 0 is
    taken as 0. So derivatives need no polynomials of their own, which programs would be full of."""
    (m,), (dm,) = primals, tangents
    value = _integer_far(degree, m)
    if degree > 0:
        growth = degree * degree / (2 * degree - 1)
        return value, 2 * growth * computed_once(_integer_far(degree - 1, m)) * dm
    apart = m > 0
    safe = jnp.where(apart, m, 0.5)
    return value, jnp.where(apart, 1 / (math.pi * jnp.sqrt(safe * (1 - safe))), 0.0) * dm


def _integer_gap(degree: int, m: Array, far: Array) -> Array:
    if degree == 0:
        return far
    rest = m * polynomial(tables.integer_gap(degree), m)
    return rest + far if degree % 2 == 0 else rest - far


def _far(degree: float, m: Array, log: Array) -> Array:
    return namespace.of(log).exp((degree + 0.5) * log) * polynomial(tables.far_factor(degree), m)


def _gap(degree: float, m: Array, log: Array) -> Array:
    return -evaluate_branched(tables.near_factor(degree), m, log)


@homogeneous.tails.register
def _(num: Float64, degree: float, m: Array) -> Tails:
    if is_single(m):  # on the diagonal it is the same number in all layers
        return _kept_tails(degree, m)
    if num.quick:
        return tails(degree, m)
    return Tails(*map(computed_once, tails(degree, computed_once(m))))


@homogeneous.tails.register
def _(num: PlainLengths, degree: float, m: Array) -> Tails:
    return tails(degree, m)


@lru_cache(maxsize=1024)
def _kept_tails(degree: float, m: Any) -> Tails:
    return tails(degree, m)


@homogeneous.moment.register
def _(num: Float64, degree: float) -> Any:
    if float(degree).is_integer():
        return integer_moment(int(degree))
    return Precise(*map(num.xp.asarray, tables.moment(degree)))


@homogeneous.half_share.register
def _(num: Float64, degree: float) -> float:
    return float(tables.mean_share(degree))
