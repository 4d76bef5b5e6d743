"""What stands for the data while a module is called to find out what it does.

A token knows its trail: the steps that lead to it from the module's input. Tokens with a common
beginning can be added; what lies behind that beginning is a sum of branches.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from lnkernel.arch import Clip, Flatten, GlobalAvgPool, Identity, Node, Parallel, Relu, Serial, flow
from lnkernel.arch.compose import layers_of
from lnkernel.arch.flow import Kind, Place
from lnkernel.arch.node import node
from lnkernel.check.numbers import as_number


class NotUnderstoodError(Exception):
    """What the user's line does with the data is no layer; `why` is the end of a sentence about it."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why


UNKNOWN_FUNCTION = "it gives the data to a function that is none of the known activations"


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


def maximum(**constant: Any) -> Node:
    """The layer of the larger of the data and 0, whichever of the two arguments is the constant."""
    if [_plain(value) for value in constant.values()] != [0]:
        raise NotUnderstoodError("it takes the larger of the data and of what is not the number 0")
    return Relu()


def clipped(min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None) -> Node:
    """The layer of `clip`, with the words of JAX or with those of NumPy."""
    low, high = _plain(min if a_min is None else a_min), _plain(max if a_max is None else a_max)
    if low == 0 and (max, a_max) == (None, None):
        return Relu()
    if low is None or high is None:
        raise NotUnderstoodError("it clips the data otherwise than between two numbers")
    return Clip(low, high)


def _plain(value: Any) -> float | None:
    """A number of Python, NumPy or JAX; None for all else."""
    return None if isinstance(value, Token) or np.ndim(value) else as_number(value)


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

    def __add__(self, other: object) -> Token:
        if isinstance(other, Token):
            return _add(self, other)
        if isinstance(other, int | float) and other == 0:  # where `sum` starts
            return self
        raise NotUnderstoodError(f"it adds a {type(other).__name__} to the data")

    __radd__ = __add__

    def __pos__(self) -> Token:
        return self

    @property
    def shape(self) -> Sizes:
        """A shape of which the number of inputs may be taken, to flatten the rest."""
        return Sizes()

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
        raise NotUnderstoodError(f"it {what} the data")

    return method


for _names, _what in {
    ("mul", "rmul"): "multiplies",
    ("matmul", "rmatmul"): "takes a matrix product of",
    ("truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod"): "divides",
    ("sub", "rsub"): "subtracts from",
    ("pow", "rpow"): "raises to a power",
    ("neg",): "negates",
    ("lt", "le", "gt", "ge"): "compares",
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
