"""One place of the grid of `bound_vs_output`: its data, its bound, its trained networks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

import lnkernel as lnk
from lnkernel.bounds import FORMS

TARGETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sinusoid": lambda u: np.sin(2 * u),
    "line": lambda u: u,
    "parabola": lambda u: u * u,
}
NEAREST, FARTHEST = 1e-2, 1e6  # in units of the longest training input
RADII = np.geomspace(NEAREST, FARTHEST, 41)
LAST = RADII >= 1e3 * (1 - 1e-9)  # the three decades over which growth is measured
GROWTH = 0.01
HALVINGS = 6  # of the learning rate, where narrow networks diverge


@dataclass(frozen=True)
class Cell:
    """One place of the grid."""

    target: str
    dimension: int
    n: int
    hidden: int
    norm: str | None
    width: int
    training: str  # "practice" or "theory"


@dataclass(frozen=True)
class Settings:
    """What all cells have in common."""

    seeds: int
    steps: int
    directions: int
    seed: int


@dataclass(frozen=True)
class Row:
    """What was found in one cell. Infinity stands for what is not bounded."""

    cell: Cell
    bounds: dict[str, float]
    sup_mean: float  # the largest |mean| found, on the rays
    sup_output: float  # the largest |output| of any trained network, on the rays
    mean: list[float]  # the largest |mean| at each of RADII
    output: list[float]  # the largest |output| at each of RADII
    mean_growth: float
    output_growth: float
    loss: float  # of the trained networks, as a share of 1/2 Σ y²
    seconds: float

    @property
    def has_norm(self) -> bool:
        return self.cell.norm is not None

    @property
    def bound_holds(self) -> bool:
        chain = [self.sup_mean, *(self.bounds[form] for form in FORMS)]
        return all(low <= high * (1 + 1e-9) for low, high in itertools.pairwise(chain))

    @property
    def stays_bounded(self) -> bool:
        return not self.has_norm or abs(self.output_growth) <= GROWTH


def data(cell: Cell, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of variance 1, and a function of their sum."""
    rng = np.random.default_rng(settings.seed)
    if cell.dimension == 1:
        x = np.linspace(-(3**0.5), 3**0.5, cell.n)[:, None]
    else:
        x = rng.normal(size=(cell.n, cell.dimension))
    return x, TARGETS[cell.target](x.sum(axis=1) / cell.dimension**0.5)


def rays(x: np.ndarray, settings: Settings) -> np.ndarray:
    """Points on rays, (directions, radii, d): the diagonal, both ways, and random directions."""
    d = x.shape[1]
    rng = np.random.default_rng([settings.seed, 1])
    diagonal = np.ones((1, d)) / d**0.5
    others = rng.normal(size=(settings.directions if d > 1 else 0, d))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    directions = np.concatenate([diagonal, -diagonal, others])
    longest = np.linalg.norm(x, axis=1).max()
    return np.asarray(directions[:, None, :] * (longest * RADII)[None, :, None])


def measure(cell: Cell, settings: Settings) -> Row:
    begin = time.perf_counter()
    arch = lnk.mlp(cell.hidden, cell.width, norm=cell.norm)
    x, y = data(cell, settings)
    points = rays(x, settings)
    flat = points.reshape(-1, cell.dimension)
    b, posterior = lnk.bound(arch, x, y), lnk.posterior(arch, x, y)
    mean = np.abs(np.asarray(posterior.mean(flat))).reshape(points.shape[:2]).max(axis=0)
    ensemble = trained(cell, settings, arch, x, y, posterior)
    outputs = np.abs(np.asarray(ensemble(flat), np.float64))
    output = outputs.reshape(settings.seeds, *points.shape[:2]).max(axis=(0, 1))
    return Row(
        cell=cell,
        bounds={form: float(getattr(b, form)) for form in FORMS},
        sup_mean=float(mean.max()),
        sup_output=float(output.max()),
        mean=mean.tolist(),
        output=output.tolist(),
        mean_growth=growth(mean),
        output_growth=growth(output),
        loss=float(ensemble.loss.mean() / (0.5 * (y @ y))),
        seconds=time.perf_counter() - begin,
    )


def trained(
    cell: Cell, settings: Settings, arch: lnk.Node, x: np.ndarray, y: np.ndarray, limit: Any
) -> Any:
    seeds = range(settings.seed, settings.seed + settings.seeds)

    def run(optimizer: Any, parameterization: str) -> Any:
        return lnk.finite.train_ensemble(
            arch,
            x,
            y,
            list(seeds),
            optimizer,
            settings.steps,
            parameterization=parameterization,
            progress=False,
        )

    if cell.training == "practice":
        return run(optax.adam(1e-3), "standard")
    rate = limit.max_learning_rate / 2
    for _ in range(HALVINGS):
        try:
            return run(optax.sgd(rate), "ntk")
        except lnk.errors.DivergedError:
            rate /= 2
    return run(optax.sgd(rate), "ntk")


def growth(largest: np.ndarray) -> float:
    """The power of |x| that the values follow over the last three decades."""
    return float(np.polyfit(np.log(RADII[LAST]), np.log(largest[LAST]), 1)[0])
