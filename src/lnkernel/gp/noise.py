"""The variance of the targets' noise: one number for all points, or one for each."""

from __future__ import annotations

import numpy as np

from lnkernel.check import as_array
from lnkernel.errors import InputError

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
        raise InputError("noise", "variances, at least 0", came, "Square the deviations")
    given.flags.writeable = False
    return given


def noise_in_words(noise: Variance) -> str:
    """The number, or the range of the numbers."""
    if isinstance(noise, float):
        return str(noise)
    return f"{noise.min():.6g} to {noise.max():.6g}"
