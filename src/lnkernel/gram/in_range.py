"""Inputs and kernels that leave the range of float64."""

from __future__ import annotations

import numpy as np

from lnkernel.errors import InputError, KernelOverflowError
from lnkernel.types import Array

WIDEST = 140.0  # powers of ten between 1 and the sizes of features of images, of which squares are summed


def check_positions(name: str, images: np.ndarray, steepness: float) -> None:
    """An error for features (n, ..., channels) beyond the range: sums over positions are plain numbers, so that squared
    lengths, which a network raises to a power up to its `steepness`, have to stay in that of float64."""
    most = 10.0 ** (WIDEST / min(steepness, 2))
    features = np.abs(images)
    if features.max(initial=0.0) <= most and not ((features < 1 / most) & (features > 0)).any():
        return  # a maximum over the few channels of each position takes as long as the pairs of few images
    sizes = features.max(axis=-1, initial=0.0)
    bad = np.argwhere((sizes > most) | ((sizes < 1 / most) & (sizes > 0)))
    if len(bad):
        place = tuple(map(int, bad[0]))
        raise InputError(
            name,
            f"features at every position that are 0 or of a size from {1 / most:.0e} to {most:.0e}",
            f"{sizes[place]:.3g} at position {place[1:]} of input {place[0]}",
            "Rescale the inputs, or set what is below to 0",
        )


def check_range(name: str, points: Array, ends: tuple[Array, ...]) -> None:
    """An error for an infinite diagonal. If the diagonal is finite, so is the whole matrix (Cauchy-Schwarz)."""
    for end in ends:
        bad = np.flatnonzero(~np.isfinite(np.asarray(end)))
        if bad.size:
            raise KernelOverflowError(name, int(bad[0]), np.asarray(points)[bad[0]])
