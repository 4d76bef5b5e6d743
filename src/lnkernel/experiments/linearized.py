"""What linearized networks say of networks (after Ortiz-Jiménez et al., NeurIPS 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from flax import nnx

from lnkernel.datasets import cifar as load
from lnkernel.datasets import mnist
from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.linearized_plan import (
    DIRECTIONS,
    NETWORKS,
    ON_DIGITS,
    PAIRS,
    WIDTH,
    LinearizedPlan,
)
from lnkernel.experiments.linearized_report import report_of
from lnkernel.experiments.linearized_training import (
    outputs,
    schedule,
    stable_rate,
    train_kernel,
    train_network,
)
from lnkernel.experiments.report import Report
from lnkernel.experiments.small_networks import LeNet, mean_of_fours, relu_mlp
from lnkernel.tangents.tangent import Tangent, tangent


class Source(NamedTuple):
    """Pictures to draw from; those of the classes up to 4 have the label -1, the others 1."""

    name: str
    train: Pictures
    test: Pictures


class Drawn(NamedTuple):
    """Training pictures, then test pictures; the first `points` are to train on."""

    x: np.ndarray
    label: np.ndarray
    points: int


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, cifar: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["linearized"].run` calls it.

    The quick version is of digits alone, unless a file of CIFAR-10 is named.
    """
    plan = LinearizedPlan(seeds_from(seed, seeds, 2 if quick else 3))
    if quick:
        plan = replace(plan, points=256, tests=128, epochs=15, tasks=(1, 10, 100), side=14)
        plan = replace(plan, again=(), pairs=PAIRS if cifar else ON_DIGITS)
    digits, origin = mnist(), ""
    sources = [Source("digits", digits, digits)]
    if any(data == "CIFAR2" for _, data in plan.pairs):
        pictures = load(cifar)
        origin = pictures.origin
        sources.append(Source("CIFAR2", pictures.train, pictures.test))
    folder.record(
        seeds=plan.seeds,
        settings=plan.settings,
        data={
            "CIFAR": origin or "not needed",
            **{f"fingerprint of {s.name}": fingerprint(s.train.x, s.test.x) for s in sources},
        },
    )
    return report_of(folder, plan, compute(folder, plan, sources), origin)


def compute(folder: Folder, plan: LinearizedPlan, sources: Sequence[Source]) -> dict[str, Any]:
    """Everything for every network, source and seed, from the folder's pieces where they are."""
    found: dict[str, Any] = {}
    by_name = {source.name: source for source in sources}
    wanted = [(name, by_name[data], seed) for name, data in plan.pairs for seed in plan.seeds]
    for name, source, seed in folder.each(wanted, "network"):
        data = fingerprint(source.train.x, source.test.x)
        settings = {**plan.settings, "network": name, "seed": seed, "data": data}
        make = partial(_tasks, name, draw(source, plan, seed), plan, seed)
        piece = f"{name}-{source.name}-{seed}"
        found[f"{name} {source.name} {seed}"] = folder.piece(piece, settings, make)
    for name in NETWORKS:
        settings = {"network": name, "side": plan.side, "seed": plan.seeds[0], "width": WIDTH}
        make = partial(_anisotropy, name, plan.side, plan.seeds[0])
        found[f"{name} anisotropy"] = folder.piece(f"{name}-anisotropy", settings, make)
    return found


def draw(source: Source, plan: LinearizedPlan, seed: int) -> Drawn:
    """Pictures of half the size, with mean 0 and variance 1 over all pixels to train on."""
    train = source.train.shuffle(seed)
    same = source.train is source.test
    test = train.take(slice(plan.points, None)) if same else source.test.shuffle(seed)
    some, others = train.take(slice(plan.points)), test.take(slice(plan.tests))
    x = np.concatenate([_halve(some.x), _halve(others.x)]).astype(np.float64)
    inside = x[: plan.points]
    label = np.where(np.concatenate([some.label, others.label]) > 4, 1.0, -1.0)
    return Drawn((x - inside.mean()) / inside.std(), label, plan.points)


def build(name: str, shape: tuple[int, ...], seed: int) -> Any:
    """A network for pictures of this shape; the MLP takes them as rows."""
    if name == "MLP":
        return relu_mlp(int(np.prod(shape)), WIDTH, seed)
    height, width, channels = shape
    return LeNet(height, width, channels, seed)


def _tasks(
    name: str, drawn: Drawn, plan: LinearizedPlan, seed: int, _: Path
) -> dict[str, np.ndarray]:
    """Accuracies and alignments of every task; the last task is that of the labels."""
    n = drawn.points
    network = build(name, drawn.x.shape[1:], seed)
    x = drawn.x.reshape(len(drawn.x), -1) if name == "MLP" else drawn.x
    wide, narrow = tangent(network, dtype=jnp.float64), tangent(network)
    K, start = wide.gram(x), wide.value(x)
    values, vectors = (part[..., ::-1] for part in scipy.linalg.eigh(K))
    tasks = [i for i in plan.tasks if i < len(x)]
    labels = np.array([*np.where(vectors[:, tasks].T >= 0, 1.0, -1.0), drawn.label])
    rate = stable_rate(float(np.linalg.norm(K[:n, :n], 2)), n)
    steps = schedule(n, plan.epochs, rate, seed)
    linear = _fit_kernel(K, start, labels[:, :n], steps)
    rows: dict[str, list[Any]] = {key: [] for key in ("network", "before", "after")}
    for number, y in enumerate(labels):
        arrays = (jnp.asarray(part, jnp.float32) for part in (x[:n], y[:n], steps.rates))
        inputs, targets, rates = arrays
        params = train_network(narrow.function, inputs, targets, steps.rows, rates)
        made = np.asarray(outputs(narrow.function, params, jnp.asarray(x[n:], jnp.float32)))
        after = tangent(network, params=params, dtype=jnp.float64)
        rows["network"].append(_accuracy(made, y[n:]))
        rows["before"].append(float(y[:n] @ K[:n, :n] @ y[:n] / n))
        rows["after"].append(_alignment(after, x[:n], y[:n]))
        if number == len(labels) - 1 or tasks[number] in plan.again:
            rows |= _again(after, x, labels, number, vectors, K, steps, rows)
    return {
        "tasks": np.array([*tasks, -1]),
        "linear": np.array(
            [_accuracy(out[n:], y[n:]) for out, y in zip(linear, labels, strict=True)]
        ),
        "majority": np.maximum(np.mean(labels[:, n:] > 0, 1), np.mean(labels[:, n:] < 0, 1)),
        "values": values,
        "rate": np.array(rate),
        **{key: np.array(part) for key, part in rows.items()},
    }


def _again(
    after: Tangent,
    x: np.ndarray,
    labels: np.ndarray,
    number: int,
    vectors: np.ndarray,
    K: np.ndarray,
    steps: Any,
    rows: dict[str, list[Any]],
) -> dict[str, list[Any]]:
    """The kernel after training, trained anew from the function 0, beside the one before training;
    and how it stretches the eigenvectors of the one before."""
    n, y = steps.rows.max() + 1, labels[number]
    turned = after.gram(x)
    zero = np.zeros(len(x))
    scores = [
        _accuracy(_fit_kernel(kernel, zero, y[None, :n], steps)[0, n:], y[n:])
        for kernel, steps in ((K, steps), (turned, _slower(steps, turned[:n, :n])))
    ]
    stretch = np.einsum("ij,ij->j", vectors, turned @ vectors)
    return {
        "again tasks": [*rows.get("again tasks", []), number],
        "again before": [*rows.get("again before", []), scores[0]],
        "again after": [*rows.get("again after", []), scores[1]],
        "stretch": [*rows.get("stretch", []), stretch],
    }


def _slower(steps: Any, kernel: np.ndarray) -> Any:
    """The same batches at a rate that is stable for a kernel that has grown."""
    rate = stable_rate(float(np.linalg.norm(kernel, 2)), len(kernel))
    return steps._replace(rates=steps.rates * min(1.0, rate / steps.rates[0]))


def _fit_kernel(K: np.ndarray, start: np.ndarray, y: np.ndarray, steps: Any) -> np.ndarray:
    """The linearized network on all inputs, after training on the first: (tasks, inputs)."""
    n = y.shape[1]
    with jax.enable_x64(True):
        c = np.asarray(train_kernel(K[:n, :n], start[:n], y, steps.rows, steps.rates))
    return start + c @ K[:n]


def _alignment(after: Tangent, x: np.ndarray, y: np.ndarray) -> float:
    """yᵀ K y/|y|² = |Jᵀ y|²/|y|²."""
    leaves = jax.tree.leaves(after.vjp(x, y))
    return sum(float(np.square(np.asarray(leaf)).sum()) for leaf in leaves) / len(y)


def _anisotropy(name: str, side: int, seed: int, _: Path) -> dict[str, np.ndarray]:
    """Neural anisotropy directions at the input 0, of grey pictures."""
    shape = (side, side, 1)
    network: nnx.Module = build(name, shape, seed)
    x0 = np.zeros(side * side) if name == "MLP" else np.zeros(shape)
    found = tangent(network, dtype=jnp.float64).anisotropy(x0)
    return {
        "values": found.values,
        "directions": found.directions[:DIRECTIONS].reshape(-1, side, side),
    }


def _accuracy(out: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.where(out >= 0, 1.0, -1.0) == y))


def _halve(x: np.ndarray) -> np.ndarray:
    """The means of 2 × 2 pixels."""
    return np.asarray(mean_of_fours(jnp.asarray(x)))
