"""The variance of the targets' noise: one number for all points, or one for each."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from lnkernel.check.arrays import as_array, as_traced_array
from lnkernel.check.numbers import plain_number
from lnkernel.errors import InputError
from lnkernel.precision import is_traced
from lnkernel.types import Array, Noise

Variance = float | np.ndarray  # (n,) where the points differ in it


def as_variances(noise: object, n: int) -> np.ndarray:
    """A variance for each of n points, checked: (n,), as an array of our own."""
    given = np.array(as_array("noise", noise), dtype=np.float64)
    if given.shape != (n,):
        raise InputError(
            "noise",
            f"one variance, or one for each of the {n} points, shape ({n},)",
            f"shape {given.shape}",
            "Check that X and noise were filtered alike",
        )
    bad = np.flatnonzero(~((given >= 0) & np.isfinite(given)))
    if bad.size:
        came = f"{given[bad[0]]} for point {bad[0]}"
        raise InputError("noise", "variances, at least 0", came, _remedy(given[bad[0]]))
    given.flags.writeable = False
    return given


def _remedy(variance: float) -> str:
    """What helps with a number that is no variance."""
    if not math.isfinite(variance):
        return "Give a finite number; leave points out of which nothing is known"
    return "A variance is the square of a standard deviation"


def as_variance(noise: Noise, n: int) -> Variance:
    """One variance, or one for each of n points, checked."""
    if isinstance(noise, list | tuple) or np.ndim(noise):
        return as_variances(noise, n)
    variance = plain_number("noise", noise, "a variance, at least 0")
    if not 0 <= variance < math.inf:
        raise InputError("noise", "a variance, at least 0", repr(noise), _remedy(variance))
    return variance


def as_traced_variances(noise: Noise, n: int) -> Array:
    """The same inside a user's transformation: of a tracer only the shape is checked."""
    if not is_traced(noise):
        return jnp.asarray(as_variance(noise, n))
    given = as_traced_array("noise", noise)
    if given.shape not in ((), (n,)):
        raise InputError(
            "noise",
            f"one variance, or one for each of the {n} points, shape ({n},)",
            f"shape {given.shape}",
            "Check that X and noise were filtered alike",
        )
    return jnp.asarray(given, jnp.float64)


def noise_in_words(noise: Variance | Array) -> str:
    """The number, or the range of the numbers."""
    if is_traced(noise):
        return "traced"
    if np.ndim(noise) == 0:
        return str(float(noise))
    noise = np.asarray(noise)
    low, high = f"{noise.min():.6g}", f"{noise.max():.6g}"
    return low if low == high else f"{low} to {high}"
