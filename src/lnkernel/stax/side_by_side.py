r"""Branches whose channels stand side by side, up to the weights that mix them.

With $n_i$ of $n$ channels in branch $i$,

$$\frac{\sigma_w}{\sqrt n}\, W a = \sum_i \sqrt{\frac{n_i}n}\,\frac{\sigma_w}{\sqrt{n_i}}\, W_i a_i$$

is a sum of branches that end in weights of their own, with one bias for all. What acts on every channel by itself, such
as pooling, acts on every branch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple, NoReturn

from lnkernel.arch import (
    Conv,
    ConvLocal,
    ConvTranspose,
    Crop,
    Dense,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    Identity,
    Node,
    Resize,
    Serial,
    parallel,
    serial,
)
from lnkernel.arch.flow import Kind, Place, walk
from lnkernel.arch.pooling import WindowPool
from lnkernel.errors import ArchitectureError

Weights = Dense | Conv | ConvLocal | ConvTranspose
MARKS = {
    "Fork": "FanOut",
    "Branches": "parallel",
    "Join": "FanInSum",
    "Beside": "another FanInConcat",
}


@singledispatch
def mixes_channels(layer: Node) -> bool:
    """Whether its weights mix all channels linearly; then it has W_std and b_std."""
    return False


@mixes_channels.register(Dense)
@mixes_channels.register(Conv)
@mixes_channels.register(ConvLocal)
@mixes_channels.register(ConvTranspose)
def _(layer: Weights) -> bool:
    return True


@singledispatch
def keeps_channels_apart(layer: Node) -> bool:
    """Whether it does the same to every channel by itself, linearly."""
    return False


@keeps_channels_apart.register(Identity)
@keeps_channels_apart.register(WindowPool)
@keeps_channels_apart.register(GlobalAvgPool)
@keeps_channels_apart.register(GlobalSumPool)
@keeps_channels_apart.register(Flatten)
@keeps_channels_apart.register(Crop)
@keeps_channels_apart.register(Resize)
def _(layer: Node) -> bool:
    return True


class SideBySide(NamedTuple):
    """Branches, and the share of each in the number of all channels."""

    branches: list[list[Node]]
    shares: list[float]

    @classmethod
    def of(cls, before: Sequence[Node], branches: Sequence[Node]) -> SideBySide:
        """Branches that start behind the layers `before`."""
        widths = [_width([*before, branch]) for branch in branches]
        return cls([[branch] for branch in branches], [n / sum(widths) for n in widths])

    def then(self, part: Any) -> Node | None:
        """The sum of the branches if `part` has weights; None if it acts on every branch."""
        if isinstance(part, Node) and mixes_channels(part):
            ends = [
                [*branch, _share_of(part, share, with_bias=number == 0)]
                for number, (branch, share) in enumerate(
                    zip(self.branches, self.shares, strict=True)
                )
            ]
            sums = [serial(*end) for end in ends]
            return sums[0] if len(sums) == 1 else parallel(*sums)
        if isinstance(part, Node) and keeps_channels_apart(part):
            for branch in self.branches:
                branch.append(part)
            return None
        name = type(part).__name__
        self.refuse(f"{MARKS.get(name, name)} follows")

    def refuse(self, reason: str) -> NoReturn:
        """Say what has to follow."""
        raise ArchitectureError(
            "stax.FanInConcat",
            "",
            f"its channels side by side are not identically distributed, and {reason}",
            "Put a Dense or Conv behind it, with nothing but pooling, Flatten, Index or ImageResize between",
        )


def _share_of(layer: Any, share: float, with_bias: bool) -> Node:
    """The weights of one branch."""
    made: Node = dataclasses.replace(
        layer, W_std=layer.W_std * math.sqrt(share), b_std=layer.b_std if with_bias else 0.0
    )
    return made


def _width(layers: Sequence[Node]) -> int:
    """The number of channels behind these layers, which the last weights among them tell."""
    *_, (_, _, end) = walk(Serial(tuple(layers)), Place(Kind.ANY))
    if end.width is None:
        raise ArchitectureError(
            "stax.FanInConcat",
            "",
            "the number of channels of a branch is not known: it has no Dense or Conv, or a Flatten behind it",
            "Put a Dense or Conv into this branch or before FanOut, and Flatten behind FanInConcat",
        )
    return end.width
