"""Flax's Dropout: nothing at all in evaluation mode, and random in training."""

from __future__ import annotations

from typing import Any

from flax import nnx

from lnkernel.arch import Identity
from lnkernel.errors import ArchitectureError
from lnkernel.finite.reading.refusals import Refusal, explain_refusal
from lnkernel.finite.reading.registry import Found, Reading, read_module
from lnkernel.finite.reading.stand_ins import in_call


@read_module.register
def _(part: nnx.Dropout, reading: Reading) -> Found:
    if part.rate == 0 or part.deterministic:
        return Identity(), reading.width
    refusal = explain_refusal(part)
    raise ArchitectureError(refusal.name, reading.here, refusal.reason, refusal.remedy)


@explain_refusal.register
def _(part: nnx.Dropout) -> Refusal:
    return Refusal(
        "Dropout",
        "in training mode it is random at every call",
        "Call model.eval() before, which makes it the identity, or leave it out",
    )


@in_call.register
def _(part: nnx.Dropout, named: dict[str, Any]) -> nnx.Dropout | None:
    """What the call says comes before what the module says, as in Flax."""
    if not named.keys() <= {"deterministic", "rngs"}:
        return None
    said = named.get("deterministic")
    return nnx.Dropout(part.rate, deterministic=part.deterministic if said is None else said)
