"""What is done to the axes of the data: reshaping, means over positions, and the axis of one output."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from lnkernel.arch import Flatten, GlobalAvgPool, Node, flow
from lnkernel.arch.flow import Place
from lnkernel.arch.node import node
from lnkernel.finite.reading.refusals import NotUnderstoodError


class Sizes:
    """The shape of the data, of which only the number of inputs has a meaning here."""

    def __getitem__(self, place: object) -> Sizes:
        if place != 0:
            raise NotUnderstoodError("what it does depends on the shape of the data")
        return self


# how many axes of positions the functions below were told of while a module is read
axes_told: ContextVar[list[int]] = ContextVar("axes_told")


def flattened(*shape: Any) -> Node:
    """The layer of `reshape(x.shape[0], -1)`."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if len(sizes) != 2 or not isinstance(sizes[0], Sizes) or sizes[1] != -1:
        raise NotUnderstoodError("it reshapes the data otherwise than by (x.shape[0], -1)")
    return Flatten()


def mean_over(axis: Any = None, keepdims: bool = False) -> Node:
    """The layer of a mean over axes 1, 2, ..., which are to be all axes of the positions."""
    axes = (axis,) if isinstance(axis, int) else axis
    if keepdims or not isinstance(axes, tuple | list) or sorted(axes) != [*range(1, len(axes) + 1)]:
        raise NotUnderstoodError("it takes a mean that is not over all positions, axis=(1, 2)")
    axes_told.get([]).append(len(axes))
    return GlobalAvgPool()


@node
class Squeezed(Node):
    """The end of a network of one output without the axis of that output; no architecture has it."""


def squeezed(axis: Any = None) -> Node:
    """The layer of `squeeze(-1)`."""
    if axis not in (-1, (-1,)):
        raise NotUnderstoodError("it removes other axes than the last, axis=-1")
    return Squeezed()


@flow.step.register
def _(layer: Squeezed, place: Place, here: str) -> Place:
    if place.width != 1:
        many = "features" if place.width is None else f"{place.width} features"
        raise NotUnderstoodError(f"it removes the axis of {many}, which are not known to be one")
    return place


def without_end(layers: tuple[Node, ...]) -> tuple[Node, ...]:
    """All layers but a squeeze behind them."""
    return layers[:-1] if layers and isinstance(layers[-1], Squeezed) else layers
