"""Images and sequences of another size, by interpolation between positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from lnkernel.arch.flow import Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.places import Places, nearest
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.arch.window import MOST_AXES, at_positions
from lnkernel.check.plain import as_integer
from lnkernel.errors import ArchitectureError

SAME = -1  # the length of an axis that stays what it is


def _cubic(x: np.ndarray) -> np.ndarray:
    """Keys' cubic kernel."""
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2.0, 0.0, np.where(x >= 1.0, far, near))


def _lanczos(radius: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda x: np.maximum(0.0, 1.0 - x),
    "cubic": _cubic,
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}
METHODS = ("nearest", *KERNELS)


@node
class Resize(Node):
    r"""$a'_P = \sum_p M_{Pp}\, a_p$: the image with another number of positions, as `jax.image.resize` makes it.

    With "nearest" every position behind it is one before it, and kernels may compare equal positions alone. The other
    methods take sums of several positions, with weights of sum 1, so that all are compared, as before a pooling.

    Args:
        shape: the number of positions behind it along each axis; -1 leaves an axis as it is.
        method: "nearest", "linear", "cubic", "lanczos3" or "lanczos5".
        antialias: whether a smaller image takes means over as many positions as come on each of its own.

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Conv(64, (3, 3)), lnk.Relu(), lnk.Resize((4, 4)), lnk.Flatten(), lnk.Dense(1))
    >>> lnk.ntk(arch)(np.random.default_rng(0).normal(size=(2, 8, 8, 3))).shape
    (2, 2)
    """

    shape: tuple[int, ...] = static()
    method: str = static(default="linear")
    antialias: bool = static(default=True)

    def __post_init__(self) -> None:
        sizes = self.shape if isinstance(self.shape, tuple | list) else (self.shape,)
        given = tuple(n for n in map(as_integer, sizes) if n is not None and (n >= 1 or n == SAME))
        if not 1 <= len(sizes) <= MOST_AXES or len(given) < len(sizes):
            _refuse(
                f"shape must have whole numbers from 1 on, or -1, for 1 to {MOST_AXES} axes, got {self.shape!r}",
                "Write e.g. shape=(16, 16) for images, shape=(16,) for sequences",
            )
        if not isinstance(self.method, str) or self.method.lower() not in METHODS:
            _refuse(f"method={self.method!r} is not known", f"Use one of {', '.join(METHODS)}")
        if not isinstance(self.antialias, bool):
            _refuse(f"antialias must be True or False, got {self.antialias!r}", "Write True")
        object.__setattr__(self, "shape", given)
        object.__setattr__(self, "method", self.method.lower())

    @property
    def mixes(self) -> bool:
        """Whether a position behind it is a sum of several."""
        return self.method != "nearest"

    def behind(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the positions behind it."""
        return tuple(n if more == SAME else more for n, more in zip(shape, self.shape, strict=True))

    def over(self, shape: tuple[int, ...]) -> Places:
        """The position before it at each behind it, of the method "nearest"."""
        return tuple(nearest(*pair) for pair in zip(shape, self.behind(shape), strict=True))

    def weights(self, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        """The matrix M along each axis, (positions behind it, positions before it)."""
        both = zip(shape, self.behind(shape), strict=True)
        return tuple(weights_along(*pair, self.method, self.antialias) for pair in both)


def weights_along(length: int, count: int, method: str, antialias: bool) -> np.ndarray:
    """The weights (count, length) of so many evenly spaced positions in those before them.

    >>> weights_along(4, 2, "linear", False).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    if count == length:
        return np.eye(length)
    scale = length / count
    centres = (np.arange(count) + 0.5) * scale - 0.5
    wide = max(scale, 1.0) if antialias else 1.0
    weights = KERNELS[method](np.abs(centres[:, None] - np.arange(length)) / wide)
    made: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return made


def _refuse(reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError("Resize", "", reason, remedy)


@step.register
def _(layer: Resize, place: Place, here: str) -> Place:
    axes = at_positions(layer, place, here, len(layer.shape))
    return dataclasses.replace(place, space=Space.POSITIONS, axes=axes)


@traits.register
def _(layer: Resize) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        on_positions=True,
        mixes_positions=layer.mixes,
    )
