"""Why a part of a network cannot be read; other files can add reasons for their types."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

from flax import nnx

from lnkernel.finite.reading.functions import list_functions


class NotUnderstoodError(Exception):
    """What the user's line does with the data is no layer; `why` is the end of a sentence about it."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why


UNKNOWN_FUNCTION = "it gives the data to a function that is none of the known activations"
TRANSFORMED = (
    "it gives layers to a function of a library, such as nnx.scan, nnx.vmap or nnx.remat, where the data are not "
    "followed; a loop over a list of layers is read"
)


class Refusal(NamedTuple):
    """What an `ArchitectureError` says besides the position."""

    name: str
    reason: str
    remedy: str


@singledispatch
def explain_refusal(part: Any) -> Refusal:
    """The reason why `part`, which is no registered function or module, is not read."""
    return Refusal(
        getattr(getattr(part, "func", part), "__name__", repr(part)),
        "this function is none of those that are known as layers, and its kernel is not known",
        f"Known are {list_functions()} as such, gelu, elu and leaky_relu also in a functools.partial; describe a "
        "network of any other function with lnkernel.Activate(function)",
    )


@explain_refusal.register
def _(part: nnx.Module) -> Refusal:
    return Refusal(
        type(part).__name__,
        "this type of module is not known",
        "Build the network from nnx.Sequential, Linear, LayerNorm, RMSNorm, GroupNorm and the "
        f"activations {list_functions()}; a subclass of these may compute something else",
    )


@explain_refusal.register
def _(part: nnx.PReLU) -> Refusal:
    return Refusal("PReLU", "its slope is trained, which has no closed form", "Use nnx.leaky_relu")


@explain_refusal.register
def _(part: nnx.BatchNorm) -> Refusal:
    why = "it normalises over a batch, so one point's output depends on the other points"
    return Refusal("BatchNorm", why, "Use nnx.LayerNorm")
