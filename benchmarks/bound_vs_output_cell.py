"""One place of the grid of `bound_vs_output`: its data, its bound, its trained networks."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import numpy as np
import optax

import lnkernel as lnk
from lnkernel.bounds import FORMS
from lnkernel.experiments.activations import DEFAULT, find_activation, key_of
from lnkernel.experiments.limit import limit_of

TARGETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sinusoid": lambda u: np.sin(2 * u),
    "line": lambda u: u,
    "parabola": lambda u: u * u,
}
NEAREST, FARTHEST = 1e-2, 1e6  # in units of the longest training input
RADII = np.geomspace(NEAREST, FARTHEST, 41)
LAST = RADII >= 1e3 * (1 - 1e-9)  # the three decades over which growth is measured
GROWTH = 0.01
HALVINGS = 6  # how often the learning rate is halved where narrow networks diverge


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
    activation: str = key_of(DEFAULT)  # as text


@dataclass(frozen=True)
class Settings:
    """What all cells have in common."""

    seeds: int
    steps: int
    directions: int
    seed: int


@dataclass(frozen=True)
class Row:
    """What was found in one cell. Infinity stands for what is not bounded, NaN for what is not known."""

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
    noise: float = 0.0  # of the infinitely wide networks' training
    no_bound: str = ""  # why there is none, where there is a LayerNorm or theory is silent

    @property
    def has_norm(self) -> bool:
        return self.cell.norm is not None

    @property
    def has_bound(self) -> bool:
        return self.has_norm and not self.no_bound

    @property
    def bound_holds(self) -> bool:
        chain = [self.sup_mean, *(self.bounds[form] for form in FORMS)]
        known = [value for value in chain if not math.isnan(value)]
        return all(low <= high * (1 + 1e-9) for low, high in itertools.pairwise(known))

    @property
    def stays_bounded(self) -> bool:
        return not self.has_bound or abs(self.output_growth) <= GROWTH


def as_dict(made: Cell | Row) -> dict[str, Any]:
    """Its fields, but those which came with other activations and have their defaults."""
    found = asdict(made)
    if isinstance(made, Row):
        found["cell"] = as_dict(made.cell)
    later = {field.name: field.default for field in fields(made) if field.default is not MISSING}
    return {name: value for name, value in found.items() if later.get(name, MISSING) != value}


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
    activation = find_activation(cell.activation)
    arch = lnk.mlp(cell.hidden, cell.width, norm=cell.norm, activation=activation)
    x, y = data(cell, settings)
    points = rays(x, settings)
    flat = points.reshape(-1, cell.dimension)
    limit = limit_of(arch, x, y, flat)
    mean = np.abs(limit.mean).reshape(points.shape[:2]).max(axis=0)
    ensemble = train_networks(cell, settings, arch, x, y, limit.posterior)
    outputs = np.abs(np.asarray(ensemble(flat), np.float64))
    output = outputs.reshape(settings.seeds, *points.shape[:2]).max(axis=(0, 1))
    return Row(
        cell=cell,
        bounds=limit.bounds,
        sup_mean=float(mean.max()),
        sup_output=float(output.max()),
        mean=mean.tolist(),
        output=output.tolist(),
        mean_growth=growth(mean),
        output_growth=growth(output),
        loss=float(ensemble.loss.mean() / (0.5 * (y @ y))),
        seconds=time.perf_counter() - begin,
        noise=limit.noise,
        no_bound=limit.no_bound if cell.norm is not None or math.isnan(limit.C) else "",
    )


def train_networks(
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
    if limit is None:
        remedy = "Train these networks as in practice"
        raise lnk.errors.InputError("training", "a kernel to take the rate from", "none", remedy)
    rate = limit.max_learning_rate / 2
    for _ in range(HALVINGS):
        try:
            return run(optax.sgd(rate), "ntk")
        except lnk.errors.DivergedError:
            rate /= 2
    return run(optax.sgd(rate), "ntk")


def growth(largest: np.ndarray) -> float:
    """The power of |x| that the values follow over the last three decades; NaN if they are not known."""
    if np.isnan(largest[LAST]).any():
        return math.nan
    return float(np.polyfit(np.log(RADII[LAST]), np.log(largest[LAST]), 1)[0])
