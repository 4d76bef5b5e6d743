"""What of an architecture is fixed when a program is compiled, and what may vary.

Hyperparameters are arguments of the program, so changing one compiles nothing anew;
except that a zero is a fact about the structure: no bias, an exact normalisation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from lnkernel.arch import (
    Activation,
    Dense,
    GroupNorm,
    Identity,
    LayerNorm,
    Node,
    Parallel,
    RMSNorm,
    Serial,
)
from lnkernel.arch.flow import Kind, State, walk
from lnkernel.check import known_zero


class Structure(NamedTuple):
    """The static part of an architecture."""

    tree: Any
    zeros: tuple[bool, ...]


def dissect(arch: Node) -> tuple[Structure, list[Any]]:
    """The static part, and the hyperparameters that vary."""
    leaves, tree = jax.tree.flatten(arch)
    zeros = tuple(known_zero(leaf) for leaf in leaves)
    varying = [leaf for leaf, zero in zip(leaves, zeros, strict=True) if not zero]
    return Structure(tree, zeros), varying


def assemble(structure: Structure, varying: Any) -> Any:
    """The architecture again; the hyperparameters may come as one array."""
    rest = iter(varying)
    return jax.tree.unflatten(
        structure.tree, [0.0 if zero else next(rest) for zero in structure.zeros]
    )


def centres_input(arch: Node) -> bool:
    """Whether a LayerNorm acts on the raw input."""
    return any(
        isinstance(layer, LayerNorm) and state.kind is Kind.INPUT
        for _, layer, state in walk(arch, State(Kind.INPUT))
    )


def needs_difference(arch: Node) -> bool:
    """Whether the rules need the relative difference of the lengths, or the lengths will do.

    Where two inputs are short beside the first bias, the lengths leave few digits of the small
    angle between them. That matters if later layers widen it again: a degree other than 1 does, a
    LayerNorm on features, and a GroupNorm, whose outputs in small groups are next to signs. Sums
    and RMSNorm compare the differences of several parts.
    """
    rows = list(walk(arch, State(Kind.INPUT)))
    if any(isinstance(layer, Activation) and layer.degree != 1 for _, layer, _ in rows):
        return True
    if any(isinstance(x, LayerNorm) and state.kind is Kind.FEATURES for _, x, state in rows):
        return True
    return any(isinstance(layer, (Parallel, RMSNorm, GroupNorm)) for _, layer, _ in rows)


def needs_range(arch: Node) -> bool:
    """Whether squared lengths may leave the range of float64 inside, or their errors grow: with
    degrees other than 1."""
    layers = (layer for _, layer, _ in walk(arch, State(Kind.INPUT)))
    return any(isinstance(layer, Activation) and layer.degree != 1 for layer in layers)


def starts_with_bias(arch: Node) -> bool:
    """Whether a Dense with a bias is the first to act on the raw input."""
    layers = arch.layers if isinstance(arch, Serial) else (arch,)
    first = next((layer for layer in layers if not isinstance(layer, Identity)), None)
    return isinstance(first, Dense) and not known_zero(first.b_std)
