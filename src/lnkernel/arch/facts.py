"""Facts about a whole network, gathered from the traits of its layers."""

from __future__ import annotations

import math

from lnkernel.arch.compose import layers_of
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.flow import Kind, rows_of
from lnkernel.arch.node import Node
from lnkernel.arch.traits import Traits, traits
from lnkernel.errors import ArchitectureError


def reads_centred_input(arch: Node) -> bool:
    """Whether a rule may read the raw inputs less the mean of their coordinates."""
    return any(traits(layer).reads_centred for layer in _on_input(arch))


def centres_input(arch: Node) -> bool:
    """Whether a layer takes the mean of the coordinates off the raw inputs, as LayerNorm does."""
    return any(traits(layer).forgets_mean for layer in _on_input(arch))


def needs_difference(arch: Node) -> bool:
    """Whether the rules need the relative difference of the lengths, or the lengths will do.

    Where two inputs are short beside the first bias, the lengths leave few digits of the small
    angle between them. That matters if later layers widen it again.
    """
    return any(place.kind in traits(layer).needs_difference for _, layer, place in rows_of(arch))


def needs_difference_quickly(arch: Node) -> bool:
    """The same of pairs for which the quick way will do. Dense layers and activations that leave small angles to the
    careful one take from it what is exact beside 1, which the lengths tell."""
    rows = list(rows_of(arch))
    known = (traits(layer).is_linear or isinstance(layer, Elementwise) for _, layer, _ in rows)
    if not all(known):
        return needs_difference(arch)
    kept = [row for row in rows if not traits(row[1]).marks_small_angles]
    return any(place.kind in traits(layer).needs_difference for _, layer, place in kept)


def needs_range(arch: Node) -> bool:
    """Whether squared lengths may leave the range of float64 inside, or their errors grow."""
    return any(traits(layer).needs_range for _, layer, _ in rows_of(arch))


def needs_sharp_lengths(arch: Node) -> bool:
    """Whether what a layer makes of Θ/K is no power of two, so that errors of the lengths before it add up."""
    rows = [traits(layer) for _, layer, _ in rows_of(arch)]
    return any(layer.needs_range or layer.follows_lengths for layer in rows)


def needs_compiler(arch: Node) -> bool:
    """Whether a layer takes so much work for every pair that few pairs are worth a program."""
    return any(traits(layer).needs_compiler for _, layer, _ in rows_of(arch))


def has_quick_way(arch: Node) -> bool:
    """Whether that is not so of pairs that ask for no care."""
    rows = (traits(layer) for _, layer, _ in rows_of(arch))
    return all(layer.quick_way or not layer.needs_compiler for layer in rows)


def has_pair_tables(arch: Node) -> bool:
    """Whether NumPy has tables for all that would need the compiler."""
    rows = (traits(layer) for _, layer, _ in rows_of(arch))
    return all(layer.has_pair_tables or not layer.needs_compiler for layer in rows)


def acts_on_positions(arch: Node) -> bool:
    """Whether its inputs are images or sequences."""
    return any(traits(layer).on_positions for _, layer, _ in rows_of(arch))


def mixes_positions(arch: Node) -> bool:
    """Whether all pairs of positions have to be compared, or equal ones will do."""
    return any(traits(layer).mixes_positions for _, layer, _ in rows_of(arch))


def position_axes(arch: Node) -> int | None:
    """How many axes of positions its inputs have; None where it takes any number."""
    known = [place.axes for _, _, place in rows_of(arch) if place.axes is not None]
    return known[0] if known else None


def starts_with_bias(arch: Node) -> bool:
    """Whether the first layer that acts on the raw input adds a bias."""
    return _first(arch).adds_bias


def is_monotone(arch: Node) -> bool:
    """Whether it is a theorem that Θ(x, x) never decreases in |x|."""
    return all(traits(layer).is_monotone for _, layer, _ in rows_of(arch))


def demand_ntk(arch: Node) -> None:
    """Refuse a network whose NTK is infinite between equal inputs."""
    for here, layer, _ in rows_of(arch):
        if not traits(layer).has_ntk:
            raise ArchitectureError(
                type(layer).__name__,
                here,
                "its NTK does not exist, because it jumps: E phi'(u) phi'(v) is infinite where u = v",
                "Take the NNGP kernel, lnkernel.nngp, or a steep continuous activation such as Clip or Tanh",
            )


def steepness(arch: Node) -> float:
    """The most powers of |x|² that the layers make of one."""
    return math.prod(max(1.0, traits(layer).steepness) for _, layer, _ in rows_of(arch))


def demand_one_length(arch: Node) -> None:
    """Θ(x, x) must depend on one length of x alone: a layer that centres the raw input must come
    first. Behind another one, or in one branch of a sum, x and x less its mean both matter."""
    if _first(arch).forgets_mean:
        return
    for here, layer, place in rows_of(arch):
        if place.kind is Kind.INPUT and traits(layer).reads_centred:
            raise ArchitectureError(
                type(layer).__name__,
                here,
                "it centres the raw input behind another layer or in one branch of a sum, so Θ(x, x) "
                "depends on two numbers, the mean of the coordinates and their size, and its supremum "
                "is not computed here",
                "Put it first, or a Dense before it",
            )


def _on_input(arch: Node) -> list[Node]:
    return [layer for _, layer, place in rows_of(arch) if place.kind is Kind.INPUT]


def _first(arch: Node) -> Traits:
    """The traits of the first layer, or sum of branches, that changes anything."""
    return next((each for each in map(traits, layers_of(arch)) if not each.is_identity), Traits())
