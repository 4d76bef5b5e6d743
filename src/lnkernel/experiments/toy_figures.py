"""The figures of the toy experiment: a row for each target, a column for each network."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.toy_cell import Cell
from lnkernel.plot.far_from_data import AMBER, draw_extrapolation

EDGE = 5.0  # of the training interval
NEAR = 100.0  # up to here both axes are linear throughout
ENOUGH = 5  # networks for a confidence band; that of three is ±2.5 standard deviations
BAND = {True: "its 95 % confidence band", False: "from the smallest to the largest"}
ROOM = 1.25  # height of such an axis, over the largest rkhs bound of a row


def draw(folder: Folder, name: str, cells: list[Cell], reach: float) -> Path:
    """Trained networks, limit and bound for |x| ≤ reach; the picture's path."""
    targets = list(dict.fromkeys(cell.target for cell in cells))
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    with new_figure(folder, name, height=1.55 * len(targets) + 0.75) as figure:
        panels = figure.subplots(
            len(targets), len(variants), squeeze=False, sharex=True, sharey="row"
        )
        for cell in cells:
            ax = panels[targets.index(cell.target), variants.index(cell.variant)]
            _panel(ax, cell, reach)
        for ax, variant in zip(panels[0], variants, strict=True):
            ax.set_title(variant.title, color=variant.colour)
        for ax, target in zip(panels[:, 0], targets, strict=True):
            ax.set_ylabel(f"{target}\noutput")
            if reach <= NEAR:
                ax.set_ylim(*_limits([cell for cell in cells if cell.target == target]))
        for ax in panels[:-1].flat:
            ax.set_xlabel("")
        confident = carry_confidence(len(cells[0].outputs))
        figure.legend(
            handles=_handles(reach > NEAR, confident), loc="outside lower center", ncols=3
        )
    return figure_path(folder, name)


def carry_confidence(networks: int) -> bool:
    """Whether so many networks have a confidence band that says something of their mean."""
    return networks >= ENOUGH


def _limits(cells: list[Cell]) -> tuple[float, float]:
    """The limits of an axis that shows the rkhs bounds, or without one what the networks output nearby."""
    finite = [cell.bounds["rkhs"] for cell in cells if np.isfinite(cell.bounds["rkhs"])]
    nearby = [np.abs(cell.outputs[:, np.abs(cell.x) <= NEAR]).max() for cell in cells]
    largest = ROOM * max(finite or nearby)
    return -largest, largest


def _panel(ax: Any, cell: Cell, reach: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    inside = np.abs(cell.x) <= reach
    draw_extrapolation(
        ax,
        cell.x[inside],
        cell.mean[inside],
        cell.bounds,
        (np.linspace(-EDGE, EDGE, len(cell.y)), cell.y),
        outputs=cell.outputs[:, inside],
        confidence=0.95 if carry_confidence(len(cell.outputs)) else None,
        color=cell.variant.colour,
    )
    ax.set_xlim(-reach, reach)
    ax.axvspan(-EDGE, EDGE, color="0.92", lw=0, zorder=0)
    if not np.isfinite(cell.C):
        said = "C = ∞: no bound" if np.isinf(cell.C) else "no bound known"
        ax.text(0.5, 0.03, said, transform=ax.transAxes, ha="center", fontsize=7)
    if reach <= NEAR:
        return
    largest = float(np.abs(cell.y).max())
    ax.set_yscale("symlog", linthresh=largest)
    powers = 10.0 ** np.arange(math.ceil(math.log10(largest) - 0.01), 7)
    ax.yaxis.set_major_locator(FixedLocator([*-powers, 0.0, *powers]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xscale("symlog", linthresh=EDGE)
    ax.set_xticks([-1e4, -1e2, 0, 1e2, 1e4])


def _handles(sharp: bool, confident: bool) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], color="0.3", label="trained networks, mean"),
        Patch(color="0.3", alpha=0.5, lw=0, label=BAND[confident]),
        Line2D([], [], color="black", lw=0.9, ls=(0, (4, 2)), label="infinite width, mean"),
        Line2D([], [], color=AMBER, label="±B(D), rkhs"),
        *[Line2D([], [], color=AMBER, ls=":", label="±B(D), sharp")] * sharp,
        Patch(fc="0.92", ec="0.5", lw=0.6, label="where the data are"),
        Line2D([], [], color="black", marker=".", ls="", label="training points"),
    ]
