r"""GroupNorm's $\kappa_\nu$ in float64."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from lnkernel.calculus import spherical as declared
from lnkernel.calculus.spherical import Spherical
from lnkernel.evaluate.float64 import tables
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.branched import evaluate_branched, safe_log

SPLIT = 0.125  # of y = 1 - rho^2, between the expansion at the branch point and the rest


def spherical(freedom: int, m: Array) -> Spherical:
    r"""GroupNorm's $\kappa_\nu$ at $\rho = 1 - 2m \ge 0$ and its derivative."""
    rho, y = 1 - 2 * m, 4 * m * (1 - m)
    near_value, near_slope = tables.sphere_near(freedom, SPLIT)
    rest_value, rest_slope = tables.sphere_rest(freedom, SPLIT)
    log, close = safe_log(y), y < SPLIT
    safe = jnp.where(close, y, SPLIT)  # keeps the unused side finite
    drop = jnp.where(close, -evaluate_branched(near_value, safe, log), 1 - _clenshaw(rest_value, y))
    gap = 2 * m + rho * drop
    if freedom == 1:  # the outputs are +-1, and no derivative passes
        return Spherical(gap, 1 - gap, jnp.zeros_like(m))
    top = (freedom - 1) / (freedom - 2)
    near = top * (1 + evaluate_branched(near_slope, safe, log))
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
    above: Any = 0.0
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        above, value = value, factor * value - above + coefficient
    return first * value + zeroth * (coefficients[0] - above)


@declared.spherical.register
def _(num: Float64, freedom: int, m: Array) -> Spherical:
    return spherical(freedom, m)
