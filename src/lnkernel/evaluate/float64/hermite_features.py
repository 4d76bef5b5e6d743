r"""The Hermite features $a_n(r) = E[\phi(ru)\,h_n(u)]$ of single inputs.

They come from the trapezoidal rule, whose error for analytic functions falls exponentially with the number of nodes
(Trefethen and Weideman 2014).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.arch.smooth import Smooth
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.functions import function_of

# Of the nodes. h_n oscillates with wave numbers up to sqrt(n), 64 for n = 4096, and the rule is exact
# up to 2 pi/0.05 = 126; poles of phi(ru) at a distance of 0.3 leave an error of 4e-17.
SPACING = 0.05
WIDEST = 13.0  # the weight exp(-x²/4) of a Hermite function is 4e-19 there
NEGLIGIBLE = 1e-13  # of the NTK, relatively
SHORTEST = 1e-150  # stands for the length 0, whose features are a limit
# terms for which weights are computed; of fewer they are the first of these
KNOWN = (2, 1026, 2050, 4098)


def nodes_and_weights(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m,), and weights (m, terms) with a_n = sum_j phi(r x_j) weights[j, n]."""
    x, weights = _first_weights(next(known for known in KNOWN if terms <= known))
    return x, weights[:, :terms]


@lru_cache(maxsize=len(KNOWN))
def _first_weights(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """So many; of negative nodes they are those of the positive ones, of odd polynomials with the other sign."""
    x = np.arange(round(WIDEST / SPACING) + 1) * np.longdouble(SPACING)
    rows = np.empty((terms, len(x)), dtype=np.longdouble)  # h_n(x) exp(-x²/4)
    rows[0] = np.exp(-x * x / 4)
    if terms > 1:
        rows[1] = x * rows[0]
    for n in range(1, terms - 1):
        last = np.sqrt(np.longdouble(n)) * rows[n - 1]
        rows[n + 1] = (x * rows[n] - last) / np.sqrt(np.longdouble(n + 1))
    density = rows[0] * np.longdouble(SPACING) / np.sqrt(2 * np.arccos(np.longdouble(-1)))
    right = (rows * density).astype(np.float64).T
    left = right[:0:-1] * np.where(np.arange(terms) % 2, -1.0, 1.0)
    return np.concatenate([-x[:0:-1], x]).astype(np.float64), np.concatenate([left, right])


class Features(NamedTuple):
    """Of one side of all pairs; the first axis counts the Hermite polynomials."""

    unit: Array  # a_n/|a|
    euler: Array  # those of u phi'(u), over |a|
    size: Array  # |a|
    rest: Array  # |a| without the mean a_0, over |a|


def features(layer: Smooth, length: Array, terms: int) -> Features:
    """The features of these lengths; the number of terms must be even."""
    if isinstance(length, np.ndarray) and length.ndim == 1:
        # pairs side by side: an input is in many of them
        lengths, place = np.unique(length, return_inverse=True)
        return Features(*(part[..., place] for part in _features(layer, lengths, terms)))
    return _features(layer, length, terms)


def _features(layer: Smooth, length: Array, terms: int) -> Features:
    x, weights = nodes_and_weights(terms + 2)
    phi, xp = function_of(layer), namespace.of(length)
    values = phi.rest(length[..., None] * x)
    a = _integrate(values, weights)
    n = np.arange(terms)
    euler = n * a[..., :terms] + np.sqrt((n + 1.0) * (n + 2.0)) * a[..., 2:]
    a = a[..., :terms] + phi.at_zero * (n == 0)
    square = (a * a).sum(axis=-1)
    # What the last terms say of those left out, which fall like exp(-c sqrt(n)) at the slowest: no number rather
    # than a wrong one, inside a program.
    left = terms * xp.square(a[..., -2:]).sum(axis=-1) * (math.sqrt(terms) / 2)
    # divided, since XLA takes numbers below 2e-308 for 0
    size = xp.where(left / square < NEGLIGIBLE, xp.sqrt(square), xp.nan)
    rest = xp.sqrt((a[..., 1:] * a[..., 1:]).sum(axis=-1) / square)
    unit, euler = (xp.moveaxis(v / size[..., None], -1, 0) for v in (a, euler))
    return Features(unit, euler, size, rest)


def _integrate(values: Array, weights: np.ndarray) -> Array:
    """The values at all nodes (..., m) times their weights (m, terms).

    What belongs to a single length enters the kernels of all pairs, so there the products are joined in pairs: the
    error of a product of matrices is that of a chain of additions, 3e-15 by XLA.
    """
    xp = namespace.of(values)
    if values.ndim == 1:
        filled = (1 << (len(values) - 1).bit_length()) - len(values)
        terms = xp.pad(values[:, None] * weights, ((0, filled), (0, 0)))
        while len(terms) > 1:
            half = len(terms) // 2
            terms = terms[:half] + terms[half:]
        return terms[0]
    # at full precision: CPUs do it anyway, accelerators would round
    highest = {"precision": lax.Precision.HIGHEST} if xp is jnp else {}
    return xp.matmul(values, weights, **highest)
