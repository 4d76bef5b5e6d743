"""What stands for the data while a module is called to find out what it does.

A token knows its trail: the steps that lead to it from the module's input. Tokens with a common
beginning can be added; what lies behind that beginning is a sum of branches.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, NoReturn

from lnkernel.arch import Identity, Node, Parallel, Scale, Serial, Shift, flow
from lnkernel.arch.compose import layers_of
from lnkernel.arch.flow import Kind, Place
from lnkernel.finite.reading.arithmetic import SQUARE, clipped, fixed_number
from lnkernel.finite.reading.refusals import UNKNOWN_FUNCTION, NotUnderstoodError
from lnkernel.finite.reading.shapes import (
    Sizes,
    Squeezed,
    count_axes,
    flattened,
    mean_over,
    squeezed,
)


@dataclass(frozen=True, eq=False)  # one event in one call, and no other, however alike
class Step:
    """One thing that was done to the data."""

    node: Node
    inside: tuple[Step, ...] = ()  # of a sum: all steps of its branches

    def everything(self) -> list[Step]:
        """This step, and all within it."""
        return [self, *(each for step in self.inside for each in step.everything())]


class Token:
    """The data at one place of a module: it is passed on, taken by layers, and added."""

    __array_ufunc__ = None  # so that NumPy leaves sums to `__radd__`
    __slots__ = ("trail", "width")

    def __init__(self, trail: tuple[Step, ...], width: int | None):
        self.trail = trail
        self.width = width

    def behind(self, node: Node, width: int | None) -> Token:
        """The data behind one more layer."""
        return Token((*self.trail, Step(node)), width)

    def scaled_by(self, factor: float) -> Token:
        """Every coordinate times a fixed number."""
        if factor == 0:
            raise NotUnderstoodError("it multiplies the data by 0")
        return self if factor == 1 else self.behind(Scale(factor), self.width)

    def shifted_by(self, offset: float) -> Token:
        """Every coordinate plus a fixed number; `sum` starts at 0."""
        return self if offset == 0 else self.behind(Shift(offset), self.width)

    def _times(self, other: Token) -> Token:
        """A square is a layer; of all other products of the data no kernel is known."""
        if self.trail != other.trail:  # steps are equal only to themselves
            raise NotUnderstoodError(
                "it multiplies two different values of the data, and the kernel of a product is not known"
            )
        return self.behind(SQUARE, self.width)

    def __add__(self, other: object) -> Token:
        if isinstance(other, Token):
            return _add(self, other)
        return self.shifted_by(fixed_number(other, "it adds {} to the data"))

    __radd__ = __add__

    def __sub__(self, other: object) -> Token:
        if isinstance(other, Token):
            return _add(self, -other)
        return self.shifted_by(-fixed_number(other, "it subtracts {} from the data"))

    def __rsub__(self, other: object) -> Token:
        return (-self).shifted_by(fixed_number(other, "it subtracts the data from {}"))

    def __mul__(self, other: object) -> Token:
        if isinstance(other, Token):
            return self._times(other)
        return self.scaled_by(fixed_number(other, "it multiplies the data by {}"))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Token:
        number = 0.0
        if not isinstance(other, Token):
            number = fixed_number(other, "it divides the data by {}")
        if number == 0:
            what = "the data" if isinstance(other, Token) else "0"
            raise NotUnderstoodError(f"it divides the data by {what}")
        return self.scaled_by(1 / number)

    def __pow__(self, power: object) -> Token:
        if isinstance(power, int | float) and power == 2:
            return self._times(self)
        raise NotUnderstoodError("it raises the data to a power other than 2")

    def __neg__(self) -> Token:
        return self.scaled_by(-1.0)

    def __pos__(self) -> Token:
        return self

    @property
    def shape(self) -> Sizes:
        """A shape of which the number of inputs may be taken, to flatten the rest, and what is known."""
        if any(isinstance(each, Squeezed) for each in layers_of(in_sequence(self.trail))):
            raise NotUnderstoodError("it asks for the shape of the data without their last axis")
        return Sizes(self.width, lambda: count_axes(in_sequence(self.trail)))

    @property
    def ndim(self) -> int:
        """The number of axes, where layers tell it, or all is about vectors."""
        return len(self.shape)

    def reshape(self, *shape: Any) -> Token:
        """All positions and features side by side: `x.reshape(x.shape[0], -1)`."""
        return self.behind(flattened(*shape), None)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Token:
        """Over all positions: `x.mean(axis=(1, 2))`."""
        return self.behind(mean_over(axis, keepdims), self.width)

    def squeeze(self, axis: Any = None) -> Token:
        """Of one output, without its axis: `x.squeeze(-1)`."""
        layer = squeezed(axis)
        return self.behind(layer, flow.step(layer, Place(Kind.ANY, width=self.width), "").width)

    def clip(self, min: Any = None, max: Any = None) -> Token:
        """Between two numbers: `x.clip(-1, 1)`."""
        return self.behind(clipped(min, max), self.width)

    def __bool__(self) -> NoReturn:
        raise NotUnderstoodError("what it does depends on the data")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol, which tokens do not follow
            raise AttributeError(name)
        frame = inspect.currentframe()
        asking = "" if frame is None or frame.f_back is None else frame.f_back.f_globals["__name__"]
        if asking.partition(".")[0] in ("jax", "flax", "numpy"):
            raise NotUnderstoodError(UNKNOWN_FUNCTION)
        raise NotUnderstoodError(f"it asks for .{name} of the data")

    def __getitem__(self, place: object) -> Token:
        if self.width == 1 and isinstance(place, tuple) and place == (..., 0):
            return self.squeeze(-1)  # the same, of one output
        raise NotUnderstoodError("it takes a part of the data")

    def __iter__(self) -> NoReturn:
        raise NotUnderstoodError("it takes the data apart")


def _refuse(what: str) -> Any:
    def method(self: Token, *others: object) -> NoReturn:
        raise NotUnderstoodError(f"it {what}")

    return method


for _names, _what in {
    ("matmul", "rmatmul"): "takes a matrix product of the data",
    ("rtruediv",): "divides a number by the data",
    ("floordiv", "rfloordiv", "mod", "rmod"): "takes the whole part or the rest of a division",
    ("rpow",): "takes a power whose exponent is the data",
    ("lt", "le", "gt", "ge", "eq", "ne"): "compares the data",
}.items():
    for _name in _names:
        setattr(Token, f"__{_name}__", _refuse(_what))


def _add(one: Token, two: Token) -> Token:
    """The sum: the steps that both have in common, and then the rest of each as a branch."""
    common = 0
    while common < min(len(one.trail), len(two.trail)) and one.trail[common] is two.trail[common]:
        common += 1
    rests = one.trail[common:], two.trail[common:]
    branches: list[Node] = []
    for rest in rests:
        branches.extend(_branches(rest))
    total = Step(Parallel(tuple(branches)), (*rests[0], *rests[1]))
    return Token((*one.trail[:common], total), one.width if two.width is None else two.width)


def _branches(rest: tuple[Step, ...]) -> tuple[Node, ...]:
    """The rest as branches: a sum that is added to is one sum."""
    if len(rest) == 1 and isinstance(rest[0].node, Parallel):
        return rest[0].node.branches
    return (in_sequence(rest),)


def in_sequence(steps: tuple[Step, ...]) -> Node:
    """The steps as one node."""
    if len(steps) == 1:
        return steps[0].node
    layers: list[Node] = []
    for each in steps:
        layers.extend(layers_of(each.node))
    return Serial(tuple(layers)) if layers else Identity()
