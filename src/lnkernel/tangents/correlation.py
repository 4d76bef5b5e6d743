r"""How the cosine of two gradients falls with the distance of their inputs: its floor $c_\infty$ and its
correlation length ξ, measured on a matrix of cosines.

The mean of the cosines over pairs at the distance ε is read as
$c(\varepsilon) = c_\infty + (1 - c_\infty)\,e^{-\varepsilon^2/2\xi^2}$.

>>> import jax.numpy as jnp, numpy as np
>>> from lnkernel.tangents.alignment import gaussian
>>> x = np.linspace(-1, 1, 200)[:, None]
>>> C = 0.2 + 0.8 * gaussian(jnp.asarray(x), 0.1)
>>> [round(float(part), 2) for part in correlation(C, distance_bins(x))]
[0.2, 0.1]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lnkernel.check.arrays import as_points
from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError
from lnkernel.types import Points


class DistanceBins(NamedTuple):
    """All pairs of different inputs by their distance, in bins of equal width that are not empty."""

    place: Int[np.ndarray, "n n"]  # the bin of every pair; behind the last one on the diagonal
    distance: Float[np.ndarray, " bins"]  # the mean distance in every bin
    pairs: Float[np.ndarray, " bins"]  # how many there are in it
    far: Float[np.ndarray, " bins"]  # the weights of the bins in the mean that is the floor


class Correlation(NamedTuple):
    """The floor of the cosine and its correlation length."""

    floor: Float[Array, ""]
    length: Float[Array, ""]


def distance_bins(x: Points, bins: int = 50, far: int = 10) -> DistanceBins:
    """The pairs of inputs x, (n, d), in `bins` bins from 0 to their largest distance; the mean of the
    last `far` bins is the floor. To be made once, outside of jit."""
    points = np.asarray(as_points("x", x))
    count = positive_integer("bins", bins)
    if not 0 < far < count:
        raise InputError(
            "far", "fewer bins than there are", f"{far} of {count}", "Write bins=50, far=10"
        )
    square = np.sum(points**2, 1)
    between = np.sqrt(np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0))
    apart = ~np.eye(len(points), dtype=bool)
    largest = between[apart].max(initial=0.0)
    if largest == 0:
        raise InputError("x", "inputs at different places", "one place", "Give two at least")
    raw = np.minimum((between * (count / largest)).astype(np.int64), count - 1)
    pairs = np.bincount(raw[apart], minlength=count)
    total = np.bincount(raw[apart], between[apart], minlength=count)
    kept = pairs > 0
    place = np.where(apart, (np.cumsum(kept) - 1)[raw], kept.sum()).astype(np.int32)
    last = (np.arange(count) >= count - far)[kept]
    return DistanceBins(place, (total[kept] / pairs[kept]), 1.0 * pairs[kept], last / last.sum())


def mean_cosine(C: Float[Array, "n n"], bins: DistanceBins) -> Float[Array, " bins"]:
    """The mean of the cosines in every bin."""
    size = len(bins.pairs)
    total = jax.ops.segment_sum(jnp.ravel(C), jnp.ravel(bins.place), size)
    return total / jnp.asarray(bins.pairs, C.dtype)


def correlation(C: Float[Array, "n n"], bins: DistanceBins) -> Correlation:
    r"""The floor $c_\infty$, the mean of the last bins, and the length $\xi = \varepsilon/\sqrt{2\ln 2}$,
    ε being the distance at which $(c - c_\infty)/(1 - c_\infty)$ first falls to one half, by linear
    interpolation from c(0) = 1 on; infinite if it never does.
    """
    curve = mean_cosine(C, bins)
    floor = jnp.sum(curve * jnp.asarray(bins.far, C.dtype))
    start = jnp.ones(1, C.dtype)
    height = jnp.concatenate([start, (curve - floor) / (1 - floor)])
    distance = jnp.concatenate([0 * start, jnp.asarray(bins.distance, C.dtype)])
    below = height < 0.5
    after = jnp.maximum(jnp.argmax(below), 1)
    high, low = height[after - 1], height[after]
    share = (high - 0.5) / jnp.where(high > low, high - low, 1.0)
    half = distance[after - 1] + share * (distance[after] - distance[after - 1])
    width = jnp.where(below.any(), half, jnp.inf)
    return Correlation(floor, width / math.sqrt(2 * math.log(2)))
