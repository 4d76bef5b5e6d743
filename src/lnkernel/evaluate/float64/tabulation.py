"""Tables of `angle_table`, by quadrature, for activations with plain numbers as hyperparameters."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.quadrature import Grading, Table
from lnkernel.evaluate.float64.angle_table import BLOCK, END
from lnkernel.evaluate.float64.functions import Function, function_of
from lnkernel.evaluate.float64.panels import levels_for
from lnkernel.evaluate.float64.quadrature import Places, Side, integrate_pairs, sides_of

MOST = 128  # nodes; a function that needs more has no table
NEGLIGIBLE = 1e-16  # size of the coefficients that are left out, beside the largest one
NOISE = 1e-14  # if the last that are kept are larger, the series has not converged


@lru_cache(maxsize=64)
def table_of(layer: Elementwise) -> Table:
    """The table for pairs of unit length; empty where the series does not converge."""
    with jax.enable_x64(True):
        rows, sizes = (np.asarray(part) for part in _values(layer))
    if not np.isfinite(rows).all():
        return ()
    angle = (np.arange(MOST) + 0.5) * np.pi / MOST
    coefficients = rows @ np.cos(np.outer(np.arange(MOST), angle)).T * (2 / MOST)
    coefficients[:, 0] /= 2
    scale = np.abs(coefficients).max(axis=1, initial=1e-300, keepdims=True)
    # slopes and gaps of one kind are added up, so that the smaller ones need fewer digits
    scale = scale.reshape(3, 2).max(axis=1, keepdims=True).repeat(2, axis=1).reshape(6, 1)
    relative = np.abs(coefficients) / scale
    if relative[:, -BLOCK:].max() > NOISE:
        return ()
    last = np.flatnonzero((relative > NEGLIGIBLE).any(axis=0)).max(initial=0)
    kept = BLOCK * (last // BLOCK + 1)
    return *(tuple(map(float, row)) for row in coefficients[:, :kept]), tuple(map(float, sizes))


@partial(jax.jit, static_argnums=0)
def _values(layer: Elementwise) -> tuple[Array, Array]:
    """The rows of the table at the nodes of Chebyshev's polynomials; the mean and both variances."""
    root = 0.5 * END * (1 + np.cos((np.arange(MOST) + 0.5) * np.pi / MOST))
    unit, one = Side(jnp.ones(()), jnp.zeros(()), jnp.ones(())), jnp.ones(())
    rows, parts = [], []
    for part in _even_and_odd(function_of(layer)):
        grading = Grading(levels_for(part, 1.0))
        parts.append(sides_of(part, one, grading))
        places = Places(unit, unit, one, one, jnp.asarray(root), jnp.sqrt(1 - root * root))
        pair = integrate_pairs(part, grading, places)
        rows.append([pair.w / root**2, pair.slope, pair.euler])
    even, odd = parts
    mean = function_of(layer).at_zero + even.shift
    sizes = jnp.stack([mean, jnp.square(even.spread), jnp.square(odd.spread)])
    return jnp.stack([row for pair in zip(*rows, strict=True) for row in pair]), sizes


def _even_and_odd(phi: Function) -> tuple[Function, Function]:
    """Both parts of phi - phi(0), whose kinks are those of phi and their mirror images."""
    kinks = tuple(sorted({side * float(kink) + 0.0 for kink in phi.kinks for side in (-1, 1)}))

    def part(sign: float) -> Function:
        def rest(u: Array) -> Array:
            return 0.5 * (phi.rest(u) + sign * phi.rest(-u))

        def slope(u: Array) -> Array:
            return 0.5 * (phi.with_slope(u)[1] - sign * phi.with_slope(-u)[1])

        return Function(0.0, rest, kinks, phi.scale, phi.ratio, slope)

    return part(1.0), part(-1.0)
