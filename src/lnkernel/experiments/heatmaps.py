"""The tangent kernel of narrow random networks beside its closed form, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.arch import mlp
from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.experiments.variants import VARIANTS, Variant
from lnkernel.finite import empirical_ntk_over_seeds
from lnkernel.gram.kernel import ntk
from lnkernel.plot import heatmap

REACH, WIDTH = 25.0, 128


@dataclass(frozen=True, eq=False)
class Pair:
    """The kernel of one variant on the grid, measured and in closed form, (n, n) each."""

    variant: Variant
    x: np.ndarray
    empirical: np.ndarray
    exact: np.ndarray

    @property
    def error(self) -> float:
        """The relative distance in the Frobenius norm."""
        return float(np.linalg.norm(self.empirical - self.exact) / np.linalg.norm(self.exact))

    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "LayerNorm": self.variant.name,
            "smallest Θ, closed form": float(self.exact.min()),
            "largest Θ, closed form": float(self.exact.max()),
            "smallest Θ, networks": float(self.empirical.min()),
            "largest Θ, networks": float(self.empirical.max()),
            "largest |difference|": float(np.abs(self.empirical - self.exact).max()),
            "relative distance": self.error,
        }


def compute(
    folder: Folder, seeds: list[int], points: int, variants: Sequence[Variant] = VARIANTS
) -> list[Pair]:
    """The kernels on a grid of so many points a side, from the folder where they are there."""
    return [
        _pair(folder, seeds, points, variant) for variant in folder.each(list(variants), "kernel")
    ]


def _pair(folder: Folder, seeds: list[int], points: int, variant: Variant) -> Pair:
    arch, x = mlp(hidden=2, width=WIDTH, norm=variant.norm), np.linspace(-REACH, REACH, points)

    def make(scratch: Path) -> dict[str, Any]:
        found = empirical_ntk_over_seeds(arch, x[:, None], seeds=seeds, progress=False)
        return {"empirical": found.mean, "exact": ntk(arch)(x[:, None])}

    settings = {"norm": variant.norm, "points": points, "reach": REACH, "width": WIDTH}
    found = folder.piece(f"kernel-{variant.name}", {**settings, "seeds": seeds}, make)
    return Pair(variant, x, found["empirical"], found["exact"])


def conduct(folder: Folder, *, quick: bool, seed: int, seeds: int | None) -> Report:
    """The experiment, as `REGISTRY["heatmaps"].run` calls it."""
    chosen, points = seeds_from(seed, seeds, 5), 51 if quick else 201
    folder.record(seeds=chosen, settings={"points": points, "width": WIDTH, "reach": REACH})
    report = Report(
        "The tangent kernel, measured and in closed form",
        "Θ(x, x') on [-25, 25]² says how much a step of training at x' moves the output at x. Without "
        "LayerNorm it grows without limit away from 0; with a LayerNorm in even one layer it is bounded.",
    )
    add_to(report, folder, chosen, compute(folder, chosen, points))
    return report


def add_to(report: Report, folder: Folder, seeds: list[int], pairs: list[Pair]) -> None:
    """The figure and the table, in the folder and in the report."""
    report.heading("The kernel as a picture")
    report.figure(
        _draw(folder, pairs, len(seeds)),
        f"Left: the mean of the empirical tangent kernels of {len(seeds)} random networks of width "
        f"{WIDTH}. Middle: the kernel of infinitely wide networks. Right: their difference. In a "
        "row the first two panels have one scale of colours, and the third its own; above each panel are its "
        "smallest and its largest value.",
        "Heatmaps of Θ, a row for each place of the LayerNorm.",
    )
    rows = [pair.row() for pair in pairs]
    folder.write_table("kernels", rows)
    report.table(rows, "Over the grid; the distance is that of Frobenius (`kernels.csv`).")


def _draw(folder: Folder, pairs: list[Pair], many: int) -> Path:
    with new_figure(folder, "heatmaps", height=2.0 * len(pairs) + 0.2) as figure:
        panels = figure.subplots(len(pairs), 3, squeeze=False)
        for row, pair in zip(panels, pairs, strict=True):
            difference = pair.empirical - pair.exact
            largest = float(np.abs(difference).max())
            both = np.stack([pair.empirical, pair.exact])  # what is compared has one scale
            scale = {"vmin": float(both.min()), "vmax": float(both.max())}
            _panel(row[0], pair.x, pair.empirical, f"{many} networks of width {WIDTH}", **scale)
            _panel(row[1], pair.x, pair.exact, "closed form", **scale)
            colours = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
            _panel(row[2], pair.x, difference, "difference", **colours)
            row[0].set_ylabel(f"{pair.variant.title}\n\n$x$")
            for ax in row[1:]:
                ax.set_ylabel("")
        for ax in panels[:-1].flat:
            ax.set_xlabel("")
    return figure_path(folder, "heatmaps")


def _panel(ax: Any, x: np.ndarray, matrix: np.ndarray, title: str, **colours: Any) -> None:
    image = heatmap(matrix, x, ax=ax, rasterized=True, **colours)
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)  # as high as a square image
    ax.set_xticks([-REACH, 0, REACH])
    ax.set_yticks([-REACH, 0, REACH])
    ax.set_title(f"{title}\n{_number(matrix.min())} to {_number(matrix.max())}")


def _number(value: float) -> str:
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return text.replace("-", "−")
