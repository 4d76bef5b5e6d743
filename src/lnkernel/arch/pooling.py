"""From the features at many positions to fewer, or to none: pooling and flattening."""

from __future__ import annotations

import dataclasses
import math

from lnkernel.arch.flow import Kind, Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.arch.window import Window, at_positions, set_window


@node
class WindowPool(Node):
    """What is pooled over windows of positions: the sum of the features in each, times `factor`."""

    window: tuple[int, ...] = static()
    strides: tuple[int, ...] | None = static(default=None)
    padding: str = static(default="VALID")

    def __post_init__(self) -> None:
        set_window(self, "window")

    @property
    def slides(self) -> Window:
        """How the window moves over the positions."""
        strides = self.window if self.strides is None else self.strides
        return Window(self.window, strides, self.padding)

    @property
    def factor(self) -> float:
        """The number by which the sum over a window is multiplied."""
        return 1.0


@node
class AvgPool(WindowPool):
    r"""The mean of the features over a window of positions.

    Behind it a position knows of several before it, so that kernels compare every position of one input with every
    position of the other, up to here: for 32 x 32 images that is 1024 times the work.

    Args:
        window: size of the window along each axis.
        strides: steps between neighbouring windows; by default the size of the window.
        padding: "VALID", "SAME" (zeros around the image, which count in the mean) or "CIRCULAR".

    >>> import numpy as np, lnkernel as lnk
    >>> convolution = lnk.Conv(64, (3, 3)), lnk.Relu()
    >>> arch = lnk.serial(*convolution, lnk.AvgPool((2, 2)), *convolution, lnk.Flatten(), lnk.Dense(1))
    >>> lnk.nngp(arch)(np.ones((1, 4, 4, 3))).shape
    (1, 1)
    """

    @property
    def factor(self) -> float:
        """One over the size of the window."""
        return 1.0 / math.prod(self.window)


@node
class SumPool(WindowPool):
    r"""The sum of the features over a window of positions.

    Args:
        window: size of the window along each axis.
        strides: steps between neighbouring windows; by default the size of the window.
        padding: "VALID", "SAME" (zeros around the image) or "CIRCULAR".

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Conv(8, 1), lnk.SumPool(2), lnk.Flatten(), lnk.Dense(1))
    >>> lnk.nngp(arch)(np.ones((1, 4, 3))).round(12).tolist()    # two equal terms: 4 times the square
    [[4.0]]
    """


@node
class GlobalAvgPool(Node):
    r"""The mean of the features over all positions, behind which there are none.

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Conv(64, (3, 3), padding="CIRCULAR"), lnk.Relu(), lnk.GlobalAvgPool(), lnk.Dense(1))
    >>> image = np.random.default_rng(0).normal(size=(1, 6, 6, 3))
    >>> moved = np.roll(image, (1, 2), (1, 2))
    >>> both = lnk.ntk(arch)(image, np.concatenate([image, moved]))
    >>> bool(abs(both[0, 0] / both[0, 1] - 1) < 1e-14)    # a shifted image is the same image
    True
    """


@node
class GlobalSumPool(Node):
    r"""The sum of the features over all positions, behind which there are none.

    >>> import numpy as np, lnkernel as lnk
    >>> words = np.random.default_rng(0).normal(size=(1, 5, 3))
    >>> sums, means = (lnk.nngp(lnk.serial(lnk.Dense(8), end))(words)
    ...                for end in (lnk.GlobalSumPool(), lnk.GlobalAvgPool()))
    >>> round(float(sums[0, 0] / means[0, 0]), 12)
    25.0
    """


@node
class Flatten(Node):
    r"""The features of all positions side by side, as one vector. A Dense follows, or the end.

    Without pooling, kernels compare equal positions alone.

    >>> import numpy as np, lnkernel as lnk
    >>> image = np.arange(12.0).reshape(1, 2, 2, 3)
    >>> flat = lnk.nngp(lnk.serial(lnk.Flatten(), lnk.Dense(1)))(image)
    >>> bool(flat == lnk.nngp(lnk.Dense(1))(image.reshape(1, 12)))
    True
    """


@step.register
def _(layer: WindowPool, place: Place, here: str) -> Place:
    axes = at_positions(layer, place, here, len(layer.window))
    return dataclasses.replace(place, space=Space.POSITIONS, axes=axes)


@step.register(GlobalAvgPool)
@step.register(GlobalSumPool)
def _(layer: GlobalAvgPool | GlobalSumPool, place: Place, here: str) -> Place:
    at_positions(layer, place, here)
    return dataclasses.replace(place, space=Space.NONE)


@step.register
def _(layer: Flatten, place: Place, here: str) -> Place:
    at_positions(layer, place, here)
    if place.kind is Kind.INPUT:
        return dataclasses.replace(place, space=Space.FLATTENED, width=None)
    behind = place.of_features(f"Flatten at {here}" if here else "Flatten")
    return dataclasses.replace(behind, space=Space.FLATTENED, width=None)


@traits.register(WindowPool)
@traits.register(GlobalAvgPool)
@traits.register(GlobalSumPool)
def _(layer: WindowPool | GlobalAvgPool | GlobalSumPool) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        on_positions=True,
        mixes_positions=True,
    )


@traits.register
def _(layer: Flatten) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        on_positions=True,
        needs_mean=False,
    )
