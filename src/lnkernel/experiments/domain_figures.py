"""Figures of regression inside and outside of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.domains import Range, Result, summary
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder

LOWEST = -1.0  # R² in the figure of scores; what is below stands at the edge, with its number
OURS: dict[str, Any] = {"fmt": "o", "markersize": 5, "capsize": 2}
THEIRS: dict[str, Any] = {"fmt": "D", "markersize": 3, "capsize": 2, "color": "#999999"}
SIDES = (("inside", "in domain"), ("outside", "out of domain"))


def scores(folder: Folder, name: str, results: Sequence[Result]) -> Path:
    """R² in and out of the domain, ours and the paper's."""
    places = [-float(i) for i in range(len(results))]
    with new_figure(folder, name, height=0.9 + 0.24 * len(results)) as figure:
        for ax, (where, title) in zip(figure.subplots(1, 2, sharey=True), SIDES, strict=True):
            for place, result in zip(places, results, strict=True):
                _score(ax, place, result, where)
            ax.set(title=title, xlabel="R²")
            ax.set_xlim(left=max(ax.get_xlim()[0], LOWEST - 0.1))
            ax.grid(axis="x", linewidth=0.4, alpha=0.5)
            ax.set_yticks(places, [result.method for result in results])
            ax.margins(y=0.08)
        ours = ax.errorbar([], [], xerr=[], color="black", **OURS)
        theirs = ax.errorbar([], [], xerr=[], **THEIRS)
        words = ["ours, ± standard error", "published"]
        figure.legend([ours, theirs], words, loc="outside lower right", ncols=2)
    return figure_path(folder, name)


def _score(ax: Any, place: float, result: Result, where: str) -> None:
    mean, error = summary(result.scores(where))
    shown = max(mean, LOWEST)
    ax.errorbar([shown], [place], xerr=[error or 0.0], color=result.colour, **OURS)
    if mean < LOWEST:
        ax.annotate(f"← {mean:.3g}", (shown, place), (6, 5), textcoords="offset points", fontsize=6)
    if result.published:
        _published(ax, place - 0.28, getattr(result.published, where))


def _published(ax: Any, place: float, given: tuple[float, float | None] | Range) -> None:
    if isinstance(given, Range):  # which has no middle to mark
        ax.hlines(place, given.least, given.largest, color=THEIRS["color"])
    else:
        ax.errorbar([given[0]], [place], xerr=[given[1] or 0.0], **THEIRS)


def histograms(
    folder: Folder, name: str, results: Sequence[Result], quantity: str, columns: int = 3
) -> Path:
    """What each method predicts out of domain, all seeds together, over the true values."""
    truth = results[0].splits[0].outside.y
    span = float(np.ptp(truth))
    edges = np.linspace(truth.min() - span / 2, truth.max() + span / 2, 61)
    lines = -(-len(results) // columns)
    with new_figure(folder, name, height=0.6 + 1.4 * lines) as figure:
        axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for ax, result in zip(axes, results, strict=False):
            made = np.concatenate([one["outside"] for one in result.predictions])
            ax.hist(truth, edges, density=True, color="#bbbbbb", label="true values")
            weights = np.full(len(made), 1 / (len(made) * (edges[1] - edges[0])))
            ax.hist(
                made, edges, weights=weights, histtype="step", color=result.colour, linewidth=1.2
            )
            ax.set_title(result.method.replace(", ", ",\n"), color=result.colour)
            beyond = int(((made < edges[0]) | (made > edges[-1])).sum())
            if beyond:
                note = f"{beyond} of {len(made)} beyond,\nfrom {made.min():.3g} to {made.max():.3g}"
                ax.text(0.98, 0.95, note, transform=ax.transAxes, ha="right", va="top", fontsize=6)
        for ax in axes[len(results) :]:
            ax.set_axis_off()
        for ax in axes[max(len(results) - columns, 0) : len(results)]:
            ax.tick_params(labelbottom=True)  # the lowest of their column
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower right")
        figure.supxlabel(quantity, fontsize=8)
        figure.supylabel("density", fontsize=8)
    return figure_path(folder, name)


def errors_along(
    folder: Folder,
    name: str,
    results: Sequence[Result],
    along: np.ndarray,
    edge: float,
    words: tuple[str, str],
) -> Path:
    """The root mean square error against a quantity that tells the domain; `edge` is its end.

    Args:
        along: the quantity, of each row of the data.
        words: what the quantity and the error are called.
    """
    with new_figure(folder, name, height=3.8) as figure:
        ax = figure.subplots()
        ax.axvline(edge, color="#444444", linewidth=0.7, linestyle=":")
        ax.annotate(
            "end of the training data ", (edge, 1), xycoords=ax.get_xaxis_transform(),
            ha="right", va="top", fontsize=7,
        )  # fmt: skip
        for result in results:
            x, error = _bin_errors(result, along, edge)
            infinite = result.method.startswith("infinite")
            ax.plot(
                x, error, "--" if infinite else "o-", color=result.colour, markersize=2.5,
                label=result.method,
            )  # fmt: skip
        ax.set(xlabel=words[0], ylabel=words[1], yscale="log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        figure.legend(loc="outside lower center", ncols=2)
    return figure_path(folder, name)


def _bin_errors(result: Result, along: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """The root mean square error in bins of equally many rows: 8 inside, 8 outside."""
    centres, errors = list[float](), list[float]()
    for where, many in (("inside", 8), ("outside", 8)):
        parts = [getattr(one, where) for one in result.splits]
        at = np.concatenate([along[part.rows] for part in parts])
        made = np.concatenate([one[where] for one in result.predictions])
        wrong = np.square(made - np.concatenate([part.y for part in parts]))
        for rows in np.array_split(np.argsort(at, kind="stable"), many):
            if len(rows):
                centres.append(float(np.median(at[rows])))
                errors.append(float(np.sqrt(wrong[rows].mean())))
    return np.array(centres), np.array(errors)
