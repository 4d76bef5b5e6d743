"""The main job in a minute: what one LayerNorm does far from the data, in theory and in practice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.arch import mlp
from lnkernel.experiments import heatmaps, toy
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.report import Report
from lnkernel.experiments.toy_cell import Cell
from lnkernel.experiments.variants import VARIANTS
from lnkernel.gram.kernel import ntk
from lnkernel.tables import Rows

NORMS = (0.0, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
WITHOUT, WITH = (variant for variant in VARIANTS if variant.name in ("none", "first"))


@dataclass(frozen=True)
class Size:
    """How much of the experiments is run."""

    toy: toy.ToyPlan = field(
        default_factory=lambda: toy.ToyPlan([0, 1, 2], steps=1000, variants=(WITHOUT, WITH))
    )
    kernel_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    kernel_points: int = 101


@dataclass(frozen=True)
class Shown:
    """The page, and the rows of its tables: `diagonals`, `outputs` and `kernels`."""

    page: Path
    tables: dict[str, Rows]


def run(out: Path, size: Size | None = None, *, seed: int = 0, progress: bool = True) -> Shown:
    """Print both diagonals and what trained networks do; write the page.

    `seed` is added to the seeds of all networks.
    """
    size = Size() if size is None else size
    plan = replace(size.toy, seeds=[seed + each for each in size.toy.seeds])
    seeds = [seed + each for each in size.kernel_seeds]
    folder = Folder(out, "demo", quick=True, progress=progress)
    report = Report(
        "One LayerNorm is enough",
        "Far from its training data a network can output anything. With a LayerNorm in even one layer "
        "it cannot: the kernel Θ of the infinitely wide network is bounded, and so is its expected "
        "output. Below is the theory, in closed form, and beside it networks of width "
        f"{plan.width}, trained on 100 points.",
    )
    folder.record(kernel_seeds=seeds)
    diagonals = _diagonals(report)
    cells = toy.compute(folder, plan)
    _outputs(cells)
    toy.add_to(report, folder, plan, cells)
    pairs = heatmaps.compute(folder, seeds, size.kernel_points, plan.variants)
    heatmaps.add_to(report, folder, seeds, pairs)
    page = folder.write("report.html", report.html(folder.finish()))
    print(f"\nFigures, tables and a page with all of it: {page}")
    tables = {
        "diagonals": diagonals,
        "outputs": [cell.row() for cell in cells],
        "kernels": [pair.row() for pair in pairs],
    }
    return Shown(page, tables)


def _diagonals(report: Report) -> Rows:
    x = np.asarray(NORMS)[:, None]
    without, with_norm = (
        ntk(mlp(hidden=2, norm=variant.norm)).diagonal(x) for variant in (WITHOUT, WITH)
    )
    print("Θ(x, x) of an infinitely wide ReLU network with two hidden layers\n")
    print(f"{'|x|':>9}  {'no LayerNorm':>16}  {'one LayerNorm':>16}")
    for norm, unbounded, bounded in zip(NORMS, without, with_norm, strict=True):
        print(f"{norm:9.0e}  {unbounded:16.10g}  {bounded:16.10g}")
    print(
        "\nWithout LayerNorm it grows like |x|²; with one LayerNorm it never exceeds the value above."
    )
    report.heading("The kernel far out")
    rows = [
        {"|x|": norm, "no LayerNorm": float(unbounded), "one LayerNorm": float(bounded)}
        for norm, unbounded, bounded in zip(NORMS, without, with_norm, strict=True)
    ]
    report.table(rows, "Θ(x, x) of the infinitely wide ReLU network with two hidden layers.")
    return rows


def _outputs(cells: list[Cell]) -> None:
    """The largest outputs of the trained networks, target by target."""
    found: dict[tuple[str, str], dict[str, Any]] = {
        (cell.target, cell.variant.name): cell.row() for cell in cells
    }
    print(f"\nLargest |output| of trained networks, out to |x| = {toy.FAR:.0e}\n")
    print(f"{'target':>9}  {'no LayerNorm':>16}  {'one LayerNorm':>16}  {'bound on the mean':>18}")
    for target in toy.TARGETS:
        without, with_norm = (found[target, variant.name] for variant in (WITHOUT, WITH))
        largest = f"{without['largest |output|']:16.4g}  {with_norm['largest |output|']:16.4g}"
        print(f"{target:>9}  {largest}  {with_norm['B(D), rkhs']:18.4g}")
