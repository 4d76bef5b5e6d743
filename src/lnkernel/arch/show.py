"""An architecture as a table, for notebooks."""

from __future__ import annotations

import html

from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.flow import Kind, State, walk
from lnkernel.arch.node import Node, fields_of
from lnkernel.errors import ArchitectureError


def rows(arch: Node) -> list[tuple[str, str, str, str]]:
    """(position, layer, hyperparameters, state behind it) of every layer."""
    try:
        steps = list(walk(arch, State(Kind.INPUT)))
    except ArchitectureError:  # a block that cannot start from the raw input
        steps = list(walk(arch, State(Kind.ANY)))
    return [(here, *_describe(layer), state.kind.value) for here, layer, state in steps]


def html_table(arch: Node) -> str:
    head = "".join(f"<th>{title}</th>" for title in ("", "layer", "hyperparameters", "state"))
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows(arch)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _describe(layer: Node) -> tuple[str, str]:
    if isinstance(layer, (Parallel, Serial)):
        return "sum of the branches", ""
    return type(layer).__name__, ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields_of(layer).items()
    )
