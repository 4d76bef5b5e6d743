"""An architecture as a table, with the recursion of its kernel, for notebooks."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from lnkernel.arch.flow import Kind, Place, rows_of, walk
from lnkernel.arch.node import Node, fields_of
from lnkernel.arch.norms import AXES, LayerNorm
from lnkernel.arch.recursion import write_out
from lnkernel.errors import ArchitectureError
from lnkernel.page import html_table

LONGEST = 60  # lines of the recursion


def rows(arch: Node) -> list[tuple[str, str, str, str]]:
    """(position, layer, hyperparameters, state behind it) of every layer."""
    try:
        steps = list(rows_of(arch))
    except ArchitectureError:  # a block that cannot start from the raw input
        steps = list(walk(arch, Place(Kind.ANY)))
    return [(here, *describe(layer), place.kind.value) for here, layer, place in steps]


def html_of(arch: Node) -> str:
    """The table, and the kernel's recursion below it, where notebooks set formulas."""
    return html_table(("", "layer", "hyperparameters", "state"), rows(arch), _recursion(arch))


def _recursion(arch: Node) -> list[str]:
    """The recursion as a note below the table; none for a block that is no whole network, or a long one."""
    try:
        formula = write_out(arch)
    except ArchitectureError:
        return []
    if formula.count("\n") > LONGEST:
        return ["The recursion of its kernel is long: print(lnkernel.latex(arch)) writes it out."]
    return [f"$${formula}$$"]


@singledispatch
def describe(layer: Node) -> tuple[str, str]:
    """Name and hyperparameters of one row."""
    return type(layer).__name__, _listed(fields_of(layer))


@describe.register
def _(layer: LayerNorm) -> tuple[str, str]:
    """Without the axes where they are the usual ones, which only images tell apart."""
    fields = fields_of(layer)
    if layer.axes == AXES[0]:
        del fields["axes"]
    return type(layer).__name__, _listed(fields)


def _listed(fields: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields.items()
    )
