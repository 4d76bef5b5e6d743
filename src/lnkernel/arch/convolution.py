"""Convolutions, in NTK parametrisation, in one, two and three dimensions."""

from __future__ import annotations

import dataclasses

from lnkernel.arch.flow import Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.places import Places, spread_out
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.arch.window import Window, at_positions, set_window
from lnkernel.check.layers import finite, integer_at_least, not_negative, positive
from lnkernel.check.plain import known_zero


@node
class Convolution(Node):
    """What puts weights on the patches that a filter reads, with a bias."""

    channels: int = static()
    filter: tuple[int, ...] = static()
    strides: tuple[int, ...] = static(default=1)
    padding: str = static(default="SAME")
    W_std: float = 1.0
    b_std: float = 0.0

    def __post_init__(self) -> None:
        integer_at_least(self, "channels", 1)
        set_window(self, "filter")
        finite(self, "W_std")
        positive(self, "W_std")
        finite(self, "b_std")
        not_negative(self, "b_std")

    @property
    def window(self) -> Window:
        """How the filter slides over the positions."""
        return Window(self.filter, self.strides, self.padding)


@node
class Conv(Convolution):
    r"""$h_p = \frac{W_{std}}{\sqrt{|F|\, n_{in}}} \sum_{f \in F} W_f\, a_{p + f} + b_{std}\, b$ at every position $p$.

    The weights $W_f$ of every place $f$ of the filter $F$ and the bias are standard normal, the same at all positions,
    and trained. Inputs are images (n, height, width, channels), sequences (n, length, channels) or volumes.

    Args:
        channels: number of outputs at every position. Kernels do not depend on it; finite networks do.
        filter: size of the filter along each axis, e.g. `(3, 3)`; one number is for sequences.
        strides: steps between neighbouring outputs, one number for all axes or one for each.
        padding: "SAME" (zeros around the image), "VALID" (none) or "CIRCULAR" (the other end of the image).
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; 0 means no bias.

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Conv(64, (3, 3), W_std=2**0.5), lnk.Relu(), lnk.Flatten(), lnk.Dense(1))
    >>> images = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    >>> lnk.ntk(arch)(images).shape
    (2, 2)
    """


@node
class ConvLocal(Convolution):
    r"""$h_p = \frac{W_{std}}{\sqrt{|F|\, n_{in}}} \sum_{f \in F} W_{pf}\, a_{p + f} + b_{std}\, b_p$ at every $p$.

    This is a locally connected layer: a convolution with weights and biases of its own at every position, so that
    different positions behind it are independent. Without pooling or attention behind it its kernel is that of `Conv`.

    Args:
        channels: number of outputs at every position. Kernels do not depend on it; finite networks do.
        filter: size of the filter along each axis, e.g. `(3, 3)`; one number is for sequences.
        strides: steps between neighbouring outputs, one number for all axes or one for each.
        padding: "SAME" (zeros around the image), "VALID" (none) or "CIRCULAR" (the other end of the image).
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; 0 means no bias.

    >>> import numpy as np, lnkernel as lnk
    >>> images = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    >>> def theta(layer, end):
    ...     return lnk.ntk(lnk.serial(layer, lnk.Relu(), end, lnk.Dense(1)))(images)
    >>> own, shared = lnk.ConvLocal(64, (3, 3)), lnk.Conv(64, (3, 3))
    >>> bool((theta(own, lnk.Flatten()) == theta(shared, lnk.Flatten())).all())
    True
    >>> bool((theta(own, lnk.GlobalAvgPool()) < theta(shared, lnk.GlobalAvgPool())).all())
    True
    """


@node
class ConvTranspose(Convolution):
    r"""The transpose of a convolution: a convolution with strides of 1 of the image with zeros between its positions.

    It makes images larger by its strides, $stride - 1$ zeros standing between neighbours, and is also called a
    deconvolution. Its geometry is that of `jax.lax.conv_transpose`.

    Args:
        channels: number of outputs at every position. Kernels do not depend on it; finite networks do.
        filter: size of the filter along each axis, e.g. `(3, 3)`; one number is for sequences.
        strides: how many positions behind it come on one before it, one number for all axes or one for each.
        padding: "SAME" (as many as the strides say), "VALID" (all that the filter reaches) or "CIRCULAR" (as "SAME",
            with the other end of the image around it).
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; 0 means no bias.

    >>> import numpy as np, lnkernel as lnk
    >>> larger = lnk.ConvTranspose(64, (3, 3), 2, b_std=0.1), lnk.Relu(), lnk.Flatten(), lnk.Dense(1)
    >>> arch = lnk.serial(lnk.Conv(64, (3, 3), 2), lnk.Relu(), *larger)
    >>> lnk.ntk(arch)(np.random.default_rng(0).normal(size=(2, 8, 8, 3))).shape
    (2, 2)
    """

    @property
    def window(self) -> Window:
        """How the filter slides over the positions with zeros between them."""
        return Window(self.filter, (1,) * len(self.filter), "VALID")

    def over(self, shape: tuple[int, ...]) -> Places:
        """The positions that the filter reads, with zeros between them and what comes around them."""
        each = zip(shape, self.filter, self.strides, strict=True)
        return tuple(spread_out(*along, self.padding) for along in each)


@step.register
def _(layer: Convolution, place: Place, here: str) -> Place:
    axes = at_positions(layer, place, here, len(layer.filter))
    behind = place.of_weights(layer.channels)
    return dataclasses.replace(behind, space=Space.POSITIONS, axes=axes)


@traits.register
def _(layer: Convolution) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        adds_bias=not known_zero(layer.b_std),
        steepness=1.0,
        on_positions=True,
        needs_mean=False,
    )
