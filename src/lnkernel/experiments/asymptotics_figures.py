"""The figures of the experiment on the law of the loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.asymptotics import exponents
from lnkernel.experiments.asymptotics_plan import (
    NETWORKS,
    PROCESS,
    TRAINED,
    AsymptoticsPlan,
    law_dimension,
)
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder

COLOURS = dict(
    zip(
        NETWORKS,
        ("black", "#2b6cb0", "#63b3ed", "#805ad5", "#c53030", "#888888", "#c97b12", "#38a169"),
        strict=True,
    )
)
TARGETS: dict[str, tuple[str, str | float]] = {
    "indicator": ("#c53030", "indicator"),
    "process": ("#c97b12", PROCESS),
    "start": ("#2b6cb0", "start"),
}
Found = dict[str, Any]


def draw_spectra(folder: Folder, plan: AsymptoticsPlan, found: Found) -> Path:
    """Eigenvalues against their number, one panel for each dimension."""
    with new_figure(folder, "spectra", height=3.0) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(plan.sides)))
        for ax, d in zip(axes, plan.sides, strict=True):
            for name in plan.networks:
                if (name, d) not in plan.cells:
                    continue
                values = found[f"spectrum {name} {d}"]["values"]
                n = np.arange(1, len(values) + 1)
                ax.plot(n, values / values[0], color=COLOURS[name], lw=1, label=name)
                nu = exponents(NETWORKS[name], law_dimension(name, d), "start").nu
                end = values[-1] / values[0] * (n[-1] / n[len(n) // 8 :]) ** nu
                ax.plot(n[len(n) // 8 :], end * 0.6, "--", color=COLOURS[name], lw=0.7)
            ax.set(title=f"d = {d}", xlabel="n", xscale="log", yscale="log")
        axes[0].set_ylabel("eigenvalue λₙ/λ₁")
        _legend_below(figure, axes[-1])
    return figure_path(folder, "spectra")


def draw_losses(folder: Folder, plan: AsymptoticsPlan, found: Found) -> Path:
    """Losses of three targets against time, without LayerNorm and with it."""
    with new_figure(folder, "losses", height=2.7) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(plan.sides)))
        for ax, d in zip(axes, plan.sides, strict=True):
            for target, (colour, degree) in TARGETS.items():
                for name, style in zip(TRAINED, ("-", ":"), strict=True):
                    one = found[f"spectrum {name} {d}"]
                    t = one["t"] * one["values"][0]
                    curve = one[target] / one[target][0]
                    ax.plot(t, curve, style, color=colour, label=f"{target}: {name}")
                xi = exponents(NETWORKS["ReLU"], d, degree).xi
                law = curve[-1] * (t / t[-1]) ** -xi
                ax.plot(t[len(t) // 3 :], 0.6 * law[len(t) // 3 :], "--", color=colour, lw=0.7)
            ax.set(title=f"d = {d}", xlabel="time t λ₁", xscale="log", yscale="log")
        axes[0].set_ylabel("loss, from 1")
        _legend_below(figure, axes[0])
    return figure_path(folder, "losses")


def draw_networks(folder: Folder, plan: AsymptoticsPlan, found: Found) -> Path:
    """Losses of trained networks beside those of the exact kernel at the same points."""
    with new_figure(folder, "networks", height=4.2) as figure:
        axes = figure.subplots(len(TRAINED), len(plan.points), squeeze=False, sharex="col")
        for row, name in zip(axes, TRAINED, strict=True):
            for ax, d in zip(row, plan.points, strict=True):
                one = found[f"training {name} {d}"]
                t = one["t"] * one["values"][0]
                for target in ("indicator", "start"):
                    colour = TARGETS[target][0]
                    ax.plot(t, one[f"{target}, kernel"].T, color=colour, lw=0.8)
                    for i, curve in enumerate(one[f"{target}, networks"]):
                        label = target if i == 0 else None
                        ax.plot(t[::4], curve[::4], ".", ms=2.5, color=colour, label=label)
                ax.set(title=f"{name}, d = {d}", xscale="log", yscale="log")
                ax.tick_params(which="minor", left=False)
            row[0].set_ylabel("loss")
        for ax in axes[-1]:
            ax.set_xlabel("time t λ₁")
        axes[0, 0].legend(loc="lower left")
    return figure_path(folder, "networks")


def _legend_below(figure: Any, ax: Any) -> None:
    """The legend of one panel, which serves all, below them."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
