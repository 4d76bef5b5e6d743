"""Fine-tuning beside its linearization (after Afzal et al., NeurIPS 2025), on handwritten digits."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy
from flax import nnx

from lnkernel.datasets import mnist
from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments.finetuning_bounds import prove, start_of
from lnkernel.experiments.finetuning_choices import choices_of, spectra, train_choices
from lnkernel.experiments.finetuning_gap import Task, compare, norm
from lnkernel.experiments.finetuning_plan import (
    KINDS,
    Part,
    TuningPlan,
    layers_of,
    parts_of,
    pretrain,
    task_of,
)
from lnkernel.experiments.finetuning_report import report_of
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.finite import pull_to_start, train

ADAM = 4e-3  # the paper's rate
RULES = ("none", "ridge", "selective")
# of the comparison of rules; λ_max(K) is about a thousand
BATCH, RULE_RATE, RULE_STRENGTH = 16, 1e-3, 10.0
RATES = {"adam": ADAM, "batch": BATCH, "rule rate": RULE_RATE, "rule strength": RULE_STRENGTH}


def conduct(folder: Folder, *, quick: bool, seed: int, seeds: int | None) -> Report:
    """The experiment, as `REGISTRY["finetuning"].run` calls it."""
    plan = TuningPlan(seeds_from(seed, seeds, 2 if quick else 10))
    if quick:
        plan = replace(
            plan,
            pretraining=100,
            transformers=0,
            points=30,
            tests=210,
            kernel_points=12,
            strengths=(0.1, 1.0, 10.0),
            steps=40,
            most=1,
            choices=("MLP",),
            rule_steps=300,
            singles=False,
        )
    digits = mnist()
    folder.record(
        seeds=plan.seeds,
        settings=plan.settings,
        data={"digits": len(digits.label), "fingerprint": fingerprint(digits.x, digits.label)},
    )
    return report_of(folder, plan, compute(folder, plan, digits))


def compute(folder: Folder, plan: TuningPlan, digits: Pictures) -> dict[str, Any]:
    """Everything for every network and seed, from the folder's pieces where they are there."""
    found: dict[str, Any] = {}
    wanted = [(kind, seed) for kind in KINDS for seed in plan.seeds_of(kind)]
    for kind, seed in folder.each(wanted, "network"):
        settings = {
            **plan.settings,
            **RATES,
            "kind": kind,
            "seed": seed,
            "data": fingerprint(digits.x),
        }
        make = partial(_fine_tune, kind, seed, plan, digits)
        found[f"{kind} {seed}"] = folder.piece(f"{kind}-{seed}", settings, make)
    return found


def _fine_tune(
    kind: str, seed: int, plan: TuningPlan, digits: Pictures, _: Path
) -> dict[str, np.ndarray]:
    mixed = digits.shuffle(seed)
    network, task = pretrain(kind, mixed, seed, plan.pretraining), task_of(mixed, plan)
    gaps = [
        row
        for part in parts_of(kind, network, seed, plan)
        for row in _gaps(part, network, task, plan)
    ]
    found = {f"gap {name}": np.array([row[name] for row in gaps]) for name in gaps[0]}
    if kind in plan.choices:
        chosen = _choices(kind, network, task, plan, seed)
        found |= {f"choice {name}": v for name, v in chosen.items()}
    if kind == "MLP":
        found |= {f"rule {name}": v for name, v in _rules(network, task, plan).items()}
    return found


def _gaps(part: Part, network: Any, task: Task, plan: TuningPlan) -> list[dict[str, Any]]:
    """One row for every strength."""
    rows = task.y.size
    kernel = part.tangent.gram(task.x).reshape(rows, rows)
    largest = float(scipy.linalg.eigvalsh(kernel, subset_by_index=(rows - 1, rows - 1))[0])
    risk = 0.5 * float(np.square(part.tangent.value(task.x) - task.y).sum())
    bounds = None
    if part.layers is not None:
        slope, trained = math.sqrt(largest), part.layers
        start = start_of(network, np.concatenate([task.x, task.tests]))
        bounds = partial(prove, start, trained, len(task.x), slope, risk)
    return [
        {"part": part.name, "relative": relative, "largest": largest}
        | compare(part.tangent, task, relative * largest, bounds)
        for relative in plan.strengths
    ]


def _choices(
    kind: str, network: Any, task: Task, plan: TuningPlan, seed: int
) -> dict[str, np.ndarray]:
    """The kernels of all choices of layers, and how each is trained by Adam and by plain descent."""
    layers = layers_of(kind, network, seed, jnp.float64)
    count = len({path[:-1] for path in layers.paths})
    chosen = choices_of(count, None if kind == "MLP" else plan.most)
    found = spectra(layers, task.x[: plan.kernel_points], chosen)
    # λ_max(K) of all points is about that of some times their ratio; the edge is at twice the rate
    stable = plan.kernel_points / (plan.points * found["most"])
    single = layers_of(kind, network, seed, jnp.float32)
    for optimizer, rates in (("adam", np.full(len(chosen), ADAM)), ("descent", stable)):
        made = train_choices(single, task, chosen, rates, plan.steps, optimizer)
        found |= {f"{name}, {optimizer}": values for name, values in made.items()}
    return {**found, "chosen": chosen}


def _rules(network: Any, task: Task, plan: TuningPlan) -> dict[str, np.ndarray]:
    """The risk while all parameters are trained without a ridge term, with it, and selectively."""
    risks, accuracies, distances = [], [], []
    for rule in RULES:
        model = nnx.clone(network)
        pull = [pull_to_start(RULE_STRENGTH, selective=rule == "selective")] * (rule != "none")
        optimizer = optax.chain(*pull, optax.adam(RULE_RATE))
        result = train(
            model,
            task.x,
            task.y,
            optimizer,
            plan.rule_steps,
            batch_size=min(BATCH, len(task.x)),
            progress=False,
        )
        risks.append(np.append(result.losses, result.loss))
        outputs = np.asarray(model(jnp.asarray(task.tests, jnp.float32)))
        accuracies.append(float((outputs.argmax(1) == task.labels).mean()))
        states = [nnx.as_pure(nnx.state(one, nnx.Param)) for one in (model, network)]
        distances.append(norm(jax.tree.map(jnp.subtract, *states)))
    return {
        "risk": np.array(risks),
        "accuracy": np.array(accuracies),
        "distance": np.array(distances),
    }
