r"""The Hermite features $a_n(r) = E[\phi(ru)\,h_n(u)]$ of single inputs.

They come from the trapezoidal rule, whose error for analytic functions falls exponentially with the number of nodes
(Trefethen and Weideman 2014).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.arch.smooth import Smooth
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.functions import function_of

# Of the nodes. h_n oscillates with wave numbers up to sqrt(n), 64 for n = 4098, and the rule is exact
# up to 2 pi/0.05 = 126; poles of phi(ru) at a distance of 0.3 leave an error of 4e-17.
SPACING = 0.05
WIDEST = 13.0  # the weight exp(-x²/4) of a Hermite function is 4e-19 there
SOME_NODES = 20  # whose products are joined by one chain of additions
NEGLIGIBLE = 1e-13  # of the NTK, relatively
# stands for the length 0, whose features are a limit: its square is a normal number of float64, and inputs of norms
# from 1e-150 are longer in hundreds of dimensions, too
SHORTEST = 1e-153
# terms for which weights are computed; of fewer they are the first of these. The last are for twice the most terms, by
# which errors are estimated
KNOWN = (2, 1026, 2562, 4098)


def nodes_and_weights(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m,), and weights (m, terms) with a_n = sum_j phi(r x_j) weights[j, n]."""
    place = next(k for k, known in enumerate(KNOWN) if terms <= known)
    x = _right_nodes().astype(np.float64)
    return np.concatenate([-x[:0:-1], x]), _known(place).weights[:, :terms]


class _Known(NamedTuple):
    """What is known of the first Hermite polynomials."""

    weights: np.ndarray  # (m, terms)
    last: np.ndarray  # rows of g_n(x) exp(-x²/4), from which the next ones come, (2, nodes)
    scales: np.ndarray  # c_n of these rows


@lru_cache(maxsize=len(KNOWN))
def _known(place: int) -> _Known:
    r"""What is known of the first KNOWN[place], by $\sqrt{n+1}\,h_{n+1} = x h_n - \sqrt n\,h_{n-1}$; with
    $h_n = c_n g_n$, where $c_{n+1} = c_{n-1}\sqrt{n/(n+1)}$, that is a product and a difference. The weights of
    negative nodes are those of the positive ones, of odd polynomials with the other sign."""
    x = _right_nodes()
    first = np.exp(-x * x / 4)
    if place == 0:
        rows, scales = np.array([first, x * first]), np.ones(2, np.longdouble)
        return _Known(_weights(rows, scales, first, 0), rows, scales)
    before = _known(place - 1)
    start, stop = KNOWN[place - 1], KNOWN[place]
    rows = np.empty((2 + stop - start, len(x)), dtype=np.longdouble)
    rows[:2] = before.last
    n = np.arange(start - 1, stop - 1).astype(np.longdouble)
    scales = np.concatenate([before.scales, np.sqrt(n / (n + 1))])
    for parity in (0, 1):
        np.multiply.accumulate(scales[parity::2], out=scales[parity::2])
    factors = scales[1:-1] / (np.sqrt(n + 1) * scales[2:])
    for factor, last, here, new in zip(factors, rows, rows[1:], rows[2:], strict=False):
        np.multiply(x * factor, here, out=new)
        new -= last
    more = _weights(rows[2:], scales[2:], first, start)
    return _Known(np.concatenate([before.weights, more], axis=1), rows[-2:].copy(), scales[-2:])


def _weights(rows: np.ndarray, scales: np.ndarray, first: np.ndarray, start: int) -> np.ndarray:
    """The weights of all nodes (m, terms), from these rows on."""
    density = first * np.longdouble(SPACING) / np.sqrt(2 * np.arccos(np.longdouble(-1)))
    right = (rows * density * scales[:, None]).astype(np.float64).T
    left = right[:0:-1] * np.where(np.arange(start, start + len(rows)) % 2, -1.0, 1.0)
    return np.concatenate([left, right])


def _right_nodes() -> np.ndarray:
    """The nodes from 0 on, in long numbers."""
    return np.arange(round(WIDEST / SPACING) + 1) * np.longdouble(SPACING)


class Features(NamedTuple):
    """The features of one side of all pairs; the first axis counts the Hermite polynomials."""

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
    if xp is np:
        flat: Any = _integrate_by_parity(
            np.reshape(values, (-1, values.shape[-1])), weights.shape[-1]
        )
        made: Any = flat.reshape(*values.shape[:-1], weights.shape[-1])
        return made
    # at full precision: CPUs do it anyway, accelerators would round
    return jnp.matmul(values, weights, precision=lax.Precision.HIGHEST)


def _integrate_by_parity(values: np.ndarray, terms: int) -> np.ndarray:
    """Of many lengths (n, m): even polynomials see the even part of a function, odd ones the odd part. Half of the
    nodes then tell all; from the outermost on, which contribute least, and some at a time, so that few additions round
    much."""
    middle = values.shape[1] // 2
    right, left = values[:, :middle:-1], values[:, :middle]
    even = np.concatenate([right + left, values[:, middle : middle + 1]], axis=1)
    made = np.empty((len(values), terms))
    for parity, part in enumerate((even, right - left)):
        weights = _weights_by_parity(terms, parity)
        made[:, parity::2] = sum(
            multiply_alone(part[:, k : k + SOME_NODES], weights[k : k + SOME_NODES])
            for k in range(0, len(weights), SOME_NODES)
        )
    return made


@lru_cache(maxsize=16)
def _weights_by_parity(terms: int, parity: int) -> np.ndarray:
    """Those of the nodes from the outermost to 0, where odd polynomials are 0."""
    weights = nodes_and_weights(terms)[1]
    middle = len(weights) // 2
    rows = weights[:middle:-1] if parity else weights[: middle - 1 : -1]
    return np.ascontiguousarray(rows[:, parity::2])
