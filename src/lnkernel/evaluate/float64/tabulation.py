r"""Tables of `angle_table` for activations with plain numbers as hyperparameters.

Those of one length r are of the function phi(ru), and unit length.

They are series through values at Chebyshev points, and these come by quadrature; where closed forms are known, from
the slopes $S = E\,\phi'(u)\phi'(v)$ alone, since of such pairs

    1/4 E (phi(u) - phi(v))² = ∫ S dm, from 0 to m.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.quadrature import Grading, Table
from lnkernel.evaluate.float64.angle_table import BLOCK, END
from lnkernel.evaluate.float64.chebyshev_points import means_below, points, series_through
from lnkernel.evaluate.float64.closed_pairs import ClosedPair, closed_pair
from lnkernel.evaluate.float64.functions import Function, function_of
from lnkernel.evaluate.float64.moments import moments_at
from lnkernel.evaluate.float64.panels import levels_for
from lnkernel.evaluate.float64.quadrature import Places, Side, integrate_pairs, sides_of

COUNTS = 48, 128  # nodes; a function that needs more has no table
MOST = COUNTS[-1]
NEGLIGIBLE = 1e-16  # size of the coefficients that are left out, beside the largest one
ROUNDING = 2.0**-50  # of slopes
NOISE = 1e-14  # if the last that are kept are larger, the series has not converged


@lru_cache(maxsize=256)
def table_of(layer: Elementwise, length: float = 1.0) -> Table:
    """The table for pairs of this length; empty where the series does not converge."""
    form = closed_pair(layer)
    found = (_table_by(count, layer, form, length) for count in COUNTS if form or count == MOST)
    return next((table for table in found if table), ())


def _table_by(count: int, layer: Elementwise, form: ClosedPair | None, length: float) -> Table:
    """The table from so many values; empty where they do not suffice."""
    if form is not None:
        rows, sizes = _values_by_slopes(count, layer, form, length)
    else:
        with jax.enable_x64(True):
            rows, sizes = (np.asarray(part) for part in _values(layer, length))
    if not np.isfinite(rows).all():
        return ()
    coefficients = series_through(rows)
    scale = np.abs(coefficients).max(axis=1, initial=1e-300, keepdims=True)
    # slopes and gaps of one kind are added up, so that the smaller ones need fewer digits
    scale = scale.reshape(3, 2).max(axis=1, keepdims=True).repeat(2, axis=1).reshape(6, 1)
    relative = np.abs(coefficients) / scale
    if relative[:, -BLOCK:].max() > NOISE:
        return ()
    last = np.flatnonzero((relative > NEGLIGIBLE).any(axis=0)).max(initial=0)
    kept = BLOCK * (last // BLOCK + 1)
    return *(tuple(map(float, row)) for row in coefficients[:, :kept]), tuple(map(float, sizes))


def _values_by_slopes(
    count: int, layer: Elementwise, form: ClosedPair, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same as `_values`. Where v becomes -v, products of the even parts of two functions stay, those of the odd
    parts change their sign; the derivative of an even function is odd."""
    root = points(count, END)
    m = np.square(root)
    with np.errstate(all="ignore"):
        sides = ((m, 1 - m), (1 - m, m))
        (s, e), (s_turned, e_turned) = (form.at_one_length(length, *side) for side in sides)
    s, s_turned = length**2 * s, length**2 * s_turned
    slopes = [0.5 * (s - s_turned), 0.5 * (s + s_turned)]  # of the even part, and of the odd one
    euler = [0.5 * (e + e_turned), 0.5 * (e - e_turned)]
    steepest = [np.abs(slope).max() for slope in slopes]
    for part, most in enumerate(steepest):
        if most <= ROUNDING * max(steepest):  # the function is odd, or even
            slopes[part], euler[part] = 0.0 * slopes[part], 0.0 * euler[part]
    gaps = means_below(np.stack(slopes), np.append(root, END), END)
    mean = moments_at(layer, np.array([length])).mean[0]
    rows = [*(gap[:-1] for gap in gaps), *slopes, *euler]
    return np.stack(rows), np.array([mean, *(gap[-1] for gap in gaps)])


@partial(jax.jit, static_argnums=(0, 1))
def _values(layer: Elementwise, length: float) -> tuple[Array, Array]:
    """The rows of the table at the nodes of Chebyshev's polynomials; the mean and both variances."""
    root = points(MOST, END)
    unit, r = Side(jnp.ones(()), jnp.zeros(()), jnp.ones(())), jnp.asarray(length)
    rows, parts = [], []
    for part in _even_and_odd(function_of(layer)):
        grading = Grading(levels_for(part, length))
        parts.append(sides_of(part, r, grading))
        places = Places(unit, unit, r, r, jnp.asarray(root), jnp.sqrt(1 - root * root))
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
