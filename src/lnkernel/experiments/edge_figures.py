"""The figures of the experiment at the edge of stability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.edge_linear import closed_form
from lnkernel.experiments.edge_plan import EdgePlan
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder

COLOURS = ("#2b6cb0", "#2a9d8f", "#c97b12", "#b83280", "#888888", "#444444")
Cells = dict[str, dict[str, np.ndarray]]


def _shown(cell: dict[str, np.ndarray], plan: EdgePlan) -> list[tuple[float, str, str, np.ndarray]]:
    """Fraction, colour, label and healthy starts, of every rate that has one."""
    shown = []
    for fraction, colour in zip(plan.fractions, COLOURS, strict=False):
        healthy = np.flatnonzero(cell[f"{fraction} diverged"] < 0)
        if len(healthy):
            label = f"η = {float(cell[f'{fraction} rate']):g}"
            shown.append((fraction, colour, label, healthy))
    return shown


def draw_runs(folder: Folder, plan: EdgePlan, cells: Cells) -> Path:
    """Sharpness over 2/η against the step; kernel-target alignment against the loss."""
    with new_figure(folder, "runs", height=4.2) as figure:
        axes = figure.subplots(2, len(cells), squeeze=False, sharey="row")
        for column, (name, cell) in zip(axes.T, cells.items(), strict=True):
            for fraction, colour, label, healthy in _shown(cell, plan):
                steps, rate = cell[f"{fraction} steps"], float(cell[f"{fraction} rate"])
                ratio = cell[f"{fraction} sharpness"][healthy] * rate / 2
                loss, kta = (cell[f"{fraction} {key}"][healthy] for key in ("loss", "kta"))
                lines = column[0].plot(steps[1:], ratio[:, 1:].T, color=colour, lw=0.7)
                lines[0].set_label(label)
                for x, y in zip(loss, kta, strict=True):
                    column[1].plot(x, y, color=colour, lw=0.7)
            column[0].axhline(1, color="black", lw=0.6, ls="--")
            column[0].set(
                title=name.replace(", ", "\n"), xlabel="step", xscale="log", ylim=(0, 3.3)
            )
            column[0].legend(loc="upper left", fontsize=6, ncols=2, columnspacing=1.0)
            column[1].set(xlabel="loss (1/2n)Σ", xscale="log", xlim=(0.6, plan.levels[-1] / 2))
            names = [f"{level:g}" if k % 2 == 0 else "" for k, level in enumerate(plan.levels)]
            column[1].set_xticks(plan.levels, names)
            column[1].xaxis.set_minor_formatter("")
            for level in plan.levels:
                column[1].axvline(level, color="0.8", lw=0.5, zorder=0)
        axes[0, 0].set_ylabel("sharpness · η/2")
        axes[1, 0].set_ylabel("kernel-target alignment")
    return figure_path(folder, "runs")


def draw_alignment(folder: Folder, plan: EdgePlan, cells: Cells) -> Path:
    """The cumulative alignment of the leading eigenvectors where the loss is lowest in common."""
    with new_figure(folder, "alignment", height=2.3) as figure:
        axes = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for ax, (name, cell) in zip(axes, cells.items(), strict=True):
            shown = _shown(cell, plan)
            level = lowest_common(cell, plan, [fraction for fraction, *_ in shown])
            begin = np.mean([cell[f"{shown[0][0]} alignment"][i, 0] for i in shown[0][3]], 0)
            numbers = 1 + np.arange(len(begin))
            ax.plot(numbers, np.cumsum(begin), color="black", lw=0.8, ls=":", label="start")
            for fraction, colour, label, healthy in shown:
                below = cell[f"{fraction} loss"] <= level
                reached = [i for i in healthy if below[i].any()]
                if reached:
                    parts = [cell[f"{fraction} alignment"][i, np.argmax(below[i])] for i in reached]
                    ax.plot(numbers, np.cumsum(np.mean(parts, 0)), color=colour, label=label)
            title = name.replace(", ", "\n")
            ax.set(title=f"{title}\nloss {level:g}", xlabel="leading eigenvectors", ylim=(0, 1))
            ax.set_xticks([1, 5, 10, 15, 20])
            ax.legend(loc="best", fontsize=6)
        axes[0].set_ylabel("share of the targets")
    return figure_path(folder, "alignment")


def lowest_common(cell: dict[str, np.ndarray], plan: EdgePlan, fractions: list[float]) -> float:
    """The lowest level that every rate reaches from some start; the first if there is none."""
    common = [
        level
        for level in plan.levels
        if all((cell[f"{fraction} loss"] <= level).any() for fraction in fractions)
    ]
    return min(common, default=plan.levels[0])


def draw_linear(folder: Folder, plan: EdgePlan, found: dict[str, Any]) -> Path:
    """|a|² and alignment of the two-layer linear network against the rate, with the closed form."""
    rates = np.array(plan.linear_rates)
    line = np.linspace(0.8 * rates.min(), 1.05 * rates.max(), 200)
    laws = [closed_form(float(rate)) for rate in line]
    with new_figure(folder, "linear", height=2.2) as figure:
        axes = figure.subplots(1, 3)
        panels = (
            ("squared_head", "squared_head", "|a|²"),
            ("kta", "kta", "kernel-target alignment"),
            ("ratio", "ratio", "sharpness · η/2"),
        )
        for ax, (key, field, label) in zip(axes, panels, strict=True):
            ax.plot(line, [getattr(law, field) for law in laws], color="black", lw=0.8)
            for rate, values in zip(rates, found[key], strict=True):
                ax.plot(np.full(len(values), rate), values, "o", ms=3.5, color=COLOURS[0])
            ax.set(xlabel="learning rate η", ylabel=label)
    return figure_path(folder, "linear")
