"""The tables and the page of the experiment at the edge of stability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lnkernel.experiments import edge_figures as figures
from lnkernel.experiments.edge_linear import closed_form
from lnkernel.experiments.edge_plan import EdgePlan
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import interval, share_interval
from lnkernel.experiments.report import Report

PAPER = "Jiang, Cohen and Li (NeurIPS 2025)"
Row = dict[str, Any]
Ends = Callable[[list[float]], tuple[float, float, float]]


def report_of(folder: Folder, plan: EdgePlan, found: dict[str, Any], origin: str) -> Report:
    """The page, with its tables and figures written beside it."""
    cells = {name: cell for name, cell in found.items() if name != "linear"}
    rates = [rate_row(name, cell, f, plan) for name, cell in cells.items() for f in plan.fractions]
    pairs = [row for name, cell in cells.items() for row in pair_rows(name, cell, plan)]
    linear = linear_rows(plan, found["linear"])
    folder.write_table("rates", rates)
    folder.write_table("linear", linear)
    report = Report(
        "The tangent kernel at the edge of stability",
        "Full-batch gradient descent with several learning rates η from the same starts, compared where "
        "they have the same loss: the sharpness λ_max(K)/n beside 2/η, and how the kernel turns to the "
        f"targets (after {PAPER}).",
    )
    report.figure(
        figures.draw_runs(folder, plan, cells),
        "Above: the sharpness in units of 2/η, which gradient descent holds near 1. Below: "
        "kernel-target alignment against the loss, which falls from left to right. Lines are single starts.",
        "Sharpness against steps and alignment against loss, for every rate.",
    )
    report.table(
        rates,
        f"Every rate. The ratio is λ_max η/2n from the loss {plan.levels[0]:g} on down to {plan.levels[-1]:g}, "
        "or as far as it fell; alignment is where the loss is for the first time at the level named, the lowest that "
        "every start reaches with two rates at least.",
    )
    if pairs:
        folder.write_table("pairs", pairs)
        report.table(
            pairs,
            "Kernel-target alignment at the same loss: the largest rate that did not diverge less the "
            "smallest, start by start.",
        )
    report.figure(
        figures.draw_alignment(folder, plan, cells),
        "What part of the targets lies in the span of the leading eigenvectors, at the lowest level that "
        "the rate has reached; the mean over the starts.",
        "Cumulative alignment against the number of eigenvectors, for every rate.",
    )
    report.heading("The two-layer linear network")
    report.figure(
        figures.draw_linear(folder, plan, found["linear"]),
        "Its closed form (lines) and what gradient descent finds (points, one for each start).",
        "Squared length of the head, and alignment, against the rate.",
    )
    report.table(linear, "At the end of training: means over the starts, beside the closed form.")
    _add_setting(report, plan, origin)
    return report


def first_at(cell: dict[str, np.ndarray], fraction: float, level: float) -> list[int | None]:
    """The first measurement of every start with a loss of at most this, or None."""
    below = cell[f"{fraction} loss"] <= level
    return [int(np.argmax(row)) if row.any() else None for row in below]


def compared_rates(cell: dict[str, np.ndarray], plan: EdgePlan, level: float) -> list[float]:
    """The rates, as fractions, with which every start reaches this loss."""
    healthy = [f for f in plan.fractions if (cell[f"{f} diverged"] < 0).all()]
    return [f for f in healthy if None not in first_at(cell, f, level)]


def compared_level(cell: dict[str, np.ndarray], plan: EdgePlan) -> float:
    """The lowest level that every start reaches with two rates at least; else the first."""
    common = [level for level in plan.levels if len(compared_rates(cell, plan, level)) > 1]
    return min(common, default=plan.levels[0])


def rate_row(name: str, cell: dict[str, np.ndarray], fraction: float, plan: EdgePlan) -> Row:
    """One rate: what became of it, the ratio to the edge, and alignment at the level of `compared_level`."""
    rate, diverged = float(cell[f"{fraction} rate"]), cell[f"{fraction} diverged"]
    ratio = cell[f"{fraction} sharpness"] * rate / 2
    begins, ends = (first_at(cell, fraction, plan.levels[i]) for i in (0, -1))
    level = compared_level(cell, plan)
    places = first_at(cell, fraction, level)
    medians, largest, kta, lead = [], [], [], []
    for i, (begin, end, place) in enumerate(zip(begins, ends, places, strict=True)):
        if begin is None:
            continue
        window = ratio[i, begin : None if end is None else end + 1]
        medians.append(float(np.median(window)))
        largest.append(float(window.max()))
        if place is not None:
            kta.append(float(cell[f"{fraction} kta"][i, place]))
            lead.append(float(cell[f"{fraction} alignment"][i, place, :5].sum()))
    steps = [int(cell[f"{fraction} steps"][place]) for place in places if place is not None]
    row: Row = {"data and network": name, "rate": rate, "starts": len(diverged)}
    row["diverged"] = int((diverged >= 0).sum())
    row["at step"] = None if (diverged < 0).all() else int(diverged[diverged >= 0].max())
    row |= {"loss": level, "reached the loss": len(kta)}
    row["steps"] = float(np.mean(steps)) if steps else None
    row |= _columns("median ratio", medians) | {"largest": max(largest, default=None)}
    row["KTA at the start"] = _mean(cell[f"{fraction} kta"][diverged < 0, 0])
    shares = {"KTA": kta, "first five eigenvectors": lead}  # between 0 and 1
    for key, values in shares.items():
        row |= _columns(key, values, share_interval)
    return row


def pair_rows(name: str, cell: dict[str, np.ndarray], plan: EdgePlan) -> list[Row]:
    """The difference in alignment between the largest and the smallest rate at every level."""
    rows = []
    for level in plan.levels:
        reached = compared_rates(cell, plan, level)
        if len(reached) < 2:
            continue
        low, high = min(reached), max(reached)
        values = {
            f: [cell[f"{f} kta"][i, place] for i, place in enumerate(first_at(cell, f, level))]
            for f in (low, high)
        }
        losses = [
            float(
                np.mean([cell[f"{f} loss"][i, p] for i, p in enumerate(first_at(cell, f, level))])
            )
            for f in (low, high)
        ]
        rows.append(
            {
                "data and network": name,
                "level": level,
                "small rate": float(cell[f"{low} rate"]),
                "loss there": losses[0],
                "KTA there": float(np.mean(values[low])),
                "large rate": float(cell[f"{high} rate"]),
                "its loss": losses[1],
                "its KTA": float(np.mean(values[high])),
                **_columns("difference", (np.array(values[high]) - values[low]).tolist()),
            }
        )
    return rows


def linear_rows(plan: EdgePlan, found: dict[str, np.ndarray]) -> list[Row]:
    """Every rate of the linear network beside the closed form."""
    rows = []
    for i, rate in enumerate(plan.linear_rates):
        law, healthy = closed_form(rate), found["diverged"][i] < 0
        rows.append(
            {
                "rate": rate,
                "starts": len(plan.seeds),
                "diverged": int((~healthy).sum()),
                "largest loss": float(found["loss"][i, healthy].max()) if healthy.any() else None,
                "λ_max η/2n": _mean(found["ratio"][i, healthy]),
                "|a|²": _mean(found["squared_head"][i, healthy]),
                "|a|² in closed form": law.squared_head,
                "its cap": law.cap,
                "KTA": _mean(found["kta"][i, healthy]),
                "KTA in closed form": law.kta,
            }
        )
    return rows


def _columns(name: str, values: list[float], ends_of: Ends = interval) -> Row:
    """The mean and the ends of its interval, None where there is none."""
    ends = ends_of(values) if len(values) > 1 else (*values[:1], *[np.nan] * 3)[:3]
    known = [None if np.isnan(end) else end for end in ends]
    return dict(zip((name, f"{name}, 95 % from", f"{name}, to"), known, strict=True))


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


def _add_setting(report: Report, plan: EdgePlan, origin: str) -> None:
    pictures = (
        f" CIFAR-10 ({origin}): classes 0 to 4 against 5 to 9, means of 4 × 4 pixels."
        if origin
        else ""
    )
    report.heading("Setting")
    report.paragraph(
        f"Loss (1/2n)Σ(f − y)² over {plan.points} points with targets ±1, gradient descent on all of them "
        f"in float32. Two hidden layers of {plan.width}, tanh, standard parametrization, with LayerNorm "
        "behind both linear maps or without. scikit-learn's digits: even against odd, pixels from 0 to 1."
        f"{pictures} Rates are {', '.join(f'{f:g}' for f in plan.fractions)} times 2/sharpness at the "
        "start (mean over the starts), rounded to two digits. A start whose loss leaves all bounds is "
        "counted as diverged, and is in no mean. λ_max(K)/n is the largest eigenvalue of the Gauss–Newton "
        "part of the Hessian; the rest of the Hessian vanishes with the residuals. The paper's data and "
        "widths are not known to us, so its claims are compared and not its numbers."
    )
