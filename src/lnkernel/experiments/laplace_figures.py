"""The figures of the experiment on Laplace's approximation: a column for each task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.domains import summary
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.laplace_scores import SCORES, Results, label
from lnkernel.experiments.laplace_task import RANK
from lnkernel.experiments.laplace_trial import EXACT, MAP, SCALED, STOPPED, ella

# of Okabe and Ito's palette, which the colour-blind can tell apart
COLOURS = {MAP: "#d55e00", SCALED: "#e69f00", EXACT: "#009e73"}
STYLES = {MAP: "-", SCALED: "--", EXACT: "-."}
BLUE, BLACK = "#0072b2", "#000000"
RARE = 0.01  # share of the predictions below which a bin says nothing about their accuracy


def draw_scores(folder: Folder, results: Sequence[Results]) -> Path:
    """NLL, ECE and accuracy of ELLA against its rank, beside the other methods as lines."""
    with new_figure(folder, "scores", height=4.6) as figure:
        panels = figure.subplots(len(SCORES), len(results), squeeze=False, sharex="col")
        for column, found in zip(panels.T, results, strict=True):
            column[0].set_title(found.task.title)
            for ax, score in zip(column, SCORES, strict=True):
                _against_rank(ax, found, score)
            column[-1].set_xlabel("rank of ELLA")
        for ax, score in zip(panels[:, 0], SCORES, strict=True):
            ax.set_ylabel(score)
        figure.legend(handles=_handles(results), loc="outside lower center", ncols=3)
    return figure_path(folder, "scores")


def _against_rank(ax: Any, found: Results, score: str) -> None:
    from matplotlib.ticker import NullLocator

    ranks = found.task.ranks
    for method in COLOURS:
        if method in found.methods:
            mean, half = summary(found.scores(method, score))
            ax.axhline(mean, color=COLOURS[method], ls=STYLES[method])
            if half is not None:
                ax.axhspan(mean - half, mean + half, color=COLOURS[method], alpha=0.1, lw=0)
    pairs = [summary(found.scores(ella(rank), score)) for rank in ranks]
    means, halves = np.array([(mean, half or 0.0) for mean, half in pairs]).T
    ax.errorbar(ranks, means, halves, color=BLUE, marker="o", ms=3, capsize=2)
    mean, half = summary(found.scores(STOPPED, score))
    ax.errorbar([RANK * 1.08], [mean], [half or 0.0], color=BLACK, marker="D", ms=3, capsize=2)
    ax.set_xscale("log")
    ax.set_xticks(ranks, [str(rank) for rank in ranks])
    ax.xaxis.set_minor_locator(NullLocator())


def _handles(results: Sequence[Results]) -> list[Any]:
    from matplotlib.lines import Line2D

    there = {method for found in results for method in found.methods}
    lines = [
        Line2D([], [], color=COLOURS[method], ls=STYLES[method], label=label(method))
        for method in COLOURS
        if method in there
    ]
    ours = Line2D([], [], color=BLUE, marker="o", ms=3, label="ELLA, τ by validation")
    stopped = Line2D([], [], color=BLACK, marker="D", ms=3, lw=0, label=label(STOPPED))
    return [*lines, ours, stopped]


def draw_stopping(folder: Folder, results: Sequence[Results]) -> Path:
    """The loss on validation data, as ELLA takes in more training inputs."""
    with new_figure(folder, "stopping", height=2.8) as figure:
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, found in zip(panels, results, strict=True):
            trial = found.trials[0]
            names = ("τ", "10 τ", "100 τ")
            for losses, name, ls in zip(trial["losses"], names, ("-", "--", ":"), strict=True):
                ax.plot(trial["checks"], losses, ls, color=BLUE, label=name)
                least = int(np.argmin(losses))
                ax.plot(trial["checks"][least], losses[least], "D", color=BLACK, ms=4)
            low, high = trial["losses"].min(), trial["losses"][:, len(trial["checks"]) // 3 :].max()
            ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
            ax.set(title=found.task.title, xlabel="training inputs taken in")
        panels[0].set_ylabel("NLL on validation data")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            title="prior precision",
            loc="outside lower center",
            ncols=3,
        )
    return figure_path(folder, "stopping")


def draw_reliability(folder: Folder, results: Sequence[Results]) -> Path:
    """How right predictions are against how sure they are, and how many there are of each."""
    with new_figure(folder, "reliability", height=3.0) as figure:
        panels = figure.subplots(
            2, len(results), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 1)
        )
        for (ax, below), found in zip(panels.T, results, strict=True):
            ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
            for method, colour in ((MAP, COLOURS[MAP]), (ella(RANK), BLUE)):
                got = found.reliability(method)
                known = got.share >= RARE
                ax.plot(
                    got.confidence[known],
                    got.accuracy[known],
                    "o-",
                    ms=2.5,
                    color=colour,
                    label=label(method),
                )
                edges = np.linspace(0, 1, len(got.share) + 1)
                below.stairs(got.share, edges, color=colour)
            ax.set_title(found.task.title)
            below.set(xlabel="confidence", xlim=(0, 1))
        panels[0, 0].set_ylabel("accuracy")
        panels[1, 0].set_ylabel("share")
        panels[0, 0].legend(loc="upper left")
    return figure_path(folder, "reliability")
