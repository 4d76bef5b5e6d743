"""The mean of the trained network along the data's principal direction, and its picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.bounds import Bound
from lnkernel.bounds.digits import at_most
from lnkernel.cli.training_data import CsvData
from lnkernel.gp.posterior import Posterior

NEAREST, FARTHEST, PER_DECADE = 1e-2, 1e6, 24
BLUE, GREEN, ORANGE, GREY = "#0072b2", "#009e73", "#d55e00", "#666666"


@dataclass(frozen=True)
class Ray:
    """Points centroid ± distance·spread·direction, and the mean and its bound there.

    `mean` and `at` have two rows, one for each of the two ways; both are in the target's units,
    and without its centre.
    """

    direction: np.ndarray  # (d,), of length 1
    spread: float  # the standard deviation of the inputs along it
    reach: float  # how far the data reach along it, in spreads
    distances: np.ndarray  # (m,), in spreads
    mean: np.ndarray  # (2, m)
    at: np.ndarray  # (2, m)

    @property
    def largest(self) -> float:
        """|mean| where it is largest."""
        return float(np.abs(self.mean).max())

    @property
    def where(self) -> float:
        """The distance of the largest |mean|, in spreads."""
        return float(self.distances[np.abs(self.mean).max(axis=0).argmax()])

    @property
    def end(self) -> float:
        """|mean| at the farthest points."""
        return float(np.abs(self.mean[:, -1]).max())


def along_principal_direction(post: Posterior, data: CsvData, b: Bound) -> Ray:
    """The mean on a ray from a hundredth of the data's spread out to a million times it."""
    centroid = data.X.mean(axis=0)
    _, singular, rows = np.linalg.svd(data.X - centroid, full_matrices=False)
    direction = rows[0] * np.sign(rows[0][np.abs(rows[0]).argmax()])
    spread = float(singular[0]) / math.sqrt(len(data.X)) or 1.0  # 1 where there is one point only
    reach = float(np.abs((data.X - centroid) @ direction).max()) / spread
    decades = math.log10(FARTHEST / NEAREST)
    distances = np.geomspace(NEAREST, FARTHEST, round(decades * PER_DECADE) + 1)
    steps = np.stack([distances, -distances]).reshape(-1, 1) * spread
    points = centroid + steps * direction
    mean = np.asarray(post.mean(points))
    at = np.asarray(b.at(points))
    shape = (2, len(distances))
    return Ray(
        direction=direction,
        spread=spread,
        reach=reach,
        distances=distances,
        mean=data.unit * mean.reshape(shape),
        at=data.unit * at.reshape(shape),
    )


def draw(ray: Ray, data: CsvData, b: Bound, path: Path) -> None:
    """|mean| over the distance, log by log, with the bound there and the bound for every x."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    ax: Any = figure.subplots()
    ax.axvspan(NEAREST, max(ray.reach, NEAREST), color="0.92", lw=0, label="where the data are")
    ax.plot(
        ray.distances, ray.at.max(axis=0), color=GREY, lw=4, alpha=0.35, label="bound at the point"
    )
    for row, (style, colour, sign) in enumerate((("-", BLUE, "+"), ("--", GREEN, "−"))):
        ax.plot(
            ray.distances, np.abs(ray.mean[row]), style, color=colour, label=f"mean, {sign} way"
        )
    rkhs = data.unit * b.rkhs
    if math.isfinite(rkhs) and rkhs > 0:
        ax.axhline(rkhs, color=ORANGE, ls="--", label=f"bound for every x: {at_most(rkhs, 4)}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(NEAREST, FARTHEST)
    top = max(float(ray.at.max()), rkhs if math.isfinite(rkhs) else 0.0, 1e-300)
    usual = data.unit * b.max_abs_y or top
    ax.set_ylim(usual / 100, 4 * max(top, usual))  # where the mean passes 0 its logarithm dives
    ax.set_xlabel("distance from the centre of the inputs, in standard deviations")
    name = data.target if len(data.target) <= 30 else f"{data.target[:29]}…"
    from_centre = f" − {data.centre:.4g}" if data.centre else ""
    ax.set_ylabel(f"|expected {name}{from_centre}|")
    ax.set_title("Along the principal direction of the inputs", loc="left", fontsize=11)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
