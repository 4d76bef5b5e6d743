"""An architecture, and what its rules need to know of the inputs: asked once, since it is a walk over all layers."""

from __future__ import annotations

from typing import NamedTuple

from lnkernel.arch import Node
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.facts import (
    acts_on_positions,
    has_pair_tables,
    has_quick_way,
    mixes_positions,
    needs_compiler,
    needs_difference,
    needs_difference_quickly,
    needs_range,
    needs_sharp_lengths,
    reads_centred_input,
)
from lnkernel.arch.flow import rows_of
from lnkernel.calculus.forms import form_of
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.deep import Source, has_loop
from lnkernel.evaluate.float64.gaps import delicate_angle


class Needs(NamedTuple):
    """Facts that follow from the structure of a network alone; see `lnkernel.arch.facts`."""

    range: bool  # of squared lengths, beyond that of float64
    difference: bool  # of the lengths of two inputs
    quick_difference: bool  # the same for the quick way
    sharp_lengths: bool
    delicate: float  # the least angle that is taken from its cosine
    centred_input: bool
    compiler: bool  # even for few pairs that ask for care
    loop: bool  # over equal blocks
    positions: bool  # of images or sequences
    all_pairs: bool  # of positions; else equal ones will do
    quick_way: bool = True  # for the others, without a compiler
    pair_tables: bool = True  # NumPy does without it even where pairs ask for care
    gentle: bool = False  # it makes little of a rounding error of the cosine, for the lengths that it is prepared for


class Network(NamedTuple):
    """An architecture with its needs."""

    arch: Node
    needs: Needs
    source: Source | None = None  # of its hyperparameters, where they come as one array


def network(arch: Node) -> Network:
    """The architecture with its needs."""
    return Network(arch, needs_of(arch))


def needs_of(arch: Node) -> Needs:
    """What the rules of this architecture need."""
    return Needs(
        range=needs_range(arch),
        difference=needs_difference(arch),
        quick_difference=needs_difference_quickly(arch),
        sharp_lengths=needs_sharp_lengths(arch),
        delicate=delicate_angle(_count_closed_forms(arch)),
        centred_input=reads_centred_input(arch),
        compiler=needs_compiler(arch),
        loop=has_loop(arch),
        positions=acts_on_positions(arch),
        all_pairs=mixes_positions(arch),
        quick_way=has_quick_way(arch),
        pair_tables=has_pair_tables(arch),
    )


def _count_closed_forms(arch: Node) -> int:
    num = Float64()
    layers = [layer for _, layer, _ in rows_of(arch) if isinstance(layer, Elementwise)]
    return sum(form_of(layer, num) is not None for layer in layers)
