"""Tables and words of the experiment on the law of the loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lnkernel.asymptotics import constant, exponents, fit
from lnkernel.asymptotics.fits import PARTS, student_half_width
from lnkernel.experiments import asymptotics_figures as figures
from lnkernel.experiments.asymptotics_plan import (
    FULL,
    NETWORKS,
    OF_DIRECTIONS,
    PROCESS,
    TRAINED,
    AsymptoticsPlan,
    law_dimension,
)
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import interval
from lnkernel.experiments.report import Report

PAPER = "Velikanov and Yarotsky, Explicit loss asymptotics in the gradient descent training of neural networks"
PAPER += " (NeurIPS 2021)"
TARGETS: dict[str, str | float] = {"indicator": "indicator", "process": PROCESS, "start": "start"}
NAMES = {
    "indicator": "indicator of a ball",
    "process": f"Gaussian process, b = {PROCESS:g}",
    "start": "the network's start",
}
DECADES = 1.5  # of time, the last, in which the losses of networks are compared
RANKS = 150  # eigenvalues, spread evenly along log n, that a fit takes
Row = dict[str, Any]


def report_of(folder: Folder, plan: AsymptoticsPlan, found: dict[str, Any]) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    report = Report(
        "The law of the loss",
        "Eigenvalues of the exact tangent kernel on the cube [-1, 1]^d fall as n^-ν, and the loss of "
        "gradient flow as t^-ξ. Both exponents follow from the kink of the activation, the dimension and "
        "the target. Are they there, and what does LayerNorm do to them?",
    )
    if plan.sides != FULL["sides"]:
        add_quick_notice(report, f"on grids with {plan.sides} points along each axis")
    tables = {
        "spectra": [_spectrum_row(found, name, d) for name, d in plan.cells],
        "losses": [_loss_row(found, *cell, target) for cell in plan.cells for target in TARGETS],
        "constants": [
            _constant_row(found, name) for name, d in plan.cells if _has_constant(name, d)
        ],
        "networks": [
            _network_row(found, name, d, target, plan)
            for name in TRAINED
            for d in plan.points
            for target in ("indicator", "start")
        ],
    }
    for name, rows in tables.items():
        folder.write_table(name, rows)
    report.heading("Eigenvalues")
    report.figure(
        figures.draw_spectra(folder, plan, found),
        "Eigenvalues of the exact kernels. Dashed: the slope of the law.",
        "Falling lines, one panel for each dimension; those of one activation are parallel.",
    )
    report.table(
        tables["spectra"],
        "λ_n ~ n^-ν. Intervals are those of the slopes within the window (`asymptotics.fit`), which was "
        "chosen as the widest in which the slope changes by less than 5 %, or, where there is none, the one in "
        "which it changes least: they do not know how far the law is still away.",
    )
    report.table(
        tables["constants"],
        "On the line, λ_n ~ Λ/n²: `asymptotics.constant` beside the slope of 1/√λ_n in n, in the same "
        "window.",
    )
    report.heading("Loss")
    report.figure(
        figures.draw_losses(folder, plan, found),
        "Loss under gradient flow of the exact kernel, by target. Dashed: the slope of the law.",
        "Falling curves for three targets and three dimensions, with LayerNorm and without.",
    )
    report.table(tables["losses"], "L ~ t^-ξ; windows in units of 1/λ₁.")
    report.heading("Finite networks")
    report.figure(
        figures.draw_networks(folder, plan, found),
        f"Networks of width {plan.width} under gradient descent (points, all seeds) beside what the exact "
        "kernel foretells from the same starts (lines).",
        "Points along the lines of the kernel.",
    )
    report.table(
        tables["networks"],
        "Exponents in the last decade and a half of the training, in units of 1/λ₁, and by how much the "
        "networks' loss is above what the exact kernel foretells from the same starts; intervals over "
        "seeds. So few points have few eigenvalues: compare the two columns, not each with the law.",
    )
    _add_setting(report, plan)
    return report


def _has_constant(name: str, d: int) -> bool:
    return d == 1 and exponents(NETWORKS[name], 1, "start").nu == 2.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Numbers of eigenvalues from 3 on, evenly along their logarithm."""
    return np.unique(np.geomspace(3, len(values), RANKS).astype(int))


def _spectrum_row(found: dict[str, Any], name: str, d: int) -> Row:
    values = found[f"spectrum {name} {d}"]["values"]
    n = _ranks(values)
    best = fit(n.astype(float), values[n - 1])
    law = exponents(NETWORKS[name], law_dimension(name, d), "start")
    return {
        "network": name,
        "d": d,
        "ν, law": law.nu,
        "ν, fitted": best.xi,
        "95 % from": best.interval[0],
        "to": best.interval[1],
        "window from": int(best.window[0]),
        "window to": int(best.window[1]),
        "slope changes by": best.slope_change,
    }


def _loss_row(found: dict[str, Any], name: str, d: int, target: str) -> Row:
    one = found[f"spectrum {name} {d}"]
    unit = one["values"][0]
    best = fit(one["t"] * unit, one[target])
    law = exponents(NETWORKS[name], law_dimension(name, d), TARGETS[target])
    known = not (name == OF_DIRECTIONS and target != "start")
    return {
        "network": name,
        "d": d,
        "target": NAMES[target],
        "ξ, law": law.xi if known else None,
        "ξ, fitted": best.xi,
        "95 % from": best.interval[0],
        "to": best.interval[1],
        "window from": best.window[0],
        "window to": best.window[1],
        "slope changes by": best.slope_change,
    }


def _constant_row(found: dict[str, Any], name: str) -> Row:
    """Λ by the slope of 1/√λ_n, which the first eigenvalues shift and do not turn."""
    values = found[f"spectrum {name} 1"]["values"]
    ranks = _ranks(values)
    low, high = fit(ranks.astype(float), values[ranks - 1]).window
    n = np.arange(int(low), int(high) + 1)
    roots = values[n - 1] ** -0.5
    whole = np.polyfit(n, roots, 1)[0]
    parts = [np.polyfit(n[i], roots[i], 1)[0] for i in np.array_split(np.arange(len(n)), PARTS)]
    half = student_half_width(parts)
    law = constant(NETWORKS[name])
    return {
        "network": name,
        "Λ, law": law,
        "Λ, measured": whole**-2,
        "95 % from": (whole + half) ** -2,
        "to": (whole - half) ** -2 if whole > half else math.inf,
        "window from": int(low),
        "window to": int(high),
        "measured/law": whole**-2 / law,
    }


def _network_row(
    found: dict[str, Any], name: str, d: int, target: str, plan: AsymptoticsPlan
) -> Row:
    one = found[f"training {name} {d}"]
    t = one["t"] * one["values"][0]
    window = (t[-1] / 10**DECADES, t[-1])
    inside = t >= window[0]
    curves = {kind: one[f"{target}, {kind}"] for kind in ("kernel", "networks")}
    each = {kind: [fit(t, curve, window).xi for curve in many] for kind, many in curves.items()}
    exact, mean = interval(each["kernel"]), interval(each["networks"])
    ratio = np.log(curves["networks"] / curves["kernel"])[:, inside].mean(1)
    above = interval(ratio.tolist())
    return {
        "network": name,
        "d": d,
        "target": NAMES[target],
        "points": plan.points[d] ** d,
        "seeds": len(plan.seeds),
        "ξ, kernel": exact[0],
        "kernel, 95 % from": exact[1],
        "kernel, to": exact[2],
        "ξ, networks": mean[0],
        "95 % from": mean[1],
        "to": mean[2],
        "window from": float(window[0]),
        "window to": float(window[1]),
        "loss, networks/kernel": math.exp(above[0]),
        "ratio, 95 % from": math.exp(above[1]),
        "ratio, to": math.exp(above[2]),
    }


def _add_setting(report: Report, plan: AsymptoticsPlan) -> None:
    report.heading("Setting, and what LayerNorm does")
    report.paragraph(
        f"{PAPER} has shallow networks and MNIST; here the inputs are uniform on a cube, where the law is "
        f"exact. The kernel is that of {', '.join(f'{side}^{d}' for d, side in plan.sides.items())} "
        "points, which its symmetry under signs and orders of the coordinates takes apart into small "
        "blocks; of its eigenvalues the first sixteenth count. The indicator is that of a ball off the "
        "centre. For processes the loss is the mean over their draws, in closed form. Finite networks "
        "take the steps of gradient descent at the rate 1/λ₁."
    )
    report.paragraph(
        "LayerNorm between layers, before the activation or behind it, changes Λ and leaves ν and ξ: it "
        "multiplies the kernel by smooth functions of single inputs. It changes ν where it takes the "
        f"length of x away: `{OF_DIRECTIONS}` sees directions alone, whose dimension is d - 1. There an "
        "indicator that depends on the length cannot be learned at all, so that no law is given for it. "
        "Norms in groups of g features bend by themselves, as a kink of the degree (g - 2)/2 does: groups "
        "of 4 have ReLU's exponents without any activation."
    )
