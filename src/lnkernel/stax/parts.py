"""What a layer of `stax` is made of: nodes of an architecture, and the three marks of branching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from lnkernel.arch import Identity, Node, parallel, serial
from lnkernel.errors import ArchitectureError
from lnkernel.stax.side_by_side import SideBySide, keeps_channels_apart


@dataclass(frozen=True)
class Fork:
    """From here on there are so many copies of the state: `FanOut`."""

    copies: int


@dataclass(frozen=True)
class Branches:
    """A layer for each copy: `parallel`."""

    layers: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True)
class Join:
    """The copies are added, and are one state again: `FanInSum`."""


@dataclass(frozen=True)
class Beside:
    """The channels of the copies stand side by side, and are one state again: `FanInConcat`."""


Part = Node | Fork | Branches | Join | Beside


def is_whole(parts: Sequence[Part]) -> bool:
    """Whether the copies of the state are made within these parts, and are one again."""
    marks = [(place, part) for place, part in enumerate(parts) if not isinstance(part, Node)]
    if not marks:
        return True
    last, end = marks[-1]
    behind = [part for part in parts[last + 1 :] if isinstance(part, Node)]
    apart = all(map(keeps_channels_apart, behind))  # channels side by side, not mixed yet
    closed = isinstance(end, Join) or (isinstance(end, Beside) and not apart)
    return isinstance(marks[0][1], Fork) and closed


def fold(parts: Sequence[Part]) -> Node:
    """The architecture of the parts, in which `Fork`, `Branches` and `Join` together are one sum.

    So are `Fork`, `Branches`, `Beside` and the weights behind them: see `lnkernel.stax.side_by_side`.
    """
    nodes: list[Node] = []
    copies: list[list[Node]] | None = None  # the layers that each copy has gone through
    beside: SideBySide | None = None
    for part in parts:
        if beside is not None:
            made = beside.then(part)
            if made is not None:
                nodes.append(made)
                beside = None
        elif isinstance(part, Beside):
            if copies is None:
                _refuse("FanInConcat", "there is nothing to put side by side")
            beside = SideBySide.of(nodes, [_compose(copy) for copy in copies])
            copies = None
        elif isinstance(part, Fork):
            if copies is not None:
                _refuse("FanOut", "it copies what FanOut has copied already")
            copies = [[] for _ in range(part.copies)]
        elif isinstance(part, Branches):
            if copies is None or len(copies) != len(part.layers):
                _refuse("parallel", _count(copies, part))
            for copy, layer in zip(copies, part.layers, strict=True):
                copy.append(fold(layer))
        elif isinstance(part, Join):
            if copies is None:
                _refuse("FanInSum", "there is nothing to add")
            branches = [_compose(copy) for copy in copies]
            nodes.append(branches[0] if len(branches) == 1 else parallel(*branches))
            copies = None
        else:
            if copies is not None:
                _refuse(type(part).__name__, "it acts on the copies of FanOut, which are several")
            nodes.append(part)
    if copies is not None:
        _refuse("FanOut", "its copies are never added")
    if beside is not None:
        beside.refuse("no weights follow that mix them")
    return _compose(nodes)


def _compose(nodes: list[Node]) -> Node:
    if not nodes:
        return Identity()
    return nodes[0] if len(nodes) == 1 else serial(*nodes)


def _count(copies: list[list[Node]] | None, part: Branches) -> str:
    came = "one input" if copies is None else f"{len(copies)} copies of the input"
    return f"it has {len(part.layers)} layers, for {came}"


def _refuse(layer: str, reason: str) -> NoReturn:
    raise ArchitectureError(
        f"stax.{layer}",
        "",
        reason,
        "Write stax.serial(stax.FanOut(2), stax.parallel(one, other), stax.FanInSum())",
    )
