"""Sequences and sums of parts, read part by part in the order in which data flows through them."""

from __future__ import annotations

from flax import nnx

from lnkernel.arch import Node, Parallel, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.finite.build import Network
from lnkernel.finite.modules import Sum
from lnkernel.finite.reading.registry import Found, Reading, read, read_module


@read_module.register(Network)
@read_module.register(nnx.Sequential)
def _(part: nnx.Sequential, reading: Reading) -> Found:
    """A sequence within a sequence is one sequence; `from_flax` checks it as a whole."""
    nodes: list[Node] = []
    width = reading.width
    for place, layer in enumerate(part.layers):
        node, width = read(layer, reading.inside(f"layer {place}", width))
        nodes.extend(layers_of(node))
    return Serial(tuple(nodes)), width


@read_module.register
def _(part: Sum, reading: Reading) -> Found:
    ends = [
        read(branch, reading.inside(f"branch {number}", reading.width))
        for number, branch in enumerate(part.branches)
    ]
    return Parallel(tuple(node for node, _ in ends)), ends[-1][1]
