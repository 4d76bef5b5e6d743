"""Photographs that the package scikit-image contains, small and grey, and the edges in them."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError, MissingPackageError

SCENES = ("astronaut", "camera", "cat", "coffee", "coins", "rocket")  # inside of the wheel

Picture = Float64[np.ndarray, "height width"]


def scene(name: str, side: int) -> Float64[np.ndarray, "side side"]:
    """One of `SCENES`, the square in its middle, grey, from 0 to 1, in means over side × side blocks.

    The pictures come with scikit-image (`pip install 'lnkernel[pictures]'`), so that nothing is
    downloaded.

    >>> from lnkernel.datasets import scene
    >>> scene("camera", 8).shape
    (8, 8)
    """
    if name not in SCENES:
        raise InputError("name", f"one of {', '.join(SCENES)}", repr(name), "Choose one of these")
    pixels = np.asarray(_part("data", name)(), np.float64)
    grey = pixels if pixels.ndim == 2 else pixels[..., :3] @ np.array([0.2125, 0.7154, 0.0721])
    return shrink(grey / 255, side)


def shrink(picture: Picture, side: int) -> Float64[np.ndarray, "side side"]:
    """The largest square in the middle that has a multiple of `side` pixels, in means over blocks.

    >>> shrink(np.arange(20.0).reshape(4, 5), 2)
    array([[ 3.,  5.],
           [13., 15.]])
    """
    size = min(picture.shape) // positive_integer("side", side)
    if size == 0:
        raise InputError(
            "side", f"at most {min(picture.shape)} pixels", str(side), "Choose a smaller side"
        )
    top, left = ((length - size * side) // 2 for length in picture.shape)
    square = picture[top : top + size * side, left : left + size * side]
    return square.reshape(side, size, side, size).mean((1, 3))


def edges(picture: Picture, sigma: float = 1.0) -> Bool[np.ndarray, "height width"]:
    """Canny's edges of a picture that is smoothed by `sigma` pixels, as scikit-image finds them.

    >>> import numpy as np
    >>> from lnkernel.datasets import edges
    >>> edges(np.repeat([[0.0, 1.0]], 16, axis=0).repeat(8, axis=1)).any(axis=0).nonzero()[0].tolist()
    [7, 8]
    """
    found: Any = _part("feature", "canny")(picture, sigma=sigma)
    return np.asarray(found, bool)


def _part(module: str, name: str) -> Any:
    """A function of scikit-image, which imports its parts when they are asked for."""
    try:
        with (
            warnings.catch_warnings()
        ):  # of a bar for downloads, which in notebooks misses its widgets
            warnings.filterwarnings("ignore", "IProgress not found")
            return getattr(importlib.import_module(f"skimage.{module}"), name)
    except ImportError as problem:
        raise MissingPackageError(
            "lnkernel.datasets.scene", "scikit-image", "pictures"
        ) from problem
