"""Words around the tables and figures of the experiment on alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lnkernel.experiments import alignment_figures as figures
from lnkernel.experiments.alignment_plan import RATE, WIDTH, AlignmentPlan, Kind
from lnkernel.experiments.alignment_tables import local_row, main_row, start_row, time_rows
from lnkernel.experiments.alignment_training import Task
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.report import Report

PAPER = "Castiglione, Buckley and Simpson, A closer look at NTK alignment (NeurIPS 2025)"
MAIN = (
    *("depth/ω₀", "networks", "diverged", "ξ at the start", "ξ at the end", "published ξ"),
    *("AUC at the start", "AUC at the end", "published AUC"),
    *("log10 t_crit", "published log10 t_crit", "log10 finer loss", "published log10 loss"),
)


def report_of(
    folder: Folder, plan: AlignmentPlan, tasks: Sequence[Task], found: dict[str, Any]
) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    kinds = list(plan.kinds)
    report = Report(
        "The tangent kernel turns to the edges of a picture",
        "Networks of sines learn pictures from their coordinates. On the way the tangent kernel changes: "
        "its first eigenvector comes to show the picture's edges. When, and how much?",
    )
    if plan.steps < AlignmentPlan(plan.seeds).steps:
        add_quick_notice(report, f"at {plan.side}² pixels for {plan.steps} steps")
    rows = [main_row(kind, found[kind.label]) for kind in kinds]
    folder.write_table("table", rows)
    report.heading("Ours beside the published")
    report.table(
        [{name: row[name] for name in MAIN} for row in rows],
        "Means over pictures and seeds, without networks that diverged; `table.csv` has intervals of 95 %, "
        "over the networks. The critical time is the mean of those of all order parameters that have one.",
    )
    report.figure(
        figures.draw_vectors(folder, plan, tasks, _shown(kinds), found),
        "The first eigenvector |v₀| of the kernel on the pixels, before and after training.",
        "Pictures, their edges, and eigenvectors that show the edges after training.",
    )
    report.heading("Order parameters against time")
    report.figure(
        figures.draw_order(folder, kinds, found),
        "Means over pictures and seeds.",
        "Eight panels: order parameters against the step.",
    )
    times = [row for kind in kinds for row in time_rows(kind, found[kind.label])]
    folder.write_table("times", times)
    report.table(
        times,
        "Critical times: the most prominent peak, the first change of sign, or the middle of a sigmoid in "
        "log10 of the step; how many networks have one; the mean over these with its interval of 95 %.",
    )
    report.heading("Local forms")
    local = [local_row(kind, found[kind.label]) for kind in kinds]
    folder.write_table("local", local)
    report.figure(
        figures.draw_local(folder, kinds, found),
        "What `tangent(network).local(x)` says against what the cosines show, at every measurement. The "
        "local length is divided by √(2 ln 2), as the measured one is.",
        "Local forms against measured values.",
    )
    report.table(
        local,
        "Pearson's correlation along the training of each network, the mean and its interval of 95 %. "
        "Published: 0.83 to 0.985 for ξ, 0.89 to 0.97 for the least cosine, a cosine of 0.98 for v₀.",
    )
    report.heading("At the start: finite and infinite width")
    starts = [start_row(kind, found[kind.label], found[f"{kind.label} start"]) for kind in kinds]
    folder.write_table("start", starts)
    report.figure(
        figures.draw_start(folder, kinds, found),
        "The correlation length before training.",
        "Correlation lengths by width, with the limit.",
    )
    report.table(
        starts,
        "As trained: uniform weights, each a parameter as it is. The others: normal weights of the same "
        f"variances (those at width {WIDTH}) in the parametrization whose kernel has a limit; at infinite "
        "width it is exact, by `ntk`.",
    )
    _add_setting(report, plan)
    return report


def _shown(kinds: Sequence[Kind]) -> list[Kind]:
    """Two kinds for the picture: the first and, if there is, the one that the paper shows most of."""
    second = [kind for kind in kinds if kind == Kind(5, 30)] or list(kinds[-1:])
    return list(dict.fromkeys([kinds[0], second[0]]))


def _add_setting(report: Report, plan: AlignmentPlan) -> None:
    report.heading("Setting, and what is different from the paper")
    report.paragraph(
        f"{PAPER} has thirty pictures of 64² pixels, evaluated at 256², 10,000 steps, widths of 64 and 128 and "
        f"five seeds. Here are {len(plan.scenes)} of scikit-image ({', '.join(plan.scenes)}), of "
        f"{plan.side}² pixels, evaluated at {plan.side * plan.finer}², {plan.steps} steps, a width of {WIDTH} and "
        f"{len(plan.seeds)} seeds. Gradient descent of rate {RATE:g} on half the mean of the squared errors, in "
        f"float32; greys from 0 to 1, coordinates from −1 to 1; edges by Canny at σ = {plan.sigma:g} pixel. The "
        f"correlation length is measured at {plan.scattered} scattered points, since it is shorter than the "
        "distance of two pixels for large ω₀, in 200 bins instead of 50. The loss rate is −d log L/d log t. "
        "Depth counts linear layers, the head among them."
    )
