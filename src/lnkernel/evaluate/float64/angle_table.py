r"""Expectations over pairs of one length, as functions of the angle: Chebyshev series in $\sqrt m$.

Behind a normalisation all inputs have one length, and only the angle is left. Let $m = \min(w, z)$. An even and
an odd part of $\phi$ do not mix, and where $v$ becomes $-v$, one of them changes its sign, so that acute angles
suffice. With kinks all functions are analytic in $\sqrt m$ and not in $m$. The gaps
$\frac14 E\,(\phi(u) - \phi(v))^2$ are tabulated over $m$, and so keep their digits at small angles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.calculus.quadrature import Table
from lnkernel.evaluate.float64 import namespace

END = 0.5**0.5  # the end of the range of sqrt(m)
BLOCK = 8  # coefficients in one step of a loop: numbers of pairs are read and written once for all


class Found(NamedTuple):
    """What `Pair` of `quadrature` holds, in the same order."""

    product: Array
    w: Array
    z: Array
    centred_w: Array
    centred_z: Array
    slope: Array
    euler: Array


def look_up(table: Table, w: Array, z: Array, sqrt: Callable[[Array], Array]) -> Found:
    """The expectations of all pairs with these angles. The rows of the table are the gaps over m, the slopes and
    the numbers `euler`, each for the even and the odd part; then the mean and the variances of both parts."""
    *rows, (mean, even, odd) = table
    xp, acute = namespace.of(w, z, *rows[0]), w <= z
    m = xp.where(acute, w, z)
    gap_even, gap_odd, slope_even, slope_odd, euler_even, euler_odd = _chebyshev(rows, sqrt(m))
    # of m, E (phi(u) - phi(v))²/4 and E (phi(u) + phi(v))²/4 less the mean's; where v becomes -v, the odd part turns
    less, more = (m * gap_even, m * gap_odd), (even - m * gap_even, odd - m * gap_odd)
    apart = less[0] + xp.where(acute, less[1], more[1])
    together = more[0] + xp.where(acute, more[1], less[1])
    spread = even + odd
    size = spread + mean * mean
    w, z = apart / size, (together + mean * mean) / size
    sign = xp.where(acute, 1.0, -1.0)
    return Found(
        product=z - w,
        w=w,
        z=z,
        centred_w=apart / spread,
        centred_z=together / spread,
        slope=(slope_odd + sign * slope_even) / size,  # the derivative of the even part is odd
        euler=(euler_even + sign * euler_odd) / size,
    )


def _chebyshev(rows: list[tuple[float, ...]], root: Array) -> list[Array]:
    """The sums of all rows at sqrt(m), by Clenshaw's recurrence; each has a multiple of BLOCK coefficients."""
    if namespace.of(root, *rows[0]) is np:
        return _chebyshev_at_once(np.array(rows), np.asarray(root))
    coefficients = jnp.stack([jnp.stack([jnp.asarray(c) for c in row]) for row in rows]).T
    t = root * (2 / END) - 1
    zero = jnp.zeros_like(t)

    def step(
        carry: list[tuple[Array, Array]], block: Array
    ) -> tuple[list[tuple[Array, Array]], None]:
        for column in block:
            carry = [
                (c + 2 * t * one - two, one) for c, (one, two) in zip(column, carry, strict=True)
            ]
        return carry, None

    start = [(zero, zero) for _ in rows]
    blocks = coefficients[::-1].reshape(-1, BLOCK, len(rows))
    found, _ = lax.scan(step, start, blocks)
    return [one - t * two for one, two in found]


def _chebyshev_at_once(rows: np.ndarray, root: np.ndarray) -> list[Array]:
    """The same by NumPy: each step is one operation for all rows."""
    twice = root * (4 / END) - 2
    one = two = np.zeros((len(rows), *np.shape(root)))
    for column in rows.T[:0:-1]:
        one, two = column.reshape(-1, *[1] * np.ndim(root)) + (twice * one - two), one
    first = rows[:, 0].reshape(-1, *[1] * np.ndim(root))
    return list(first + (0.5 * twice * one - two))
