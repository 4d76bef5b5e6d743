"""Normalisations: over all features, or over groups of a fixed size."""

from __future__ import annotations

import dataclasses

from lnkernel.arch.flow import Kind, Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.traits import EVERYWHERE, Traits, traits
from lnkernel.check.layers import (
    finite,
    flag,
    group_has_limit,
    integer_at_least,
    not_negative,
    one_of,
)
from lnkernel.check.plain import known_zero
from lnkernel.errors import ArchitectureError

AXES = ("channels", "all")  # of images and sequences


@node
class LayerNorm(Node):
    r"""$\hat u_i = (u_i - \bar u)/\sqrt{\mathrm{var}(u) + \epsilon}$, over all features.

    Args:
        eps: added to the variance. The default 0 is the exact normalisation.
        scale: whether a trainable factor per feature follows (1 at the start).
        bias: whether a trainable offset per feature follows (0 at the start).
        axes: of images and sequences, whether the features of every position are normalised for themselves,
            "channels", or those of all positions together, "all". Scale and bias are of the channels in either case.

    With `eps=0` an input whose features are all equal has no direction; its
    output is 0, the limit of small `eps`.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
    >>> theta = lnk.ntk(arch)
    >>> theta.diagonal([[1.0], [1e6]]).tolist()    # the same, however long the input
    [2.0, 2.0]
    """

    eps: float = 0.0
    scale: bool = static(default=False)
    bias: bool = static(default=False)
    axes: str = static(default="channels")

    def __post_init__(self) -> None:
        finite(self, "eps")
        not_negative(self, "eps")
        flag(self, "scale")
        flag(self, "bias")
        one_of(self, "axes", AXES)

    def __repr__(self) -> str:
        axes = "" if self.axes == AXES[0] else f", axes={self.axes!r}"
        return f"LayerNorm(eps={self.eps!r}, scale={self.scale!r}, bias={self.bias!r}{axes})"


@node
class RMSNorm(Node):
    r"""$\hat u_i = u_i/\sqrt{\mathrm{mean}(u^2) + \epsilon}$, over all features.

    Args:
        eps: added to the mean square.
        scale: whether a trainable factor per feature follows (1 at the start).

    On a Gaussian state it has the kernel of `LayerNorm`; after an activation it
    does not, because the mean of the features stays.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.RMSNorm(), lnk.Dense(1))
    >>> float(lnk.nngp(arch).diagonal([[5.0]])[0])
    1.0
    """

    eps: float = 0.0
    scale: bool = static(default=False)

    @property
    def bias(self) -> bool:
        return False

    def __post_init__(self) -> None:
        finite(self, "eps")
        not_negative(self, "eps")
        flag(self, "scale")


@node
class GroupNorm(Node):
    r"""Normalisation in groups of a fixed size while the number of groups goes to infinity.

    With $\nu$ degrees of freedom (the group size, less one if centred) and
    correlation $\rho$, the NNGP kernel is
    $\kappa_\nu(\rho) = \frac{2}{\nu}\Big(\frac{\Gamma((\nu+1)/2)}{\Gamma(\nu/2)}\Big)^2
    \rho\; {}_2F_1(\tfrac12, \tfrac12; \tfrac\nu2 + 1; \rho^2)$,
    which tends to $\rho$, LayerNorm's kernel, as the groups grow.

    Args:
        group_size: features per group.
        eps: must be 0: there is no closed form otherwise.
        centre: whether the group's mean is subtracted.
        scale: whether a trainable factor per feature follows (1 at the start).
        bias: whether a trainable offset per feature follows (0 at the start).

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.GroupNorm(2), lnk.Dense(1))
    >>> k = lnk.nngp(arch)([[1.0, 0.0]], [[1.0, 1.0]])[0, 0]
    >>> round(float(k), 12)                        # groups of two: (2/pi) asin(rho)
    0.5
    """

    group_size: int = static()
    eps: float = 0.0
    centre: bool = static(default=True)
    scale: bool = static(default=False)
    bias: bool = static(default=False)

    def __post_init__(self) -> None:
        integer_at_least(self, "group_size", 2)
        finite(self, "eps")
        not_negative(self, "eps")
        for name in ("centre", "scale", "bias"):
            flag(self, name)
        group_has_limit(self)

    @property
    def degrees_of_freedom(self) -> int:
        return self.group_size - 1 if self.centre else self.group_size


@step.register(LayerNorm)
@step.register(RMSNorm)
def _(layer: LayerNorm | RMSNorm, place: Place, here: str) -> Place:
    _no_affine_on_input(layer, place, here)
    if place.space is Space.FLATTENED:
        raise ArchitectureError(
            type(layer).__name__,
            here,
            "it follows Flatten, behind which the features are not identically distributed",
            "Put LayerNorm(axes='all') before Flatten, or a Dense between them",
        )
    if isinstance(layer, LayerNorm) and layer.axes == "all" and place.kind is Kind.INPUT:
        raise ArchitectureError(
            "LayerNorm",
            here,
            "axes='all' acts on the raw images, whose channels are few",
            "Normalise the images themselves, or put a Conv before it",
        )
    return dataclasses.replace(place, scaled=place.scaled or layer.scale)


@step.register
def _(layer: GroupNorm, place: Place, here: str) -> Place:
    _no_affine_on_input(layer, place, here)
    if place.space is Space.POSITIONS:
        raise ArchitectureError(
            "GroupNorm",
            here,
            "it acts on images or sequences, where its groups hold all positions; that has no rule here",
            "Use LayerNorm, over the channels or with axes='all'",
        )
    if place.kind in (Kind.INPUT, Kind.FEATURES):
        source = "the raw input" if place.kind is Kind.INPUT else f"features made by {place.maker}"
        raise ArchitectureError(
            "GroupNorm",
            here,
            f"it acts on {source}; its closed form needs a Gaussian state",
            "Put a Dense directly before it, or use LayerNorm",
        )
    if place.scaled or place.mixed:
        raise ArchitectureError(
            "GroupNorm",
            here,
            "a trainable scale stands between it and the last Dense; the scale's part of the NTK "
            "differs from coordinate to coordinate and has no closed form behind GroupNorm",
            "Put a Dense between them, or set scale=False",
        )
    return place.of_features(f"GroupNorm at {here}" if here else "GroupNorm")


def _no_affine_on_input(layer: LayerNorm | RMSNorm | GroupNorm, place: Place, here: str) -> None:
    if place.kind is Kind.INPUT and (layer.scale or layer.bias):
        raise ArchitectureError(
            type(layer).__name__,
            here,
            "a trainable scale or bias on the raw input has only as many parameters as the input "
            "has dimensions; its part of the NTK stays random at every width",
            "Set scale=False and bias=False there, or put a Dense before it",
        )


@traits.register
def _(layer: LayerNorm) -> Traits:
    """On features it widens small angles, by what the mean took of the length."""
    return Traits(
        needs_difference=frozenset({Kind.FEATURES}),
        needs_range=False,
        forgets_mean=True,
        is_monotone=not layer.bias,
        steepness=1.0,
        fixes_length=known_zero(layer.eps) and layer.axes == "channels",
    )


@traits.register
def _(layer: RMSNorm) -> Traits:
    """It compares the differences of the lengths of several parts."""
    return Traits(
        needs_difference=EVERYWHERE,
        needs_range=False,
        reads_centred=False,
        is_monotone=True,
        steepness=1.0,
        fixes_length=known_zero(layer.eps),
    )


@traits.register
def _(layer: GroupNorm) -> Traits:
    """In small groups its outputs are next to signs, which widens small angles."""
    return Traits(
        needs_difference=EVERYWHERE,
        needs_range=False,
        reads_centred=False,
        is_monotone=not layer.bias,
        steepness=1.0,
        fixes_length=True,
    )
