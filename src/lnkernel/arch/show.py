"""An architecture as a table, for notebooks."""

from __future__ import annotations

from functools import singledispatch

from lnkernel.arch.flow import Kind, Place, rows_of, walk
from lnkernel.arch.node import Node, fields_of
from lnkernel.errors import ArchitectureError
from lnkernel.page import html_table


def rows(arch: Node) -> list[tuple[str, str, str, str]]:
    """(position, layer, hyperparameters, state behind it) of every layer."""
    try:
        steps = list(rows_of(arch))
    except ArchitectureError:  # a block that cannot start from the raw input
        steps = list(walk(arch, Place(Kind.ANY)))
    return [(here, *describe(layer), place.kind.value) for here, layer, place in steps]


def html_of(arch: Node) -> str:
    return html_table(("", "layer", "hyperparameters", "state"), rows(arch))


@singledispatch
def describe(layer: Node) -> tuple[str, str]:
    """Name and hyperparameters of one row."""
    return type(layer).__name__, ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields_of(layer).items()
    )
