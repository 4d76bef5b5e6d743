r"""A pair of images or sequences: a block of positions of the same state.

For a pair of inputs with features at positions $p$ of the one and $p'$ of the other, the calculus carries one state for
each pair $(p, p')$: the numbers of a pair get the positions as their last axes, and those of a single input its own.
Rules that act on every position by itself (Dense, activations, norms over channels, sums) do not notice. Three kinds of
layers do, and each has its rule:

* a convolution, and Flatten, put the features of a patch side by side (`lnkernel.calculus.convolution`),
* pooling adds the features of a window up (`lnkernel.calculus.pooling`),
* attention adds all of them up, with weights (`lnkernel.calculus.attention`).

The first leaves equal positions equal, so that without the others a block holds the pairs $(p, p)$ alone. These need
what the kernel between different positions of one input says: its length there, and the weights. That is `own`: found
when the rules run on every input with itself, and only read when they run on pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lnkernel.arch.node import Node
from lnkernel.arch.window import Slide
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.special import special
from lnkernel.errors import ArchitectureError

FIRST, SECOND = 0, 1
Groups = tuple[
    tuple[int, ...], ...
]  # for each axis of the positions, the axes of an array that move with it


class Own(Protocol):
    """What is known of every input by itself."""

    def squares(self, num: Arithmetic, at: Positions, block: Number) -> tuple[Number, Number]:
        """The squared lengths of both inputs at every position, where `block` is the kernel of the pairs."""
        ...

    def between_positions(
        self, num: Arithmetic, at: Positions, block: Number, make: Callable[[Number], Number]
    ) -> tuple[Number, Number]:
        """What `make` gives, for both inputs, of the kernel between all its positions, (..., count, count); `block` is
        the kernel of the pairs."""
        ...

    def certain(self, num: Arithmetic, at: Positions, w: Number) -> Number:
        """w, and 0 exactly where both are one and the same position of one and the same input."""
        ...


@dataclass(frozen=True)
class Positions:
    """Which pairs of positions a block holds: all, or, if they are not `paired`, only those of equal positions.

    The positions are the last axes of an array but for `behind` further axes, which follow them.
    """

    shape: tuple[int, ...]
    paired: bool
    own: Own
    behind: int = 0

    def axes(self, side: int) -> tuple[int, ...]:
        """The axes of the positions of one input."""
        count = len(self.shape)
        start = -2 * count if self.paired and side == FIRST else -count
        start -= self.behind
        return tuple(range(start, start + count))

    def alone(self, side: int) -> Groups:
        """The axes of one input, each by itself."""
        return tuple((axis,) for axis in self.axes(side))

    @property
    def together(self) -> Groups:
        """The axes of both inputs, which move with one another."""
        if not self.paired:
            return self.alone(FIRST)
        return tuple(zip(self.axes(FIRST), self.axes(SECOND), strict=True))

    def form(self, side: int | None) -> tuple[int, ...]:
        """The last axes of the numbers of one input, or of pairs."""
        ones, behind = (1,) * len(self.shape), (1,) * self.behind
        if not self.paired:
            return self.shape + behind
        if side is None:
            return self.shape + self.shape + behind
        return (self.shape + ones if side == FIRST else ones + self.shape) + behind


@special
def spread(num: Arithmetic, x: Number, form: tuple[int, ...]) -> Number:
    """x at every position: an array whose last axes have this form."""
    raise NotImplementedError


@special
def window_sum(num: Arithmetic, x: Number, groups: Groups, slides: list[Slide]) -> Number:
    """the sum of x over all places of a window, for each of its steps."""
    raise NotImplementedError


@special
def window_places(num: Arithmetic, x: Number, groups: Groups, slides: list[Slide]) -> Any:
    """x at each place of a window, one after another, for each of its steps."""
    raise NotImplementedError


@special
def of_one_side(num: Arithmetic, x: Number, others: tuple[int, ...]) -> Number:
    """x of one input, perhaps spread over these axes, the positions of the other: with one element there."""
    raise NotImplementedError


@special
def without_axes(num: Arithmetic, x: Number, count: int, behind: int) -> Number:
    """x without its last axes before those `behind`, so many, which have one element."""
    raise NotImplementedError


def demand_positions(layer: Node, at: Positions | None) -> Positions:
    """The positions that a layer acts on, or an error where there are none."""
    if at is None:
        raise ArchitectureError(
            type(layer).__name__,
            "",
            "it acts on the positions of images or sequences, and its input has none",
            "Give inputs of shape (n, height, width, channels) or (n, length, channels)",
        )
    return at


def whole(shape: tuple[int, ...]) -> list[Slide]:
    """The window that holds all positions."""
    return [Slide(length, 1, 0, 0, False, 1) for length in shape]
