"""The figures of `bound_vs_output`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lnkernel.experiments.variants import VARIANTS

if TYPE_CHECKING:
    from benchmarks.bound_vs_output_cell import Row

COLOURS = {variant.norm: variant.colour for variant in VARIANTS}
MARKERS = {1: "o", 2: "s", 9: "^"}


def draw_outputs(rows: list[Row], radii: np.ndarray, path: Path) -> None:
    """The largest |output| and |mean| against |x|, a panel for each target and dimension.

    Of the other axes of the grid the first cell of each panel decides which are shown.
    """
    from matplotlib.figure import Figure

    targets = list(dict.fromkeys(row.cell.target for row in rows))
    dimensions = sorted({row.cell.dimension for row in rows})
    figure = Figure(
        figsize=(3.4 * len(dimensions) + 0.6, 2.5 * len(targets) + 1.1), layout="constrained"
    )
    panels: Any = figure.subplots(
        len(targets), len(dimensions), squeeze=False, sharex=True, sharey=True
    )
    for i, target in enumerate(targets):
        for j, d in enumerate(dimensions):
            here = [r for r in rows if (r.cell.target, r.cell.dimension) == (target, d)]
            _panel(panels[i, j], _alike(here), radii)
            panels[i, j].set_title(f"{target}, {d} input{'s' * (d > 1)}", fontsize=10)
    largest = max(row.sup_output for row in rows)
    bounds = [row.bounds["rkhs"] for row in rows if row.has_bound]
    panels[0, 0].set_ylim(1e-3, max(10 * largest, 3 * max(bounds, default=0.0)))
    for ax in panels[-1]:
        ax.set_xlabel("|x| / longest training input")
    for ax in panels[:, 0]:
        ax.set_ylabel("largest |output|")
    handles = _handles()
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def _alike(rows: list[Row]) -> list[Row]:
    """The rows that differ from the first in nothing but the place of the LayerNorm."""

    def rest(row: Row) -> tuple[int, int, int, str]:
        return row.cell.n, row.cell.hidden, row.cell.width, row.cell.training

    return [row for row in rows if rest(row) == rest(rows[0])] if rows else []


def _panel(ax: Any, rows: list[Row], radii: np.ndarray) -> None:
    for row in rows:
        colour = COLOURS[row.cell.norm]
        ax.plot(radii, row.output, color=colour, lw=1.6)
        ax.plot(radii, row.mean, color=colour, lw=1.2, ls=":")
        if row.has_bound:
            ax.axhline(row.bounds["rkhs"], color=colour, lw=1.0, ls="--")
    ax.axvspan(radii[0], 1.0, color="0.93", lw=0, zorder=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(radii[0], radii[-1])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    places = [Line2D([], [], color=one.colour, label=one.label) for one in VARIANTS]
    styles = {"-": "trained networks", ":": "mean, infinite width", "--": "bound on it (rkhs)"}
    lines = [Line2D([], [], color="0.4", ls=ls, label=name) for ls, name in styles.items()]
    return [*places, *lines, Patch(color="0.93", label="where the data are")]


def draw_bounds(rows: list[Row], path: Path) -> None:
    """The largest |output| of the trained networks against the bound, a point for each cell."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    ax: Any = figure.subplots()
    bounded = [row for row in rows if row.has_bound]
    for d, marker in MARKERS.items():
        for form, colour in (("rkhs", "#0072b2"), ("sharp", "#e69f00")):
            here = [row for row in bounded if row.cell.dimension == d]
            ax.scatter(
                [row.bounds[form] for row in here],
                [row.sup_output for row in here],
                s=26,
                marker=marker,
                color=colour,
                alpha=0.75,
                lw=0,
                label=f"{form}, {d} input{'s' * (d > 1)}",
            )
    values = [v for row in bounded for v in (row.sup_output, row.bounds["sharp"])]
    ends = np.array([min(values, default=1.0) / 2, max(values, default=1.0) * 2])
    ax.plot(ends, ends, color="0.5", lw=1.0, label="output = bound")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("bound on the mean at infinite width")
    ax.set_ylabel("largest |output| of trained networks")
    ax.set_title("With LayerNorm; inputs out to a million times the data", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
