"""What of an architecture is fixed when a program is compiled, and what may vary.

Hyperparameters are arguments of the program, so changing one compiles nothing anew;
except that a zero is a fact about the structure: no bias, an exact normalisation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from lnkernel.arch import Node
from lnkernel.check.plain import known_zero


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


def places(structure: Structure) -> Any:
    """The architecture with the place of each hyperparameter in the array of those that vary, in its stead."""
    return assemble(structure, range(structure.zeros.count(False)))
