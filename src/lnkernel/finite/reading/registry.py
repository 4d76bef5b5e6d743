"""The registry of what can be read, open to other files: one reader for each type of module.

A subclass may compute something else than its parent, so that a reader is for one type exactly.
A module of another type is followed (`tracing`), and what is no module is a function, looked up in
`functions`; or they are refused with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import jax
from flax import nnx

from lnkernel.arch import Node
from lnkernel.arch.flow import Kind, Place, step
from lnkernel.errors import ArchitectureError
from lnkernel.finite.reading.functions import find_layer, without_jit
from lnkernel.finite.reading.refusals import NotUnderstoodError, explain_refusal

Found = tuple[Node, int | None]  # a node, and the number of features behind it, if known
Stds = Iterator[tuple[float | None, float | None]]


@dataclass(frozen=True)
class Reading:
    """How far a module has been read: what a reader knows besides the part that it reads."""

    width: int | None  # number of features before the part, if known
    stds: Stds  # (W_std, b_std) of every nnx.Linear that is still to come, None where not given
    here: str = ""  # the position, for messages
    seen: dict[int, object] = field(
        default_factory=dict
    )  # modules that have been read, by identity

    def inside(self, place: str, width: int | None) -> Reading:
        """The reading of a part of the part, which stands at this place."""
        return replace(self, width=width, here=f"{self.here}, {place}".lstrip(", "))

    def is_shared(self, part: Any) -> bool:
        """Whether this module has been read before and has parameters, which two layers then share."""
        trained = nnx.Not(nnx.RngState)  # the counters of a Dropout are no parameters
        return id(part) in self.seen and bool(jax.tree.leaves(nnx.state(part, trained)))

    def next_stds(self) -> tuple[float | None, float | None]:
        """What the user said of the next layer; all that belong to the module have been counted."""
        found = next(self.stds, None)
        if found is None:
            raise NotUnderstoodError(
                "it calls a layer that does not belong to the module (one inside of nnx.jit does not), so that its "
                "parameters are not trained"
            )
        return found

    def check_width(self, part: Any, expected: int) -> None:
        """Refuse a part that takes another number of features than there are before it."""
        if self.width is not None and self.width != expected:
            raise ArchitectureError(
                type(part).__name__,
                self.here,
                f"it takes {expected} features, and there are {self.width} before it",
                "Build it with as many features as the layer before it has",
            )


@singledispatch
def read_module(part: Any, reading: Reading) -> Found:
    """The reader of one type of module; this one is for what is no module: functions, or nothing.

    Register one for a type of module by `@read_module.register`; it is called by `read`.
    """
    layer = find_layer(part)
    if layer is None:
        refusal = explain_refusal(part)
        raise ArchitectureError(refusal.name, reading.here, refusal.reason, refusal.remedy)
    return layer, step(layer, Place(Kind.ANY, width=reading.width), reading.here).width


def read(part: Any, reading: Reading) -> Found:
    """The node that `part` stands for, and the number of features behind it, if known."""
    part = without_jit(part)
    if isinstance(part, nnx.Module):
        if reading.is_shared(part):
            raise ArchitectureError(
                type(part).__name__,
                reading.here,
                "it stands there a second time, so that two layers share parameters, which is another "
                "kernel than that of two layers",
                "Make a layer of its own for each place",
            )
        reading.seen[id(part)] = part
    readers = read_module.registry
    others = readers[nnx.Module] if isinstance(part, nnx.Module) else readers[object]
    return readers.get(type(part), others)(part, reading)
