"""Three functions on a line: what trained networks output far outside the data, beside the theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

from lnkernel.arch import Elementwise, Node, mlp
from lnkernel.errors import InputError
from lnkernel.experiments import toy_figures
from lnkernel.experiments.activations import DEFAULT, find_activation, key_of, shown
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.limit import limit_of
from lnkernel.experiments.report import Report
from lnkernel.experiments.toy_cell import Cell
from lnkernel.experiments.toy_text import remarks, summary, title
from lnkernel.experiments.variants import INITIALISATION, VARIANTS, Variant
from lnkernel.finite import train_ensemble

POINTS = np.linspace(-5, 5, 100)
TARGETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sinusoid": np.sin,
    "line": lambda x: x,
    "parabola": lambda x: x * x,
}
NEAR, FAR = 50.0, 1e4
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class ToyPlan:
    """The size of the experiment."""

    seeds: list[int]
    steps: int = 3000
    width: int = 128
    hidden: int = 2
    variants: Sequence[Variant] = VARIANTS
    activation: Elementwise = DEFAULT

    @property
    def settings(self) -> dict[str, Any]:
        """What the trained networks depend on, beside target and variant."""
        return {
            "steps": self.steps,
            "width": self.width,
            "hidden": self.hidden,
            "activation": key_of(self.activation),
            "parameterization": "standard",
            **INITIALISATION,
            "optimizer": f"adam({LEARNING_RATE})",
            "batch": "all points",
        }


def points() -> np.ndarray:
    """Where the networks are looked at: densely to ±50, in a geometric progression to ±10,000."""
    far = np.geomspace(POINTS[-1], FAR, 120)
    return np.unique(np.concatenate([np.linspace(-NEAR, NEAR, 401), far, -far]))


def compute(folder: Folder, plan: ToyPlan) -> list[Cell]:
    """All cells, from the folder's pieces where they are there."""
    wanted = [(variant, target) for variant in plan.variants for target in TARGETS]
    folder.record(settings=plan.settings, seeds=plan.seeds)
    return [
        _cell(folder, plan, variant, target) for variant, target in folder.each(wanted, "piece")
    ]


def _cell(folder: Folder, plan: ToyPlan, variant: Variant, target: str) -> Cell:
    arch = mlp(hidden=plan.hidden, width=plan.width, norm=variant.norm, activation=plan.activation)
    x, y = points(), TARGETS[target](POINTS)
    where = {
        "target": target,
        "norm": variant.norm,
        "hidden": plan.hidden,
        "data": fingerprint(POINTS, y, x),
    }
    if plan.activation != DEFAULT:  # results of ReLU networks keep the names that they always had
        where["activation"] = key_of(plan.activation)
    name = f"{target}-{variant.name}"
    trained = folder.piece(
        f"{name}-trained",
        {**where, **plan.settings, "seeds": plan.seeds},
        lambda scratch: _train(arch, y, x, plan),
    )
    limit = folder.piece(
        f"{name}-limit", where, lambda scratch: _limit(arch, y, x, plan.activation)
    )
    return Cell(
        target,
        variant,
        y,
        x,
        outputs=trained["outputs"],
        rmse=float(trained["rmse"].mean()),
        mean=limit["mean"],
        bounds={form: float(limit[form]) for form in ("rkhs", "sharp")},
        C=float(limit["C"]),
        lambda_min=float(limit["lambda_min"]),
        noise=float(limit.get("noise", 0.0)),
        no_bound=str(limit.get("no_bound", "")),
    )


def _train(arch: Node, y: np.ndarray, x: np.ndarray, plan: ToyPlan) -> dict[str, Any]:
    ensemble = train_ensemble(
        arch,
        POINTS[:, None],
        y,
        seeds=plan.seeds,
        optimizer=optax.adam(LEARNING_RATE),
        steps=plan.steps,
        parameterization="standard",
        progress=False,  # a few seconds for each: the bar of the pieces is enough
    )
    outputs = np.asarray(ensemble(x[:, None]), np.float64)[..., 0]
    rmse = np.sqrt(2 * np.asarray(ensemble.loss, np.float64) / len(POINTS))
    return {"outputs": outputs, "rmse": rmse}


def _limit(arch: Node, y: np.ndarray, x: np.ndarray, activation: Elementwise) -> dict[str, Any]:
    found = limit_of(arch, POINTS[:, None], y, x[:, None])
    kept = {
        "mean": found.mean,
        **{form: found.bounds[form] for form in ("rkhs", "sharp")},
        "C": found.C,
        "lambda_min": found.lambda_min,
    }
    if activation == DEFAULT:
        return kept
    return kept | {"noise": found.noise, "no_bound": found.no_bound}


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, activation: str = "relu"
) -> Report:
    """The experiment, as `REGISTRY["toy"].run` calls it."""
    chosen = find_activation(activation)
    small, full = (
        ToyPlan(seeds_from(seed, seeds, 3), steps=500, activation=chosen),
        ToyPlan(seeds_from(seed, seeds, 5), activation=chosen),
    )
    plan = small if quick else full
    if len(plan.seeds) < 2:
        remedy = "A confidence band takes two networks: --seeds 2"
        raise InputError("seeds", "2 or more", str(len(plan.seeds)), remedy)
    cells = compute(folder, plan)
    report = Report(title(chosen), summary(chosen))
    add_to(report, folder, plan, cells)
    return report


def add_to(report: Report, folder: Folder, plan: ToyPlan, cells: list[Cell]) -> None:
    """Figures and table, in the folder and in the report."""
    report.heading("Trained networks and their limit")
    many, names = len(plan.seeds), ", ".join(TARGETS)
    confident = toy_figures.carry_confidence(many)
    band = "its 95 % confidence band" if confident else "their smallest and largest outputs"
    report.figure(
        toy_figures.draw(folder, "extrapolation", cells, NEAR),
        f"The mean of {many} trained networks with {band}, the mean of infinitely "
        "wide ones, and the bound ±B(D) on the latter in its tightest form, `rkhs`. The data are where "
        "the background is grey.",
        f"Panels for {names} and each place of the LayerNorm, x from -50 to 50.",
    )
    report.paragraph(
        "Trained networks and theory are not the same line, and need not be: the networks have width "
        f"{plan.width} and standard parametrisation, and {plan.steps} steps of Adam leave them short of convergence, "
        "while the theory is that of infinite width, of the NTK parametrisation, and of gradient descent that has "
        "converged. What they share is what LayerNorm does far from the data."
    )
    report.figure(
        toy_figures.draw(folder, "extrapolation-far", cells, FAR),
        "The same out to |x| = 10,000: the axes are linear as far as the data and max|y| go, and "
        "logarithmic beyond. `sharp` is the form of the bound that is made of C, λ_min and max|y| alone.",
        f"Panels for {names} and each place of the LayerNorm, x from -10,000 to 10,000.",
    )
    rows = [cell.row() for cell in cells]
    folder.write_table("table", rows)
    few = [{name: row[name] for name in row if name not in ("C", "λ_min")} for row in rows]
    report.table(few, "Largest values over all points with |x| ≤ 10,000 (`table.csv`).")
    for remark in remarks(cells):
        report.paragraph(remark)
    bounded = [cell for cell in cells if math.isfinite(cell.C)]
    below, of = sum(cell.within for cell in bounded), sum(len(cell.outputs) for cell in bounded)
    report.paragraph(
        "The bound is a theorem about the mean of infinitely wide networks. Of the single networks "
        f"of finite width that have LayerNorm and were trained by Adam, {below} of {of} stay within "
        "its form `rkhs` here, which is observed and not proved."
    )
    report.heading("Setting")
    report.paragraph(
        f"{shown(plan.activation)} networks with {plan.hidden} hidden layers of width {plan.width} in "
        "standard parametrisation, He weights and biases N(0, 0.01), without training of LayerNorm's "
        f"scale and bias; full batch, Adam at {LEARNING_RATE:g}, {plan.steps} steps, {many} seeds. The "
        "infinitely wide networks are trained to convergence by gradient descent: closed form, no training."
    )
