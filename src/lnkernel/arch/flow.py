"""How the kind of state flows through an architecture, and where it can flow no further.

The closed forms hold for some orders of layers only: an activation needs Gaussian
inputs, for example. Each layer registers its demand as a `step`, beside its description, with
the reason and a way out where it is not met. Nothing here computes a kernel.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from typing import TypeVar

from lnkernel.arch.node import Node
from lnkernel.errors import ArchitectureError

Block = TypeVar("Block", bound=Node)


class Kind(Enum):
    """What is known of the coordinates of a state."""

    ANY = "whatever comes in"  # the start of a block whose place is not known yet
    INPUT = "raw input"
    GAUSSIAN = "Gaussian"  # independent and identically distributed, Gaussian
    FEATURES = "features"  # independent and identically distributed, not Gaussian


class Space(Enum):
    """Where the features stand: at positions of an image or a sequence, or at none."""

    ANY = "whatever comes in"
    POSITIONS = "positions"
    FLATTENED = (
        "flattened"  # the features of all positions side by side: not identically distributed
    )
    NONE = "none"


@dataclass(frozen=True)
class Place:
    """What is known between two layers before any number is."""

    kind: Kind
    width: int | None = None  # None: not known
    scaled: bool = False  # a trainable scale acts on these very coordinates
    mixed: bool = False  # a trainable scale acts on one branch of a sum
    fresh: bool = False  # a Dense has drawn new randomness since the start
    maker: str = ""  # the layer that made the features, for messages
    space: Space = Space.ANY
    axes: int | None = None  # of the positions; None: not known

    def of_weights(self, width: int) -> Place:
        """Behind a layer with weights of its own, applied at every position."""
        space = Space.NONE if self.space is Space.FLATTENED else self.space
        return Place(Kind.GAUSSIAN, width=width, fresh=True, space=space, axes=self.axes)

    def of_features(self, maker: str) -> Place:
        """Behind a layer that makes features of Gaussian coordinates."""
        return dataclasses.replace(self, kind=Kind.FEATURES, scaled=False, maker=maker)


Row = tuple[str, Node, Place]  # the position of a layer, the layer, and what is known behind it


@singledispatch
def step(layer: Node, place: Place, here: str) -> Place:
    """What is known behind `layer`, or an error where its closed form ends."""
    raise ArchitectureError(
        type(layer).__name__,
        here,
        "this type of layer is not known",
        "Register its step in lnkernel.arch.flow and its rule in lnkernel.calculus.rules",
    )


@singledispatch
def walk(part: Node, place: Place, here: str = "") -> Iterator[Row]:
    """Every layer inside `part`, in the order of the data; compositions register how they are
    entered. `here` is the position of `part` itself."""
    yield here, part, step(part, place, here)


def inside(here: str, name: str) -> str:
    """The position of a part within the part at `here`."""
    return f"{here}, {name}" if here else name


def check_block(block: Block) -> Block:
    """`block`, after checking all that does not depend on where it will stand."""
    for _ in walk(block, Place(Kind.ANY)):
        pass
    return block


def check_network(arch: Node) -> Node:
    """`arch`, after checking it as a whole network that starts from the raw input and ends in one vector."""
    end = None
    for row in rows_of(demand_node(arch)):
        end = row
    if end is not None and end[2].space is Space.POSITIONS:
        raise ArchitectureError(
            type(end[1]).__name__,
            end[0],
            "the network ends here with an output at every position, and a kernel compares whole inputs",
            "End with Flatten() or GlobalAvgPool(), and a Dense",
        )
    return arch


def demand_node(arch: object) -> Node:
    """`arch`, if it is an architecture; an error names whatever else it is."""
    if isinstance(arch, Node):
        return arch
    remedy = "Build one with lnkernel.serial(...) or lnkernel.mlp(...)"
    if arch is None:
        came = "None"
    elif callable(arch) and hasattr(arch, "__name__"):  # a class or a function
        came, remedy = f"{arch.__name__} without brackets", f"Write {arch.__name__}(...)"
    else:
        came = f"{reprlib.repr(arch)} of type {type(arch).__name__}"
    raise ArchitectureError(
        "network", "", f"expected an architecture or its text, got {came}", remedy
    )


def rows_of(arch: Node) -> Iterator[Row]:
    """Every layer of a whole network, from the raw input on."""
    return walk(arch, Place(Kind.INPUT))
