"""Where Θ(x, x) depends on one length of x alone."""

from __future__ import annotations

from lnkernel.arch import Identity, LayerNorm, Node, Serial
from lnkernel.arch.flow import Kind, State, walk
from lnkernel.errors import ArchitectureError


def demand_one_length(arch: Node) -> None:
    """A LayerNorm on the raw input must come first: behind another normalisation of it, or in one
    branch of a sum, x and x less its mean both matter."""
    layers = arch.layers if isinstance(arch, Serial) else (arch,)
    first = next((layer for layer in layers if not isinstance(layer, Identity)), None)
    for here, layer, state in walk(arch, State(Kind.INPUT)):
        centres = isinstance(layer, LayerNorm) and state.kind is Kind.INPUT
        if centres and not isinstance(first, LayerNorm):
            raise ArchitectureError(
                "LayerNorm",
                here,
                "it centres the raw input behind another layer or in one branch of a sum, so Θ(x, x) "
                "depends on two numbers, the mean of the coordinates and their size, and its supremum "
                "is not computed here",
                "Put the LayerNorm first, or a Dense before it",
            )
