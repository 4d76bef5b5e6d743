"""The law by which the loss falls (after Velikanov and Yarotsky, NeurIPS 2021)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optax
from scipy.spatial.distance import cdist

from lnkernel.arch import Serial
from lnkernel.asymptotics import loss
from lnkernel.experiments.asymptotics_plan import (
    FULL,
    NETWORKS,
    PROCESS,
    QUICK,
    TRAINED,
    AsymptoticsPlan,
)
from lnkernel.experiments.asymptotics_report import report_of
from lnkernel.experiments.cube_spectrum import CubeSpectrum, cube_spectrum
from lnkernel.experiments.folder import Folder, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.finite import network, train_ensemble
from lnkernel.gram.kernel import kernels, ntk

TIMES = 120
SHARE = 16  # of the eigenvalues of a grid the first 1/16 are near those of the cube
CENTRE, RADIUS = np.array([0.2, 0.1, -0.15]), 0.55  # of the ball whose indicator is the target


def conduct(folder: Folder, *, quick: bool, seed: int, seeds: int | None) -> Report:
    """The experiment, as `REGISTRY["asymptotics"].run` calls it."""
    known = seeds_from(seed, seeds, 2 if quick else 3)
    plan = AsymptoticsPlan(known, **(QUICK if quick else FULL))
    folder.record(seeds=plan.seeds, settings=plan.settings)
    return report_of(folder, plan, compute(folder, plan))


def compute(folder: Folder, plan: AsymptoticsPlan) -> dict[str, Any]:
    """Spectra and losses of every kernel, and the training of every finite network."""
    found: dict[str, Any] = {}
    for name, d in folder.each(plan.cells, "kernel"):
        arch, side = NETWORKS[name], plan.sides[d]
        about: dict[str, Any] = {"d": d, "side": side, "process": PROCESS, "arch": repr(arch)}
        make = partial(_spectrum, arch, d, side)
        found[f"spectrum {name} {d}"] = folder.piece(f"spectrum-{_file(name)}-{d}", about, make)
    wanted = [(name, d) for name in TRAINED for d in plan.points]
    for name, d in folder.each(wanted, "network"):
        settings = {**plan.settings, "d": d, "seeds": plan.seeds, "arch": repr(NETWORKS[name])}
        make = partial(_training, NETWORKS[name], d, plan)
        found[f"training {name} {d}"] = folder.piece(f"training-{_file(name)}-{d}", settings, make)
    return found


def indicator(x: np.ndarray) -> np.ndarray:
    """1 inside of a ball that lies within the cube, 0 outside."""
    return (np.linalg.norm(x - CENTRE[: x.shape[1]], axis=1) < RADIUS).astype(float)


def _spectrum(arch: Serial, d: int, side: int, _: Path) -> dict[str, np.ndarray]:
    """The first eigenvalues, and the loss of each target against time."""
    both = kernels(arch)

    def matrices(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        pair = both(x, y)
        return np.asarray(pair.ntk), np.asarray(pair.nngp), np.exp(-(cdist(x, y) ** PROCESS))

    cube = cube_spectrum(matrices, d, side)
    values = cube.all_values()[: cube.size // SHARE]
    t = np.geomspace(1 / values[2], 1 / values[-1], TIMES)
    curves = {name: loss(*pair)(t) for name, pair in targets(cube).items()}
    return {"values": values, "t": t, **curves}


def targets(cube: CubeSpectrum) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Eigenvalues and coefficients of the indicator, of a Gaussian process, and of the network's start."""
    return {
        "indicator": cube.of_function(indicator),
        "process": cube.of_process(1),
        "start": cube.of_process(0),
    }


def _training(arch: Serial, d: int, plan: AsymptoticsPlan, _: Path) -> dict[str, np.ndarray]:
    """Losses of finite networks by gradient descent, beside those that the exact kernel foretells.

    Points, steps and starts are the same.
    The target of a network is its own start plus the indicator, or 0: what it has to learn is the indicator, or
    its start, and nothing else.
    """
    axes = np.meshgrid(*[(np.arange(plan.points[d]) + 0.5) * 2 / plan.points[d] - 1] * d)
    x = np.stack([axis.ravel() for axis in axes], axis=1)
    n = len(x)
    values, vectors = np.linalg.eigh(np.asarray(ntk(arch)(x)) / n)
    rate = 1 / (n * values[-1])
    starts = np.stack(
        [np.asarray(network(arch, d, plan.width, rngs=seed)(x), float)[:, 0] for seed in plan.seeds]
    )
    steps = np.unique(np.geomspace(1, plan.steps - 1, TIMES).astype(int))
    left = (1 - values / values[-1]) ** (2 * steps[:, None])  # of every square, after so many steps
    found = {"t": steps * rate * n, "values": values[::-1]}
    for target, goal in (("indicator", starts + indicator(x)), ("start", 0 * starts)):
        trained = train_ensemble(
            arch,
            [x] * len(plan.seeds),
            list(goal),
            plan.seeds,
            optax.sgd(rate),
            plan.steps,
            width=plan.width,
            progress=False,
        )
        found[f"{target}, networks"] = trained.losses[:, steps].astype(float) / n
        squares = ((goal - starts) @ vectors) ** 2 / n
        found[f"{target}, kernel"] = 0.5 * squares @ left.T
    return found


def _file(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "_").replace("²", "2")
