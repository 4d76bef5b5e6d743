"""The tangent kernel turns to the edges of pictures (after Castiglione, Buckley and Simpson, 2025)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.datasets import edges, scene
from lnkernel.experiments.alignment_plan import AlignmentPlan, Kind
from lnkernel.experiments.alignment_report import report_of
from lnkernel.experiments.alignment_start import correlations_at_start
from lnkernel.experiments.alignment_training import Task, Trial, train_trials
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.report import Report


def conduct(folder: Folder, *, quick: bool, seed: int, seeds: int | None) -> Report:
    """The experiment, as `REGISTRY["alignment"].run` calls it."""
    plan = AlignmentPlan(seeds_from(seed, seeds, 1 if quick else 2))
    if quick:
        kinds = (Kind(3, 15), Kind(3, 60))
        plan = replace(plan, scenes=("camera",), kinds=kinds, side=16, steps=500, times=20)
        plan = replace(plan, scattered=256)
    tasks = [load_task(name, plan) for name in plan.scenes]
    data = {task.name: fingerprint(task.picture, task.finer, task.edges) for task in tasks}
    folder.record(seeds=plan.seeds, settings=plan.settings, data=data)
    found = compute(folder, plan, tasks, data)
    return report_of(folder, plan, tasks, found)


def load_task(name: str, plan: AlignmentPlan) -> Task:
    """A picture of scikit-image, in two sizes, with its edges."""
    picture = scene(name, plan.side)
    finer = scene(name, plan.side * plan.finer)
    return Task(name, picture, finer, edges(picture, plan.sigma))


def compute(
    folder: Folder, plan: AlignmentPlan, tasks: list[Task], data: dict[str, str]
) -> dict[str, Any]:
    """Networks of each depth in one program, and the correlation at the start of each kind."""
    found: dict[str, Any] = {}
    common = {**plan.settings, "seeds": plan.seeds, "data": data}
    depths = sorted({kind.depth for kind in plan.kinds})
    for depth in folder.each(depths, "depth"):
        kinds = [kind for kind in plan.kinds if kind.depth == depth]
        trials = [Trial(kind, task, s) for kind in kinds for task in tasks for s in plan.seeds]
        settings = {**common, "kinds": [list(kind) for kind in kinds]}
        make = partial(_train, trials, plan, folder.progress)
        made = folder.piece(f"depth-{depth}", settings, make)
        each = len(tasks) * len(plan.seeds)
        for number, kind in enumerate(kinds):
            own = slice(number * each, (number + 1) * each)
            found[kind.label] = {
                key: part if key == "steps" else part[own] for key, part in made.items()
            }
    for kind in folder.each(list(plan.kinds), "start"):
        settings = {"kind": list(kind), "scattered": plan.scattered, "seeds": plan.seeds}
        start = folder.piece(f"start-{kind.depth}-{kind.omega}", settings, _start(kind, plan))
        found[f"{kind.label} start"] = start
    return found


def _train(
    trials: list[Trial], plan: AlignmentPlan, progress: bool, _: Path
) -> dict[str, np.ndarray]:
    return train_trials(trials, plan, progress)


def _start(kind: Kind, plan: AlignmentPlan) -> Any:
    return lambda _: correlations_at_start(kind, plan.seeds, plan.scattered)
