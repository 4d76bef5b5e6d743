"""An architecture as a table, for notebooks."""

from __future__ import annotations

import html
from functools import singledispatch

from lnkernel.arch.flow import Kind, Place, rows_of, walk
from lnkernel.arch.node import Node, fields_of
from lnkernel.errors import ArchitectureError


def rows(arch: Node) -> list[tuple[str, str, str, str]]:
    """(position, layer, hyperparameters, state behind it) of every layer."""
    try:
        steps = list(rows_of(arch))
    except ArchitectureError:  # a block that cannot start from the raw input
        steps = list(walk(arch, Place(Kind.ANY)))
    return [(here, *describe(layer), place.kind.value) for here, layer, place in steps]


def html_table(arch: Node) -> str:
    head = "".join(f"<th>{title}</th>" for title in ("", "layer", "hyperparameters", "state"))
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows(arch)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@singledispatch
def describe(layer: Node) -> tuple[str, str]:
    """Name and hyperparameters of one row."""
    return type(layer).__name__, ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields_of(layer).items()
    )
