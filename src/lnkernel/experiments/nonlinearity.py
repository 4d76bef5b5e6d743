"""What LayerNorm alone can do with random labels (after Ni et al., ICML 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Float64, Int

from lnkernel.datasets import cifar as load
from lnkernel.datasets import mnist
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import MissingDataError
from lnkernel.experiments.classifier import Recipe, train_classifier
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.nonlinearity_plan import CLASSES, QUICK, LNKind, NonlinearityPlan
from lnkernel.experiments.nonlinearity_report import report_of
from lnkernel.experiments.report import Report
from lnkernel.experiments.small_networks import mean_of_fours
from lnkernel.finite import network
from lnkernel.gram.kernel import ntk
from lnkernel.nonlinearity import ln_net

SMALLEST = 10  # pixels along a side: pictures are made smaller while they have twice as many
RANK = 1e-10  # of the largest eigenvalue: what is less is rounding


class Inputs(NamedTuple):
    """Pictures as rows, with mean 0 and variance 1 over all."""

    name: str
    x: Float64[np.ndarray, "n d"]


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, cifar: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["nonlinearity"].run` calls it.

    The quick version is of digits alone, unless a file of CIFAR-10 is named.
    """
    plan = NonlinearityPlan(seeds_from(seed, seeds, 2 if quick else 3), **(QUICK if quick else {}))
    sources, origin = {"MNIST": mnist()}, "was left out"
    if cifar or not quick:
        try:
            pictures = load(cifar)
            sources["CIFAR-10"], origin = pictures.train, pictures.origin
        except MissingDataError:
            if cifar:
                raise
            origin = "was left out, because its file was not found"
    data = [draw(name, pictures, plan) for name, pictures in sources.items()]
    folder.record(seeds=plan.seeds, settings=plan.settings, data={"CIFAR-10": origin})
    return report_of(folder, plan, compute(folder, plan, data), [one.name for one in data], origin)


def draw(name: str, pictures: Pictures, plan: NonlinearityPlan) -> Inputs:
    """Some pictures, made smaller, as rows."""
    x = jnp.asarray(pictures.shuffle(plan.seeds[0]).take(slice(plan.points)).x)
    while x.shape[1] // 2 >= SMALLEST or (x.shape[3] > 1 and x.shape[1] // 2 >= SMALLEST - 2):
        x = mean_of_fours(x)
    rows = np.asarray(x, np.float64).reshape(len(x), -1)
    rows = rows - rows.mean(0)
    return Inputs(name, rows / rows.std())


def random_labels(points: int, seed: int) -> Int[np.ndarray, " n"]:
    """One of ten classes for each point, at random."""
    return np.random.default_rng([seed, 1]).integers(0, CLASSES, points)


def compute(folder: Folder, plan: NonlinearityPlan, data: Sequence[Inputs]) -> dict[str, Any]:
    """The linear bound, trained networks, kernels and constructed networks, for every data set."""
    found: dict[str, Any] = {}
    for one in data:
        common = {"data": fingerprint(one.x), "seeds": plan.seeds}
        piece = partial(folder.piece, settings=common)
        found[f"linear {one.name}"] = piece(f"linear-{one.name}", make=partial(_linear, one, plan))
        for kind in folder.each(plan.trained, f"network ({one.name})"):
            size = "all" if kind.group_size is None else kind.group_size
            file = f"network-{one.name}-{kind.norms}-{size}"
            sizes = {name: plan.settings[name] for name in ("width", "epochs", "batch", "rates")}
            make = partial(_networks, one, kind, plan)
            found[f"network {one.name} {kind}"] = folder.piece(file, common | sizes, make)
        for kind in folder.each(plan.kernels, f"kernel ({one.name})"):
            size = "all" if kind.group_size is None else kind.group_size
            file, noises = f"kernel-{one.name}-{kind.norms}-{size}", {"noises": list(plan.noises)}
            make = partial(_kernel, one, kind, plan)
            found[f"kernel {one.name} {kind}"] = folder.piece(file, common | noises, make)
        sizes = common | {"points": list(plan.constructed)}
        make = partial(_constructed, one, plan)
        found[f"constructed {one.name}"] = folder.piece(f"constructed-{one.name}", sizes, make)
    return found


def linear_accuracy(x: np.ndarray, labels: np.ndarray) -> float:
    """The training accuracy of linear classifiers: the better of least squares and softmax regression.

    Softmax regression is minimised to the end, with the least squares' solution as its start.
    """
    inputs = np.hstack([x, np.ones((len(x), 1))])
    targets = np.eye(CLASSES)[labels]
    start = np.linalg.lstsq(inputs, targets, rcond=None)[0]

    def cost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        outputs = inputs @ flat.reshape(start.shape)
        logs = outputs - scipy.special.logsumexp(outputs, axis=1, keepdims=True)
        slope = inputs.T @ (np.exp(logs) - targets) / len(x)
        return -float((logs * targets).sum() / len(x)), slope.ravel()

    found = scipy.optimize.minimize(
        cost, 2 * start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500}
    )
    return max(_accuracy(inputs @ w.reshape(start.shape), labels) for w in (start, found.x))


def kernel_fits(
    values: Float64[np.ndarray, " n"],
    vectors: Float64[np.ndarray, "n n"],
    labels: Int[np.ndarray, " n"],
    noise: float,
) -> float:
    """The training accuracy of the posterior's mean, K (K + noise)⁻¹ y, by the spectrum of K."""
    y = np.eye(CLASSES)[labels] - 1 / CLASSES
    kept = np.maximum(values, 0.0) / (np.maximum(values, 0.0) + noise)
    return _accuracy(vectors @ (kept[:, None] * (vectors.T @ y)), labels)


def _linear(one: Inputs, plan: NonlinearityPlan, _: Path) -> dict[str, np.ndarray]:
    n = len(one.x)
    each = [linear_accuracy(one.x, random_labels(n, seed)) for seed in plan.seeds]
    rank = np.linalg.matrix_rank(one.x)
    return {"accuracy": np.array(each), "rank": np.array(rank), "inputs": np.array(one.x.shape[1])}


def _networks(one: Inputs, kind: LNKind, plan: NonlinearityPlan, _: Path) -> dict[str, np.ndarray]:
    """Training accuracies, by rate and seed."""
    x = one.x.astype(np.float32)
    rates = plan.rates_of(kind)
    accuracy = np.zeros((len(rates), len(plan.seeds)))
    for i, rate in enumerate(rates):
        for j, seed in enumerate(plan.seeds):
            labels = random_labels(len(x), seed)
            arch = kind.arch(plan.width)
            net = network(arch, x.shape[1], rngs=seed, parameterization="standard")
            train_classifier(net, x, labels, Recipe(plan.epochs, 0.0, rate, plan.batch), seed)
            accuracy[i, j] = _accuracy(np.asarray(net(x)), labels)
    return {"accuracy": accuracy}


def _kernel(one: Inputs, kind: LNKind, plan: NonlinearityPlan, _: Path) -> dict[str, np.ndarray]:
    """Eigenvalues over the mean of the diagonal, and training accuracies by noise and seed."""
    K = np.asarray(ntk(kind.arch(plan.width, 1))(one.x))
    unit = float(np.diag(K).mean())
    values, vectors = scipy.linalg.eigh(K / unit)
    n = len(one.x)
    accuracy = [
        [kernel_fits(values, vectors, random_labels(n, seed), noise) for seed in plan.seeds]
        for noise in plan.noises
    ]
    positive = np.maximum(values, 0.0)
    return {
        "values": values[::-1],
        "rank": np.array((values > RANK * values[-1]).sum()),
        "accuracy": np.array(accuracy),
        "dimension": np.array([(positive / (positive + noise)).sum() for noise in plan.noises]),
    }


def _constructed(one: Inputs, plan: NonlinearityPlan, _: Path) -> dict[str, np.ndarray]:
    """`ln_net` on the first points with two random labels: norms, digits, and the share that is right."""
    rows = []
    for m in plan.constructed:
        labels = random_labels(len(one.x), plan.seeds[0])[:m] % 2
        net = ln_net(one.x[:m], labels)
        rows.append([m, net.norms, net.digits, np.mean(net.classify(one.x[:m]) == labels)])
    return {"rows": np.array(rows)}


def _accuracy(outputs: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(outputs.argmax(1) == labels))
