"""Laplace's approximation around trained classifiers: MAP, exact where it fits, ELLA against rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lnkernel.datasets import cifar as load_cifar
from lnkernel.datasets import mnist as load_mnist
from lnkernel.errors import MissingDataError
from lnkernel.experiments.classifier import Recipe, make_cnn, make_mlp
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.laplace_report import report_of
from lnkernel.experiments.laplace_scores import Results
from lnkernel.experiments.laplace_task import WEAK, Task, draw_parts
from lnkernel.experiments.laplace_trial import run_trial
from lnkernel.experiments.report import Report

FEW = 100  # pictures of each part, in the quick version


def digits() -> tuple[Task, Task]:
    """MNIST-5k by an MLP: few digits, where the exact one fits, and more."""
    more = Task(
        name="digits",
        title="MNIST, 1,500 digits",
        known=load_mnist(),
        unseen=None,
        train=1500,
        validation=500,
        test=2000,
        make=make_mlp,
        recipe=Recipe(60, WEAK),
        ranks=(5, 10, 20, 50, 100),
        subsample=500,
        exact=False,
        check_every=100,
    )
    few = replace(
        more,
        name="few-digits",
        title="MNIST, 200 digits",
        train=200,
        test=1000,
        recipe=Recipe(150, WEAK, batch=50),
        subsample=200,
        exact=True,
        check_every=20,
    )
    return few, more


def pictures(like: Task, path: str | None) -> Task:
    """The part of CIFAR-10, by a CNN; sizes that are not said are those of the other task."""
    data = load_cifar(path)
    return replace(
        like,
        name="pictures",
        title="CIFAR-10, 5,000 pictures",
        known=data.train,
        unseen=data.test,
        train=5000,
        make=make_cnn,
        recipe=Recipe(20, WEAK),
        check_every=250,
    )


def shrink(task: Task) -> Task:
    """The quick version of a task; parts of one size are computed by one compiled program."""
    return replace(
        task,
        title=f"{task.title.split(',')[0]}, {FEW} {task.title.split()[-1]}",
        train=FEW,
        validation=FEW,
        test=FEW,
        recipe=replace(task.recipe, epochs=10, batch=20),
        ranks=(5, 20),
        subsample=FEW,
        check_every=FEW // 4,
    )


def compute(folder: Folder, tasks: list[Task], seeds: list[int]) -> list[Results]:
    """All trials, from the folder's pieces where they are there."""
    folder.record(seeds=seeds, settings={task.name: task.settings for task in tasks})
    wanted = [(task, seed) for task in tasks for seed in seeds]
    trials: dict[str, list[dict[str, np.ndarray]]] = {task.name: [] for task in tasks}
    for task, seed in folder.each(wanted, "network"):
        trials[task.name].append(_trial(folder, task, seed))
    return [Results(task, trials[task.name]) for task in tasks]


def _trial(folder: Folder, task: Task, seed: int) -> dict[str, np.ndarray]:
    parts = draw_parts(task, seed)
    data = fingerprint(*parts.train, *parts.validation, *parts.test)
    known = {**task.settings, "seed": seed, "data": data}
    return folder.piece(f"{task.name}-{seed}", known, lambda _: run_trial(task, parts, seed))


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, cifar: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["laplace"].run` calls it."""
    few, more = digits()
    tasks, missing = [few] if quick else [few, more], ""
    try:
        tasks.append(pictures(more, cifar))
    except MissingDataError as problem:
        if cifar is not None:
            raise
        missing = f"CIFAR-10 is left out, because its file is not there. {problem}"
    if quick:
        tasks = [shrink(task) for task in tasks]
    results = compute(folder, tasks, seeds_from(seed, seeds, 2 if quick else 5))
    return report_of(folder, results, missing)
