"""Some of the positions of an image or a sequence: a part of it, every second one, or all in the opposite order."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

import numpy as np

from lnkernel.arch.flow import Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.places import Places
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.arch.window import MOST_AXES, at_positions
from lnkernel.check.plain import as_integer
from lnkernel.errors import ArchitectureError


@node
class Crop(Node):
    r"""$a'_p = a_{start + step \cdot p}$ along one axis of the positions, as Python's `x[start:stop:step]`.

    Args:
        start: the first position that stays; None is the end of the image at which it starts.
        stop: the position behind the last one that stays; None is the other end.
        step: from one position that stays to the next; a negative number turns the image around.
        axis: of the positions, 0 for the height of an image, 1 for its width; negative ones count from the last.

    >>> import numpy as np, lnkernel as lnk
    >>> body = lnk.Conv(64, (3, 3), padding="VALID"), lnk.Relu(), lnk.Flatten(), lnk.Dense(1)
    >>> corner = lnk.serial(lnk.Crop(0, 4), lnk.Crop(0, 4, axis=1), *body)
    >>> images = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    >>> bool((lnk.ntk(corner)(images) == lnk.ntk(lnk.serial(*body))(images[:, :4, :4])).all())
    True
    """

    start: int | None = static(default=None)
    stop: int | None = static(default=None)
    step: int | None = static(default=None)
    axis: int = static(default=0)

    def __post_init__(self) -> None:
        for name in ("start", "stop", "step"):
            given = getattr(self, name)
            if given is None:
                continue
            plain = as_integer(given)
            if plain is None:
                _refuse(
                    f"{name} must be a whole number or None, got {given!r}", "Write e.g. Crop(1, 4)"
                )
            object.__setattr__(self, name, plain)
        if self.step == 0:
            _refuse("step must not be 0", "Write e.g. step=2 for every second position")
        axis = as_integer(self.axis)
        if axis is None or not -MOST_AXES <= axis < MOST_AXES:
            _refuse(
                f"axis must be a whole number from {-MOST_AXES} to {MOST_AXES - 1}, got {self.axis!r}",
                "Write 0 for the height of images or the length of sequences, 1 for the width",
            )
        object.__setattr__(self, "axis", axis)

    def over(self, shape: tuple[int, ...]) -> Places:
        """The positions that stay, along each axis."""
        if not -len(shape) <= self.axis < len(shape):
            _refuse(
                f"its axis {self.axis} is not among the {len(shape)} of the positions",
                f"Choose one from {-len(shape)} to {len(shape) - 1}",
            )
        places = [np.arange(length) for length in shape]
        places[self.axis] = places[self.axis][self.start : self.stop : self.step]
        if not len(places[self.axis]):
            _refuse(
                f"none of the {shape[self.axis]} positions along axis {self.axis} stays",
                "Give it larger images, or let start, stop and step leave some",
            )
        return tuple(places)


def _refuse(reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError("Crop", "", reason, remedy)


@step.register
def _(layer: Crop, place: Place, here: str) -> Place:
    axes = at_positions(layer, place, here)
    return dataclasses.replace(place, space=Space.POSITIONS, axes=axes)


@traits.register
def _(layer: Crop) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        on_positions=True,
    )
