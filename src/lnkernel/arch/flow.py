"""How the kind of state flows through an architecture, and where it can flow no further.

The closed forms hold for some orders of layers only: an activation needs Gaussian
inputs, for example. This walk knows each layer's demand, and gives the reason and a
way out where it is not met. It computes no kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from typing import TypeVar

from lnkernel.arch.activations import Activation, Identity
from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm
from lnkernel.errors import ArchitectureError

Block = TypeVar("Block", bound=Node)


class Kind(Enum):
    """What is known of the coordinates of a state."""

    ANY = "whatever comes in"  # the start of a block whose place is not known yet
    INPUT = "raw input"
    GAUSSIAN = "Gaussian"  # independent and identically distributed, Gaussian
    FEATURES = "features"  # independent and identically distributed, not Gaussian


@dataclass(frozen=True)
class State:
    """What the static walk knows between two layers."""

    kind: Kind
    width: int | None = None  # None: not known
    scaled: bool = False  # a trainable scale acts on these very coordinates
    mixed: bool = False  # a trainable scale acts on one branch of a sum
    fresh: bool = False  # a Dense has drawn new randomness since the start
    maker: str = ""  # the layer that made the features, for messages


def check_block(block: Block) -> Block:
    """`block`, after checking all that does not depend on where it will stand."""
    for _ in walk(block, State(Kind.ANY)):
        pass
    return block


def check_network(arch: Node) -> Node:
    """`arch`, after checking it as a whole network that starts from the raw input."""
    if not isinstance(arch, Node):
        raise ArchitectureError(
            "network",
            "",
            f"expected an architecture, got {arch!r} of type {type(arch).__name__}",
            "Build one with lnkernel.serial(...) or lnkernel.mlp(...)",
        )
    for _ in walk(arch, State(Kind.INPUT)):
        pass
    return arch


def walk(arch: Node, state: State, path: str = "") -> Iterator[tuple[str, Node, State]]:
    """Every layer with its position and the state behind it; compositions are entered."""
    layers = arch.layers if isinstance(arch, Serial) else (arch,)
    for place, layer in enumerate(layers):
        here = f"{path}layer {place}" if isinstance(arch, Serial) else path.rstrip(", ")
        if isinstance(layer, Parallel):
            ends = []
            for number, branch in enumerate(layer.branches):
                end = dataclasses.replace(state, fresh=False)
                inside = f"{here}, branch {number}, ".lstrip(", ")
                for row in walk(branch, end, inside):
                    yield row
                    end = row[2]
                ends.append(end)
            state = _sum(layer, ends, state, here)
        else:
            state = step(layer, state, here)
        yield here, layer, state


@singledispatch
def step(layer: Node, state: State, here: str) -> State:
    """The state behind `layer`, or an error where its closed form ends."""
    raise ArchitectureError(
        type(layer).__name__,
        here,
        "this type of layer is not known",
        "Register its step in lnkernel.arch.flow and its rule in lnkernel.calculus.rules",
    )


@step.register
def _(layer: Identity, state: State, here: str) -> State:
    return state


@step.register
def _(layer: Dense, state: State, here: str) -> State:
    return State(Kind.GAUSSIAN, width=layer.width, fresh=True)


@step.register(Activation)
def _(layer: Activation, state: State, here: str) -> State:
    name = type(layer).__name__
    if state.kind is Kind.INPUT:
        raise ArchitectureError(
            name, here, "it acts on the raw input, which is not Gaussian", "Put a Dense before it"
        )
    if state.kind is Kind.FEATURES:
        raise ArchitectureError(
            name,
            here,
            f"its input is not Gaussian, because {state.maker} stands between it and the last "
            "Dense, so its kernel has no closed form",
            "Put a Dense between them",
        )
    if state.mixed:
        raise ArchitectureError(
            name,
            here,
            "it follows a sum in which one branch ends in a trainable scale; the scale's part of "
            "the NTK then differs from coordinate to coordinate and has no closed form",
            "Put a Dense between the sum and the activation, or set scale=False",
        )
    return _made_features(state, f"{name} at {here}" if here else name)


@step.register(LayerNorm)
@step.register(RMSNorm)
def _(layer: LayerNorm | RMSNorm, state: State, here: str) -> State:
    _no_affine_on_input(layer, state, here)
    return dataclasses.replace(state, scaled=state.scaled or layer.scale)


@step.register
def _(layer: GroupNorm, state: State, here: str) -> State:
    _no_affine_on_input(layer, state, here)
    if state.kind in (Kind.INPUT, Kind.FEATURES):
        source = "the raw input" if state.kind is Kind.INPUT else f"features made by {state.maker}"
        raise ArchitectureError(
            "GroupNorm",
            here,
            f"it acts on {source}; its closed form needs a Gaussian state",
            "Put a Dense directly before it, or use LayerNorm",
        )
    if state.scaled or state.mixed:
        raise ArchitectureError(
            "GroupNorm",
            here,
            "a trainable scale stands between it and the last Dense; the scale's part of the NTK "
            "differs from coordinate to coordinate and has no closed form behind GroupNorm",
            "Put a Dense between them, or set scale=False",
        )
    return _made_features(state, f"GroupNorm at {here}" if here else "GroupNorm")


def _made_features(state: State, maker: str) -> State:
    return dataclasses.replace(state, kind=Kind.FEATURES, scaled=False, maker=maker)


def _no_affine_on_input(layer: LayerNorm | RMSNorm | GroupNorm, state: State, here: str) -> None:
    if state.kind is Kind.INPUT and (layer.scale or layer.bias):
        raise ArchitectureError(
            type(layer).__name__,
            here,
            "a trainable scale or bias on the raw input has only as many parameters as the input "
            "has dimensions; its part of the NTK stays random at every width",
            "Set scale=False and bias=False there, or put a Dense before it",
        )


def _sum(layer: Parallel, ends: list[State], start: State, here: str) -> State:
    name = repr(layer).split("(")[0]
    if sum(not end.fresh for end in ends) > 1:
        raise ArchitectureError(
            name,
            here,
            "two of its branches pass the incoming state on without a Dense of their own, so they "
            "share their randomness and their kernels do not add",
            "Put a Dense into all branches but one",
        )
    if any(end.kind is Kind.INPUT for end in ends):
        raise ArchitectureError(
            name,
            here,
            "one branch is the raw input, whose finitely many coordinates do not average out "
            "against the infinitely wide branches",
            "Put a Dense before the sum, or into that branch",
        )
    widths = {end.width for end in ends if end.width is not None}
    if len(widths) > 1:
        raise ArchitectureError(
            name,
            here,
            f"its branches have different widths, {sorted(widths)}, and cannot be added",
            "Give the last Dense of all branches the same width",
        )
    kinds = {end.kind for end in ends}
    kind = next((k for k in (Kind.FEATURES, Kind.ANY) if k in kinds), Kind.GAUSSIAN)
    return State(
        kind,
        width=widths.pop() if widths else None,
        mixed=any(end.scaled or end.mixed for end in ends),
        fresh=start.fresh or all(end.fresh for end in ends),
        maker=next((end.maker for end in ends if end.maker), ""),
    )
