"""The figures of the experiment on images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.images_plan import ImageNetwork, ImagesPlan
from lnkernel.experiments.images_results import NetworkResult

COLOURS = {"dense": "#555555", "CNN": "#d55e00", "pooled CNN": "#0072b2"}


def draw_accuracy(
    folder: Folder, sides: Sequence[int], groups: Sequence[Sequence[NetworkResult]]
) -> Path:
    """Test accuracy against the number of training images, infinite width and trained networks."""
    with new_figure(folder, "accuracy", height=3.1) as figure:
        axes = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
        for ax, side, group in zip(axes, sides, groups, strict=True):
            for place, one in enumerate(group):
                look = _look(one.network)
                ax.plot(one.sizes, one.accuracies, label=one.network.name, **look)
                _draw_twins(ax, one, place)
            ax.axhline(0.1, color="#aaaaaa", lw=0.6)
            ax.set(title=f"{side} × {side} pixels", xlabel="training images", xscale="log")
            sizes = group[0].sizes
            ax.set_xticks(sizes, [str(n) for n in sizes])
            ax.minorticks_off()
        axes[0].set_ylabel("test accuracy")
        _add_legend(figure, axes, marks="□ ■ networks of finite width")
    return figure_path(folder, "accuracy")


def _draw_twins(ax: Any, one: NetworkResult, place: int) -> None:
    """Mean and range of the trained networks, one beside the other to the right of the curves."""
    x = one.sizes[-1] * 1.14 * 1.06**place
    colour = COLOURS[one.network.kind]
    ax.plot([x, x], [one.twins.min(), one.twins.max()], color=colour, lw=0.8)
    face = "white" if one.network.norm is None else colour
    ax.plot(x, one.twins.mean(), "s", ms=4, mfc=face, mec=colour, mew=0.8)


def draw_contrast(
    folder: Folder,
    plan: ImagesPlan,
    sides: Sequence[int],
    groups: Sequence[Sequence[NetworkResult]],
) -> Path:
    """The largest output against contrast; infinite width with its bound above, trained networks below."""
    with new_figure(folder, "contrast", height=4.6) as figure:
        axes = figure.subplots(2, len(groups), squeeze=False, sharey=True, sharex=True)
        for column, side, group, of in zip(axes.T, sides, groups, plan.groups, strict=True):
            for one in group:
                look = _look(one.network)
                column[0].plot(plan.contrasts, one.largest, label=one.network.name, **look)
                column[1].plot(plan.contrasts, one.twins_largest.mean(0), **look)
                if math.isfinite(one.C):
                    column[0].axhline(one.bound, color=look["color"], lw=0.9, ls=":")
            column[0].set(title=f"{side} × {side} pixels, infinite width")
            column[1].set(title=f"{side} × {side} pixels, width {of.width}", xlabel="contrast")
            column[0].set(xscale="log", yscale="log")
        for ax in axes[:, 0]:
            ax.set_ylabel("largest |output|")
        _add_legend(figure, axes[0], marks="⋯ bound B(D), of the same colour")
    return figure_path(folder, "contrast")


def draw_pictures(
    folder: Folder, plan: ImagesPlan, data: Sequence[Any], groups: Sequence[Sequence[NetworkResult]]
) -> Path:
    """A few test images at some contrasts, as they are cut off by a screen, and Θ(x, x) beside C."""
    count = 3
    contrasts = [plan.contrasts[place] for place in (0, len(plan.contrasts) // 2, -1)]
    with new_figure(folder, "pictures", height=2.6) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
        axes = left.subplots(count, len(contrasts), squeeze=False)
        low, high = np.percentile(data[0].test_x, (1, 99))
        for number, row in enumerate(axes):
            for ax, contrast in zip(row, contrasts, strict=True):
                image = (contrast * data[0].test_x[number] - low) / (high - low)
                shown = np.clip(image, 0, 1)
                ax.imshow(shown if shown.shape[-1] == 3 else shown[..., 0], cmap="gray")
                ax.set_axis_off()
                if number == 0:
                    ax.set_title(f"contrast {contrast:g}")
        ax = right.subplots()
        for one in groups[-1]:
            ax.plot(plan.contrasts, one.diagonal, **_look(one.network))
            if math.isfinite(one.C):
                ax.axhline(one.C, color=COLOURS[one.network.kind], lw=0.9, ls=":")
        side = data[-1].side
        ax.set(xscale="log", yscale="log", xlabel="contrast", ylabel="largest Θ(x, x)")
        ax.set_title(f"{side} × {side} pixels; dotted: C")
    return figure_path(folder, "pictures")


def _look(network: ImageNetwork) -> dict[str, Any]:
    """Colours tell the kinds apart, and networks without a norm are dashed."""
    return {
        "color": COLOURS[network.kind],
        "ls": "--" if network.norm is None else "-",
        "marker": ".",
        "ms": 4,
    }


def _add_legend(figure: Any, axes: Sequence[Any], marks: str) -> None:
    """One legend for all panels, from the one with most networks, with a word on the other marks."""
    handles, labels = max((ax.get_legend_handles_labels() for ax in axes), key=lambda h: len(h[0]))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, title=marks, title_fontsize=7
    )
