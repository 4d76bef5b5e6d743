"""An architecture as functions take it: its layers, or the text that describes them."""

from __future__ import annotations

from lnkernel.arch.flow import demand_node
from lnkernel.arch.node import Node
from lnkernel.arch.parse import parse

Architecture = Node | str


def as_architecture(arch: Architecture) -> Node:
    """The architecture that is meant; a text is parsed, and every other type is refused by its name.

    >>> as_architecture("serial(Dense(8), Relu(), Dense(1))").layers[1]
    Relu()
    >>> as_architecture(3)
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureError: network: expected an architecture or its text, got 3 of type int. ...
    """
    return parse(arch) if isinstance(arch, str) else demand_node(arch)
