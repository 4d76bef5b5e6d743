r"""Gaussian moments of an analytic activation at one length, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch.smooth import Smooth
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite import nodes_and_weights


class Moments(NamedTuple):
    """E phi, E phi², the variance of phi, E phi'², and E (u phi')²."""

    mean: float
    square: float
    variance: float
    slopes: float
    euler: float


def moments_of(layer: Smooth, length: float) -> Moments:
    """At u = length times a unit Gaussian; for lengths that the series is computed for."""
    x, weights = nodes_and_weights(2)
    density = weights[:, 0]
    with jax.enable_x64(True):
        phi = function_of(layer)
        u = jnp.asarray(length * x)
        rest, slopes = np.asarray(phi.rest(u)), np.asarray(jax.vmap(jax.grad(phi.rest))(u))
        start = float(phi.at_zero)
    shift = float(density @ rest)
    variance = float(density @ np.square(rest - shift))
    mean = start + shift
    return Moments(
        mean,
        variance + mean * mean,
        variance,
        float(density @ np.square(slopes)),
        float(density @ np.square(length * x * slopes)),
    )
