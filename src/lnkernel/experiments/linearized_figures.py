"""The figures of the experiment on linearized networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder

BLUE, AMBER, GREY = "#2b6cb0", "#c97b12", "#888888"
Cells = dict[tuple[str, str], list[dict[str, np.ndarray]]]  # by network and data: one for each seed
INDEX = "index of the eigenfunction"


def draw_accuracy(folder: Folder, cells: Cells) -> Path:
    """Test accuracy of the network and of its linearization against the index of the task."""
    with new_figure(folder, "accuracy", height=2.5) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(cells), sharey=True))
        for ax, ((network, data), of_seeds) in zip(axes, cells.items(), strict=True):
            x = of_seeds[0]["tasks"][:-1]
            for key, colour, label in (
                ("network", BLUE, "network"),
                ("linear", AMBER, "its linearization"),
            ):
                values = np.array([one[key][:-1] for one in of_seeds])
                ax.plot(x, values.mean(0), ".-", color=colour, label=label)
                ax.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.2, lw=0)
            share = np.mean([one["majority"][:-1] for one in of_seeds], 0)
            ax.plot(x, share, color=GREY, lw=0.8, ls="--", label="the larger class")
            ax.set(title=f"{network}, {data}", xlabel=INDEX, xscale="log")
        axes[0].set_ylabel("test accuracy")
        _legend_below(figure, axes[0])
    return figure_path(folder, "accuracy")


def draw_alignment(folder: Folder, cells: Cells) -> Path:
    """Alignment of the kernel with the labels of each task, before and after training."""
    with new_figure(folder, "alignment", height=2.3) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(cells), sharey=True))
        for ax, ((network, data), of_seeds) in zip(axes, cells.items(), strict=True):
            x = of_seeds[0]["tasks"][:-1]
            for key, colour in (("before", GREY), ("after", BLUE)):
                values = np.array([one[key][:-1] for one in of_seeds])
                ax.plot(x, values.mean(0), ".-", color=colour, label=f"{key} training")
                ax.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.2, lw=0)
            ax.set(title=f"{network}, {data}", xlabel=INDEX, xscale="log", yscale="log")
        axes[0].set_ylabel("alignment yᵀKy/|y|²")
        axes[0].legend(loc="lower left")
    return figure_path(folder, "alignment")


def draw_stretch(folder: Folder, cells: Cells) -> Path:
    """uᵀKu of every eigenvector u of the kernel before training, with the kernel after it."""
    lowest: list[float] = []  # eigenvalue of each panel that is not lost in rounding
    with new_figure(folder, "stretch", height=2.6) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(cells), sharey=True))
        for ax, ((network, data), of_seeds) in zip(axes, cells.items(), strict=True):
            one = of_seeds[0]
            x = 1 + np.arange(len(one["values"]))
            ax.plot(
                x, np.maximum(one["values"], 1e-12), color="black", lw=1, label="before training"
            )
            for number, place in enumerate(one["again tasks"].tolist()):
                task = int(one["tasks"][place])
                label = "after training on the labels" if task < 0 else f"on eigenfunction {task}"
                colour = BLUE if task < 0 else AMBER
                ax.plot(
                    x, one["stretch"][number], color=colour, lw=0.7, label=label, zorder=-number
                )
            positive = one["values"][one["values"] > 1e-6 * one["values"][0]]
            ax.set(title=f"{network}, {data}", xlabel="eigenvector", xscale="log", yscale="log")
            lowest.append(float(positive[-1]))
        axes[0].set_ylabel("uᵀKu")
        axes[0].set_ylim(bottom=min(lowest) / 2)
        _legend_below(figure, axes[0])
    return figure_path(folder, "stretch")


def draw_anisotropy(folder: Folder, found: dict[str, dict[str, np.ndarray]]) -> Path:
    """The first directions as pictures, and all values."""
    shown = min(len(one["directions"]) for one in found.values())
    with new_figure(folder, "anisotropy", height=0.95 * len(found) + 0.3) as figure:
        grid = figure.add_gridspec(len(found), shown + 3)
        for row, (name, one) in enumerate(found.items()):
            for column in range(shown):
                ax = figure.add_subplot(grid[row, column])
                picture = one["directions"][column]
                most = np.abs(picture).max()
                ax.imshow(picture, cmap="RdBu", vmin=-most, vmax=most)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set_visible(False)
                if row == 0:
                    ax.set_title(str(column + 1), fontsize=7)
                if column == 0:
                    ax.set_ylabel(name)
            ax = figure.add_subplot(grid[row, shown:])
            values = one["values"]
            kept = values[values > 1e-14 * values[0]]
            ax.plot(1 + np.arange(len(kept)), kept / kept[0], color=BLUE)
            ax.set(xscale="log", yscale="log", ylabel="value/first")
            if row == len(found) - 1:
                ax.set_xlabel("direction")
    return figure_path(folder, "anisotropy")


def _legend_below(figure: Any, ax: Any) -> None:
    """The legend of one panel, which serves all, below them."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
