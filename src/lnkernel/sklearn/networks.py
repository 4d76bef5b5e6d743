"""A network as a parameter of scikit-learn: a description, its text, or nothing."""

from __future__ import annotations

from lnkernel.arch import Node, mlp
from lnkernel.arch.parse import parse
from lnkernel.errors import InputError


def as_network(arch: Node | str | None) -> Node:
    """The network that is meant; None is the default."""
    if arch is None:
        return mlp(hidden=2, norm="first")
    if isinstance(arch, str):
        return parse(arch)
    if isinstance(arch, Node):
        return arch
    raise InputError(
        "arch",
        "a network or its text",
        f"{arch!r} of type {type(arch).__name__}",
        "Write e.g. lnkernel.mlp(hidden=2, norm='first')",
    )
