"""What stands for the data while a module is called to find out what it does.

A token knows its trail: the steps that lead to it from the module's input. Tokens with a common
beginning can be added; what lies behind that beginning is a sum of branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from lnkernel.arch import Identity, Node, Parallel, Serial
from lnkernel.arch.compose import layers_of


class NotUnderstoodError(Exception):
    """What the user's line does with the data is no layer; `why` is the end of a sentence about it."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why


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

    def __bool__(self) -> NoReturn:
        raise NotUnderstoodError("what it does depends on the data")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol, which tokens do not follow
            raise AttributeError(name)
        raise NotUnderstoodError(f"it asks for .{name} of the data")

    def __getitem__(self, place: object) -> NoReturn:
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
    for step in steps:
        layers.extend(layers_of(step.node))
    return Serial(tuple(layers)) if layers else Identity()
