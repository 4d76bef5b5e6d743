"""Windows that slide over the positions of an image or a sequence: their size, strides and padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lnkernel.arch.flow import Kind, Place, Space
from lnkernel.arch.node import Node
from lnkernel.check.plain import as_integer
from lnkernel.errors import ArchitectureError

PADDINGS = ("SAME", "VALID", "CIRCULAR")
MOST_AXES = 3


class Slide(NamedTuple):
    """A window along one axis: how it moves over an axis of a known length."""

    size: int
    stride: int
    low: int  # positions that the padding adds before the first
    high: int  # and behind the last
    wraps: bool  # whether these are positions from the other end; else there is nothing
    steps: int  # of the window


@dataclass(frozen=True)
class Window:
    """A window with one size and stride for each axis of the positions."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str

    def over(self, shape: tuple[int, ...], name: str) -> list[Slide]:
        """How it slides over positions of this shape; `name` is the layer's, for a message."""
        return [self._along(axis, length, name) for axis, length in enumerate(shape)]

    def _along(self, axis: int, length: int, name: str) -> Slide:
        size, stride = self.size[axis], self.strides[axis]
        if self.padding == "VALID":
            if size > length:
                raise ArchitectureError(
                    name,
                    "",
                    f"its window of {size} positions along axis {axis} does not fit into the {length} "
                    "that are left there",
                    "Give it larger images, a smaller window or padding='SAME'",
                )
            return Slide(size, stride, 0, 0, False, (length - size) // stride + 1)
        count = -(-length // stride)
        added = max((count - 1) * stride + size - length, 0)
        low, high = added // 2, added - added // 2
        if self.padding == "CIRCULAR" and max(low, high) > length:
            raise ArchitectureError(
                name,
                "",
                f"its window of {size} positions goes more than once around the {length} that are left "
                f"along axis {axis}",
                "Give it larger images, or a smaller window",
            )
        return Slide(size, stride, low, high, self.padding == "CIRCULAR", count)


def set_window(layer: Any, size: str, strides: str = "strides", padding: str = "padding") -> None:
    """Check the fields of a layer that has a window; whole numbers become tuples."""
    sizes = _whole_numbers(layer, size, None)
    if not 1 <= len(sizes) <= MOST_AXES:
        _refuse(
            layer,
            f"{size} must have 1 to {MOST_AXES} numbers, got {sizes}",
            f"Write e.g. {size}=(3, 3)",
        )
    given = getattr(layer, strides)
    steps = sizes if given is None else _whole_numbers(layer, strides, len(sizes))
    if len(steps) != len(sizes):
        _refuse(
            layer,
            f"{strides} must have as many numbers as {size}, {len(sizes)}, got {steps}",
            f"Write e.g. {strides}={(2,) * len(sizes)}",
        )
    kind = getattr(layer, padding)
    if not isinstance(kind, str) or kind.upper() not in PADDINGS:
        _refuse(layer, f"{padding}={kind!r} is not known", f"Use one of {', '.join(PADDINGS)}")
    for name, value in ((size, sizes), (strides, steps), (padding, kind.upper())):
        object.__setattr__(layer, name, value)


def _whole_numbers(layer: Any, name: str, count: int | None) -> tuple[int, ...]:
    value = getattr(layer, name)
    given = value if isinstance(value, tuple | list) else (value,) * (count or 1)
    numbers = tuple(each for each in map(as_integer, given) if each is not None and each >= 1)
    if len(numbers) < len(given):
        _refuse(
            layer,
            f"{name} must be a whole number of at least 1 for each axis, got {value!r}",
            f"Write e.g. {name}=(3, 3) for images, {name}=(3,) for sequences",
        )
    return numbers


def _refuse(layer: Any, reason: str, remedy: str) -> None:
    raise ArchitectureError(type(layer).__name__, "", reason, remedy)


def at_positions(layer: Node, place: Place, here: str, axes: int | None = None) -> int | None:
    """The number of axes of the positions that the layer acts on, if it is known; an error where there are none."""
    name = type(layer).__name__
    if place.space in (Space.FLATTENED, Space.NONE):
        raise ArchitectureError(
            name,
            here,
            "it acts on positions, and a Flatten or GlobalAvgPool before it has left none",
            "Put it before that layer",
        )
    if place.space is Space.ANY and place.kind is Kind.INPUT and place.axes is None:
        return axes
    if None not in (axes, place.axes) and axes != place.axes:
        raise ArchitectureError(
            name,
            here,
            f"its window has {axes} axes, and the layers before it act on positions with {place.axes}",
            "Give all windows of the network the same number of axes",
        )
    return place.axes if axes is None else axes
