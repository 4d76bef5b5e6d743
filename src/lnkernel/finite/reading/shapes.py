"""What is done to the axes of the data: reshaping, means over positions, and the axis of one output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from lnkernel.arch import Flatten, GlobalAvgPool, Node, flow
from lnkernel.arch.flow import Kind, Place, Space
from lnkernel.arch.node import node
from lnkernel.finite.reading.refusals import NotUnderstoodError

DEPENDS = "what it does depends on the shape of the data"


class InputCount:
    """The number of inputs, which nothing but a reshape may take."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise NotUnderstoodError("what it does depends on the number of inputs")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__


class Sizes:
    """The shape of the data, of which the number of axes and that of features are known at times."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, width: int | None, count_axes: Callable[[], int]):
        self._width = width
        self._count_axes = count_axes

    def __getitem__(self, place: object) -> InputCount | int:
        if place == 0:
            return InputCount()
        if place == -1 or (place == 1 and len(self) == 2):
            if self._width is None:
                raise NotUnderstoodError("it asks for the number of features, which no layer tells")
            return self._width
        raise NotUnderstoodError(DEPENDS)

    def __len__(self) -> int:
        return self._count_axes()

    def __iter__(self) -> Iterator[InputCount | int]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Vectors of as many features have the same shape; of images that is not known."""
        if not isinstance(other, Sizes) or self._width is None or other._width is None:
            raise NotUnderstoodError(DEPENDS)
        if self._width != other._width:
            return False
        if len(self) != 2 or len(other) != 2:
            raise NotUnderstoodError(DEPENDS)
        return True


# whether an input was taken for a vector while a module is read, because the number of its axes was asked
vectors_taken: ContextVar[list[bool]] = ContextVar("vectors_taken")


def count_axes(before: Node) -> int:
    """The axes of the data behind these layers: inputs, positions and features."""
    *_, (_, _, place) = flow.walk(before, Place(Kind.ANY))
    if place.space is Space.ANY:
        vectors_taken.get([]).append(True)
        return 2
    if place.space is Space.POSITIONS:
        if place.axes is None:
            raise NotUnderstoodError("it asks for the number of axes, which no layer tells")
        return 2 + place.axes
    return 2


# how many axes of positions the functions below were told of while a module is read
axes_told: ContextVar[list[int]] = ContextVar("axes_told")


def flattened(*shape: Any) -> Node:
    """The layer of `reshape(x.shape[0], -1)`."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if len(sizes) != 2 or not isinstance(sizes[0], InputCount) or sizes[1] != -1:
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
