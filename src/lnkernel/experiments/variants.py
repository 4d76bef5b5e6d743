"""The networks that the experiments compare: where the LayerNorm is."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

from lnkernel.arch import mlp

INITIALISATION = {name: signature(mlp).parameters[name].default for name in ("W_std", "b_std")}


@dataclass(frozen=True)
class Variant:
    """A place of the LayerNorm: `mlp(norm=norm)`, in words, and in one colour throughout."""

    name: str
    norm: str | None
    label: str
    colour: str  # of Okabe and Ito's palette, which the colour-blind can tell apart

    @property
    def title(self) -> str:
        """The label in two lines, for narrow panels."""
        return self.label.replace(" in ", "\nin ")


VARIANTS = (
    Variant("none", None, "no LayerNorm", "#d55e00"),
    Variant("first", "first", "LayerNorm in the first layer", "#0072b2"),
    Variant("last", "last", "LayerNorm in the last hidden layer", "#009e73"),
    Variant("all", "all", "LayerNorm in all hidden layers", "#cc79a7"),
)
