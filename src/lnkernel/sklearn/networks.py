"""A network as a parameter of scikit-learn: a description, its text, or nothing."""

from __future__ import annotations

from lnkernel.arch import Node, mlp
from lnkernel.arch.text import Architecture, as_architecture


def as_network(arch: Architecture | None) -> Node:
    """The network that is meant; None is the default."""
    return mlp(hidden=2, norm="first") if arch is None else as_architecture(arch)
