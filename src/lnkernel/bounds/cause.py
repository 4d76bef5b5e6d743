"""Which activation is to blame where Θ(x, x) grows without limit in spite of a LayerNorm behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from lnkernel.arch import LayerNorm, Node, Serial
from lnkernel.arch.traits import traits
from lnkernel.evaluate.leading.growth import amplifying, far


class Cause(NamedTuple):
    """An activation whose kernel saturates, and its position."""

    layer: str
    position: str

    def __str__(self) -> str:
        return f"{self.layer} at {self.position}" if self.position else self.layer


def cause_of_growth(arch: Node) -> Cause | None:
    """The first activation that multiplies Θ/q by a number that grows with its input.

    None if there is none, or if Θ(x, x) would grow all the same with a LayerNorm before each of them.

    >>> import lnkernel as lnk
    >>> print(cause_of_growth(lnk.mlp(activation=lnk.Tanh(), norm="last")))
    Tanh at layer 1
    """
    found = amplifying(arch)
    if not any(amplifies for *_, amplifies in found) or far(_with_norms(arch)).power > 0:
        return None
    position, layer = next((here, layer) for here, layer, amplifies in found if amplifies)
    return Cause(type(layer).__name__, position)


def _with_norms(arch: Node) -> Node:
    """`arch` with a LayerNorm before each activation that amplifies."""
    flags = iter([amplifies for *_, amplifies in amplifying(arch)])

    def remedy(part: Any) -> Any:
        if not _notes_growth(part):
            return part
        return Serial((LayerNorm(), part)) if next(flags) else part

    made: Node = jax.tree.map(remedy, arch, is_leaf=_notes_growth)
    return made


def _notes_growth(part: Any) -> bool:
    return isinstance(part, Node) and traits(part).notes_growth
