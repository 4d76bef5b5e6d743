"""The figures of the experiment on alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.alignment_plan import AlignmentPlan, Kind
from lnkernel.experiments.alignment_start import WIDTHS
from lnkernel.experiments.alignment_tables import healthy
from lnkernel.experiments.alignment_training import Task
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder

COLOURS = {15: "#7a9cc6", 30: "#2b6cb0", 60: "#c97b12", 90: "#a23b3b"}  # by frequency
STYLES = {3: ":", 4: "--", 5: "-"}  # by depth
PANELS = (
    ("loss", "loss", "log"),
    ("gradient_variance", "gradient variance σ²", "log"),
    ("lambda_max", "λ₀", "log"),
    ("auc", "AUC of |v₀|", "linear"),
    ("cka", "CKA with the picture", "linear"),
    ("mag_ma", "MAG-Ma", "log"),
    ("length", "correlation length ξ", "log"),
    ("min_cosine", "least cosine", "linear"),
)
Cells = Mapping[str, Mapping[str, Any]]


def draw_order(folder: Folder, kinds: Sequence[Kind], found: Cells) -> Path:
    """The order parameters against the step: means over pictures and seeds."""
    with new_figure(folder, "order", height=3.6) as figure:
        axes = figure.subplots(2, 4, sharex=True)
        for ax, (name, title, scale) in zip(axes.ravel(), PANELS, strict=True):
            for kind in kinds:
                one = healthy(found[kind.label])
                if not len(one[name]):
                    continue
                after = one["steps"] > 0
                ax.plot(
                    one["steps"][after],
                    one[name][:, after].mean(0),
                    color=COLOURS.get(kind.omega, "black"),
                    ls=STYLES.get(kind.depth, "-"),
                    label=kind.label,
                )
            ax.set(title=title, xscale="log", yscale=scale)
            ax.yaxis.set_tick_params(which="minor", labelsize="x-small")
        for ax in axes[1]:
            ax.set_xlabel("step")
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=6,
            title="depth/ω₀",
        )
    return figure_path(folder, "order")


def draw_vectors(
    folder: Folder, plan: AlignmentPlan, tasks: Sequence[Task], kinds: Sequence[Kind], found: Cells
) -> Path:
    """The pictures, their edges, and the first eigenvector before and after training (first seed)."""
    columns = 2 + 2 * len(kinds)
    with new_figure(folder, "vectors", height=1.05 * len(tasks) + 0.3) as figure:
        axes = np.reshape(figure.subplots(len(tasks), columns), (len(tasks), columns))
        for row, task in zip(axes, tasks, strict=True):
            place = list(tasks).index(task) * len(plan.seeds)
            shown = [("picture", task.picture), ("edges", task.edges)]
            for kind in kinds:
                vectors = found[kind.label]["principal"][place]
                for when, v in (("start", vectors[0]), ("end", vectors[-1])):
                    shown.append((f"{kind.label}, {when}", v.reshape(task.picture.shape)))
            for ax, (title, values) in zip(row, shown, strict=True):
                ax.imshow(values, cmap="gray" if title in ("picture", "edges") else "magma")
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set_visible(False)
                if row[0] is axes[0, 0]:
                    ax.set_title(title, fontsize=7)
    return figure_path(folder, "vectors")


def draw_local(folder: Folder, kinds: Sequence[Kind], found: Cells) -> Path:
    """The local forms against what they stand for, at every measurement of every network."""
    half = np.sqrt(2 * np.log(2))
    pairs = (
        ("length", "local_length", "correlation length", half),
        ("min_cosine", "local_min_cosine", "least cosine", 1.0),
    )
    with new_figure(folder, "local", height=2.8, width=5.6) as figure:
        axes = figure.subplots(1, 2)
        for ax, (true, form, title, factor) in zip(axes, pairs, strict=True):
            for kind in kinds:
                one = found[kind.label]
                ax.plot(
                    one[true].ravel(),
                    one[form].ravel() / factor,
                    ls="",
                    ms=2,
                    alpha=0.5,
                    color=COLOURS.get(kind.omega, "black"),
                    marker={3: ".", 4: "x", 5: "+"}.get(kind.depth, "."),
                    label=kind.label,
                )
            ends = [*ax.get_xlim(), *ax.get_ylim()]
            ax.plot([min(ends), max(ends)], [min(ends), max(ends)], color="black", lw=0.5)
            ax.set(title=title, xlabel="measured", ylabel="by the local form")
        axes[0].set(xscale="log", yscale="log")
        axes[0].xaxis.set_minor_formatter("")
        figure.legend(
            *axes[1].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=6,
            title="depth/ω₀",
        )
    return figure_path(folder, "local")


def draw_start(folder: Folder, kinds: Sequence[Kind], found: Cells) -> Path:
    """The correlation length before training, by width."""
    with new_figure(folder, "start", height=2.4, width=4.5) as figure:
        ax = figure.subplots()
        names = ["as trained", *(f"width {width}" for width in WIDTHS), "infinite"]
        for kind in kinds:
            start = found[f"{kind.label} start"]
            trained = healthy(found[kind.label])["length"][:, 0]
            lengths = [trained.mean() if len(trained) else np.nan]
            lengths += [*start["finite"][..., 1].mean(1), start["infinite"][1]]
            colour, style = COLOURS.get(kind.omega, "black"), STYLES.get(kind.depth, "-")
            ax.plot(names[:1], lengths[:1], "o", color=colour, ms=3)
            ax.plot(names[1:], lengths[1:], "o", ls=style, color=colour, ms=3, label=kind.label)
        ax.set(ylabel="correlation length ξ", yscale="log")
        figure.legend(loc="outside right center", title="depth/ω₀")
    return figure_path(folder, "start")
