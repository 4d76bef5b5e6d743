"""The tangent kernel at the edge of stability (after Jiang, Cohen and Li, NeurIPS 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx

from lnkernel.arch import Tanh, mlp
from lnkernel.datasets import cifar as load
from lnkernel.errors import MissingPackageError
from lnkernel.experiments.descent import descend
from lnkernel.experiments.edge_linear import train_linear
from lnkernel.experiments.edge_plan import B_STD, LEADING, NORMS, W_STD, EdgePlan
from lnkernel.experiments.edge_report import report_of
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.experiments.small_networks import mean_of_fours
from lnkernel.finite import measures
from lnkernel.finite.build import network as build
from lnkernel.finite.watching.watch import watch
from lnkernel.tangents.tangent import tangent

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
        plan = replace(plan, points=100, width=32, steps=200, measurements=28, linear_steps=3000)
        plan = replace(plan, fractions=(0.125, 0.25, 4.0), levels=(0.2, 0.1, 0.05))
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
    starts = [
        build(arch, data.x.shape[1], rngs=seed, parameterization="standard") for seed in plan.seeds
    ]
    stable = 2 / float(np.mean([first_sharpness(start, data.x) for start in starts]))
    made: dict[str, np.ndarray] = {"stable rate": np.array(stable)}
    for fraction in plan.fractions:
        rate = float(f"{fraction * stable:.2g}")
        steps = int(plan.steps / min(fraction, 4.0))
        made[f"{fraction} rate"] = np.array(rate)
        run = train_rates(starts, data, [rate] * len(starts), steps, plan.measurements)
        made |= {f"{fraction} {name}": values for name, values in run.items()}
    return made


def first_sharpness(start: nnx.Module, x: np.ndarray) -> float:
    """λ_max(K)/n of a network."""
    return float(np.linalg.eigvalsh(tangent(start).gram(x))[-1]) / len(x)


def train_rates(
    starts: Sequence[nnx.Module],
    data: Labelled,
    rates: Sequence[float],
    steps: int,
    measurements: int,
) -> dict[str, np.ndarray]:
    """Full-batch gradient descent on (1/2n)Σ from every start with its rate, measured along the way.

    A rate for the mean is 1/n times as large for the sum, which is what is trained on.
    """
    wanted = {name: name for name in MEASURED} | {"alignment": measures.alignment(LEADING)}
    w = watch(data.x, data.y, wanted, at=measurements, loss="half-mean")
    for_the_sum = [rate / len(data.y) for rate in rates]
    made = descend(starts, data.x, data.y, for_the_sum, steps, w)
    return {**made.values, "steps": made.steps, "diverged": made.diverged}
