"""The tangent kernel at the edge of stability (after Jiang, Cohen and Li, NeurIPS 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

from lnkernel.arch import Node, Tanh, mlp
from lnkernel.datasets import cifar as load
from lnkernel.errors import DivergedError, MissingPackageError
from lnkernel.experiments.edge_linear import train_linear
from lnkernel.experiments.edge_plan import B_STD, LEADING, NORMS, W_STD, EdgePlan
from lnkernel.experiments.edge_report import report_of
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.experiments.small_networks import mean_of_fours
from lnkernel.finite import measures
from lnkernel.finite.training.ensemble import train_ensemble
from lnkernel.finite.watching.watch import Watch, watch

MEASURED = ("loss", "sharpness", "kta")


class Labelled(NamedTuple):
    """Inputs and targets ±1."""

    x: np.ndarray
    y: np.ndarray


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, cifar: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["edge"].run` calls it.

    The quick version is of digits alone, unless a file of CIFAR-10 is named.
    """
    plan = EdgePlan(seeds_from(seed, seeds, 2 if quick else 3))
    if quick:
        plan = replace(plan, points=100, width=32, steps=400, measurements=40, linear_steps=3000)
        plan = replace(plan, fractions=(0.25, 1.0, 4.0), levels=(0.2, 0.1))
        plan = replace(plan, data=plan.data if cifar else ("digits",), linear_rates=(0.03, 0.06))
    sources, origin = {"digits": digits(plan.points)}, ""
    if "CIFAR-10" in plan.data:
        pictures = load(cifar)
        origin = pictures.origin
        some = pictures.train.shuffle(0).take(slice(plan.points))
        sources["CIFAR-10"] = _flat(some.x, some.label > 4)
    marks = {name: fingerprint(*source) for name, source in sources.items()}
    folder.record(seeds=plan.seeds, settings=plan.settings, data={"CIFAR-10": origin, **marks})
    found: dict[str, Any] = {}
    wanted = [(data, network) for data in plan.data for network in NORMS]
    for data, network in folder.each(wanted, "network"):
        settings = {**plan.settings, "network": network, "seeds": plan.seeds, "data": marks[data]}
        make = partial(_cell, plan, network, sources[data])
        found[f"{data}, {network}"] = folder.piece(f"{data}-{network}", settings, make)
    linear = {"rates": plan.linear_rates, "steps": plan.linear_steps, "seeds": plan.seeds}
    found["linear"] = folder.piece(
        "linear",
        linear,
        lambda _: train_linear(plan.linear_rates, plan.seeds, plan.linear_steps),
    )
    return report_of(folder, plan, found, origin)


def digits(points: int) -> Labelled:
    """The first of scikit-learn's digits, with pixels from 0 to 1; even ones are 1, odd ones -1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as problem:
        raise MissingPackageError("lnkernel reproduce edge", "scikit-learn", "sklearn") from problem
    known = load_digits()
    x, label = known.data[:points] / 16, known.target[:points]
    return Labelled(x, np.where(label % 2 == 0, 1.0, -1.0))


def _flat(x: np.ndarray, positive: np.ndarray) -> Labelled:
    """Means of 4 × 4 pixels as rows, with mean 0 and variance 1 over all."""
    small = np.asarray(mean_of_fours(mean_of_fours(jnp.asarray(x))), np.float64)
    rows = (small - small.mean()) / small.std()
    return Labelled(rows.reshape(len(rows), -1), np.where(positive, 1.0, -1.0))


def _cell(plan: EdgePlan, network: str, data: Labelled, _: Path) -> dict[str, np.ndarray]:
    """All rates of one network on one data set, each along its whole run.

    `FRACTION measure` is (seeds, m, ...), NaN for a start that diverges, and `FRACTION diverged` the step
    where it did, or -1.
    """
    arch = mlp(
        hidden=2,
        width=plan.width,
        norm=NORMS[network],
        activation=Tanh(),
        W_std=W_STD,
        b_std=B_STD,
    )
    begin = _watch(data, [0])
    _train(arch, data, plan.seeds, 1e-9, 1, begin)
    stable = 2 / float(begin["sharpness"].mean())
    made: dict[str, np.ndarray] = {"stable rate": np.array(stable)}
    for fraction in plan.fractions:
        rate = float(f"{fraction * stable:.2g}")
        steps = int(plan.steps / min(fraction, 4.0))
        made[f"{fraction} rate"] = np.array(rate)
        run = train_rate(arch, data, plan.seeds, rate, steps, plan.measurements)
        made |= {f"{fraction} {name}": values for name, values in run.items()}
    return made


def train_rate(
    arch: Node, data: Labelled, seeds: Sequence[int], rate: float, steps: int, measurements: int
) -> dict[str, np.ndarray]:
    """Full-batch gradient descent on (1/2n)Σ from every start, measured along the way.

    If one start diverges, each is trained on its own, so that the others are seen to their end.
    """
    w = _watch(data, measurements)
    try:
        _train(arch, data, seeds, rate, steps, w)
        runs: list[tuple[Watch, int]] = [(w, -1)]
    except DivergedError:
        runs = [_train_one(arch, data, seed, rate, steps, measurements) for seed in seeds]
    grid = w.choose_steps(steps)
    made = {"steps": grid}
    for name in (*MEASURED, "alignment"):
        parts = [_whole(one[name], len(grid), healthy=step < 0) for one, step in runs]
        made[name] = np.concatenate(parts)
    ends = [step for one, step in runs for _ in one.seeds]
    return {**made, "diverged": np.array(ends)}


def _train_one(
    arch: Node, data: Labelled, seed: int, rate: float, steps: int, measurements: int
) -> tuple[Watch, int]:
    w = _watch(data, measurements)
    try:
        _train(arch, data, [seed], rate, steps, w)
    except DivergedError as problem:
        return w, problem.step
    return w, -1


def _whole(values: np.ndarray, many: int, *, healthy: bool) -> np.ndarray:
    """The measurements, or NaN in place of all of a start that diverged."""
    if healthy:
        return values
    return np.full((len(values), many, *values.shape[2:]), np.nan)


def _watch(data: Labelled, at: Any) -> Watch:
    wanted = {name: name for name in MEASURED} | {"alignment": measures.alignment(LEADING)}
    return watch(data.x, data.y, wanted, at=at, loss="half-mean")


def _train(
    arch: Node, data: Labelled, seeds: Sequence[int], rate: float, steps: int, w: Watch
) -> None:
    """A rate for the mean is 1/n times as large for the sum, which is what is trained on."""
    train_ensemble(
        arch,
        data.x,
        data.y,
        list(seeds),
        optax.sgd(rate / len(data.y)),
        steps,
        parameterization="standard",
        progress=False,
        watch=w,
    )
