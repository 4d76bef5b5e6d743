r"""GroupNorm's $\kappa_\nu$ in float64."""

from __future__ import annotations

from jax import Array

from lnkernel.calculus import spherical as declared
from lnkernel.calculus.spherical import Spherical
from lnkernel.evaluate.float64 import namespace, tables
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.branched import evaluate_branched, safe_log
from lnkernel.evaluate.float64.elementary import chebyshev

SPLIT = 0.125  # the y = 1 - rho^2 between the expansion at the branch point and the rest


def spherical(freedom: int, m: Array) -> Spherical:
    r"""GroupNorm's $\kappa_\nu$ at $\rho = 1 - 2m \ge 0$ and its derivative."""
    rho, y = 1 - 2 * m, 4 * m * (1 - m)
    near_value, near_slope = tables.sphere_near(freedom, SPLIT)
    rest_value, rest_slope = tables.sphere_rest(freedom, SPLIT)
    log, close, xp = safe_log(y), y < SPLIT, namespace.of(m)
    safe = xp.where(close, y, SPLIT)  # keeps the unused side finite
    drop = xp.where(close, -evaluate_branched(near_value, safe, log), 1 - _rest(rest_value, y))
    gap = 2 * m + rho * drop
    if freedom == 1:  # the outputs are +-1, and no derivative passes
        return Spherical(gap, 1 - gap, xp.zeros_like(m))
    top = (freedom - 1) / (freedom - 2)
    near = top * (1 + evaluate_branched(near_slope, safe, log))
    return Spherical(gap, 1 - gap, xp.where(close, near, _rest(rest_slope, y)))


def _rest(coefficients: tuple[float, ...], y: Array) -> Array:
    """A Chebyshev series on [SPLIT, 1]."""
    return chebyshev(coefficients, (2 * y - (1 + SPLIT)) / (1 - SPLIT))


@declared.spherical.register
def _(num: Float64, freedom: int, m: Array) -> Spherical:
    return spherical(freedom, m)
