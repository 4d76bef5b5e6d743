"""The figures of the fine-tuning experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.finetuning_choices import condition
from lnkernel.experiments.folder import Folder

BLUE, AMBER, GREEN, RED, GREY = "#2b6cb0", "#c97b12", "#2f855a", "#b83280", "#666666"
COLOURS = (BLUE, AMBER, GREEN, RED, GREY)
UNIT = r"strength $\lambda/\lambda_{\max}(K)$"


class Gaps:
    """The rows of one kind of network over all seeds: values by part as (seeds, strengths)."""

    def __init__(self, pieces: Sequence[dict[str, np.ndarray]]):
        self.pieces = pieces
        self.parts = list(dict.fromkeys(pieces[0]["gap part"].tolist()))

    def of(self, part: str, name: str) -> np.ndarray:
        """A quantity of `finetuning_gap.compare`."""
        return np.array([one[f"gap {name}"][one["gap part"] == part] for one in self.pieces])


def draw_gaps(folder: Folder, gaps: dict[str, Gaps]) -> Path:
    """The distance of the two minima, with its bounds, and of the outputs."""
    wanted = ("all parameters", "LoRA")
    columns = [(kind, part) for kind in gaps for part in wanted if part in gaps[kind].parts]
    with new_figure(folder, "gap", height=4.2) as figure:
        axes = figure.subplots(2, len(columns), sharex=True, sharey="row")
        for (kind, part), (top, bottom) in zip(columns, axes.T, strict=True):
            found, x = gaps[kind], gaps[kind].of(part, "relative")[0]
            _band(top, x, found.of(part, "gap"), BLUE)
            proved = found.of(part, "gap, proved before training").mean(0)
            top.plot(x, found.of(part, "gap, proved after training").mean(0), color=AMBER, ls="--")
            top.plot(x, found.of(part, "ball").mean(0), color=GREY, lw=0.8, ls="-.")
            if np.isfinite(proved).all():
                top.plot(x, proved, color=RED, ls=":")
            _band(bottom, x, _relative(found, part), BLUE)
            top.set(title=f"{kind}, {part}", xscale="log", yscale="log")
            bottom.set(xlabel=UNIT, yscale="log")
        axes[0, 0].set_ylabel("|θ* − θ̄|, parameters")
        axes[1, 0].set_ylabel("mean |f − f̄| / mean |f|")
        _legend(figure)
    return figure_path(folder, "gap")


def draw_layers(folder: Folder, gaps: dict[str, Gaps]) -> Path:
    """The gap of the outputs, by what is trained."""
    with new_figure(folder, "layers", height=2.6) as figure:
        axes = figure.subplots(1, len(gaps), sharey=True)
        for ax, (kind, found) in zip(np.atleast_1d(axes), gaps.items(), strict=True):
            colours = ("black", *COLOURS)
            for part, colour in zip(found.parts, colours, strict=False):
                values = _relative(found, part)
                if values.max() < 1e-6:  # the last layer: the network is linear in it
                    continue
                ax.plot(found.of(part, "relative")[0], values.mean(0), color=colour, label=part)
            ax.set(title=kind, xlabel=UNIT, xscale="log", yscale="log")
            ax.legend()
        np.atleast_1d(axes)[0].set_ylabel("mean |f − f̄| / mean |f|")
    return figure_path(folder, "layers")


def draw_choices(
    folder: Folder,
    pieces: dict[str, list[dict[str, np.ndarray]]],
    correlations: dict[tuple[str, str, str], tuple[float, float, float]],
) -> Path:
    """Loss and accuracy of every choice of layers against its condition number at the start."""
    columns = [(measure, rule) for rule in ("adam", "descent") for measure in ("loss", "accuracy")]
    with new_figure(folder, "choices", height=0.3 + 1.8 * len(pieces)) as figure:
        axes = figure.subplots(len(pieces), len(columns))
        for row, (kind, of_seeds) in zip(np.atleast_2d(axes), pieces.items(), strict=True):
            for ax, (measure, rule) in zip(row, columns, strict=True):
                for number, one in enumerate(of_seeds):
                    kappa = condition(_choice(one))
                    shown = np.where(np.isfinite(kappa), kappa, np.nan)
                    values = one[f"choice {measure}, {rule}"]
                    ax.plot(shown, values, ".", ms=4, alpha=0.7, color=f"C{number}")
                ax.set(xscale="log", yscale="log" if measure == "loss" else "linear")
                mean, low, high = correlations[kind, measure, rule]
                said = f"rank correlation {mean:+.2f}\n[{low:+.2f}, {high:+.2f}]"
                ax.set_title(said.replace("-", "−"), fontsize=7)
                name = "Adam" if rule == "adam" else "descent"
                ax.set_ylabel(f"{kind}: {measure}, {name}", fontsize=7)
                _few_ticks(ax.xaxis)
                if measure == "loss":
                    _few_ticks(ax.yaxis)
                if kind == list(pieces)[-1]:
                    ax.set_xlabel("condition number")
        figure.supxlabel("a point is a choice of layers, a colour one seed", fontsize=7)
    return figure_path(folder, "choices")


def draw_weyl(folder: Folder, pieces: dict[str, list[dict[str, np.ndarray]]]) -> Path:
    """The true ends of the spectrum beside Weyl's bounds, for choices of several layers."""
    names = (r"$\lambda_{\min}$", r"$\lambda_{\max}$", "condition number")
    with new_figure(folder, "weyl", height=2.4) as figure:
        axes = figure.subplots(1, 3)
        for (kind, of_seeds), colour in zip(pieces.items(), (BLUE, AMBER), strict=False):
            for number, one in enumerate(of_seeds):
                several = one["choice chosen"].sum(1) > 1
                least, most = one["choice least"][several], one["choice most"][several]
                lower, _, _, upper = one["choice weyl"][several].T
                pairs = (least, lower), (most, upper), (most / least, upper / lower)
                for ax, (true, bound) in zip(axes, pairs, strict=True):
                    label = kind if number == 0 else None
                    ax.plot(true, bound, ".", ms=4, alpha=0.6, color=colour, label=label)
        for ax, name, side in zip(axes, names, ("lower", "upper", "upper"), strict=True):
            ends = np.array([ax.get_xlim(), ax.get_ylim()])
            low = max(ends[:, 0].min(), 1e-12) if name == names[0] else 1e-1
            line = [max(low, 1e-6), ends[:, 1].max()]
            ax.plot(line, line, color="0.6", lw=0.7, zorder=0)
            ax.set(xscale="log", yscale="log", xlabel=f"true {name}", ylabel=f"{side} bound")
            _frame(ax)
            for axis in (ax.xaxis, ax.yaxis):
                _few_ticks(axis)
        axes[0].legend()
    return figure_path(folder, "weyl")


def draw_rules(folder: Folder, of_seeds: list[dict[str, np.ndarray]], rules: Sequence[str]) -> Path:
    """The risk of mini-batches while it is trained, in means over an epoch or so."""
    risks = np.array([one["rule risk"] for one in of_seeds])[..., :-1]
    window = max(1, risks.shape[-1] // 40)
    labels = {"none": "no ridge term", "ridge": "ridge term", "selective": "selective ridge term"}
    with new_figure(folder, "rules", height=2.3, width=4.2) as figure:
        ax = figure.subplots()
        for rule, colour, values in zip(
            rules, (GREY, BLUE, AMBER), np.moveaxis(risks, 1, 0), strict=True
        ):
            count = values.shape[1] // window
            means = values[:, : count * window].reshape(len(values), count, window).mean(2)
            style = {"color": colour, "label": labels[rule], "ls": "--" if rule == "none" else "-"}
            ax.plot(window * (0.5 + np.arange(count)), means.mean(0), **style)
        ax.set(xlabel="step", ylabel="risk ½ Σ|f − y|²", yscale="log")
        ax.legend()
    return figure_path(folder, "rules")


def _choice(one: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    prefix = "choice "
    return {name.removeprefix(prefix): v for name, v in one.items() if name.startswith(prefix)}


def _relative(found: Gaps, part: str) -> np.ndarray:
    return found.of(part, "gap of outputs") / found.of(part, "outputs")


def _band(ax: Any, x: np.ndarray, values: np.ndarray, colour: str) -> None:
    ax.plot(x, values.mean(0), color=colour, marker=".", ms=4)
    ax.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.2, lw=0)


def _frame(ax: Any) -> None:
    """Limits around the points, with the diagonal cut."""
    points = [line.get_xydata() for line in ax.lines if line.get_linestyle() == "None"]
    values = np.concatenate(points)
    low, high = values.min(0) / 1.5, values.max(0) * 1.5
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _few_ticks(axis: Any) -> None:
    """Labels between the powers of ten where the axis has fewer than two of these."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    low, high = axis.get_view_interval()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    if ((low <= powers) & (powers <= high)).sum() > 1:
        return
    subs = (1, 2, 5) if high / low < 10 else (1, 3)
    ticks = [sub * power for power in powers for sub in subs if low <= sub * power <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, marker=".", label="measured (mean and range of the seeds)"),
        Line2D([], [], color=AMBER, ls="--", label="bound, proved after training"),
        Line2D([], [], color=RED, ls=":", label="bound, proved before training"),
        Line2D([], [], color=GREY, ls="-.", lw=0.8, label="ball √(2R₀/λ) around the start"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
