"""What the kernels and trained networks of the experiment on images say: accuracies, outputs by contrast, bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lnkernel.bounds import sup_diagonal
from lnkernel.experiments.images_plan import ImageNetwork, ImagesPlan
from lnkernel.experiments.images_posterior import ClassFit, accuracy, fit_classes

Piece = Mapping[str, np.ndarray]
# by what was computed, how often images are halved, and the network
Pieces = Mapping[tuple[str, tuple[int, ImageNetwork]], Piece]


class Labelled(Protocol):
    """Images to train on and to test with, as far as results depend on them."""

    label: np.ndarray
    test_label: np.ndarray

    @property
    def targets(self) -> np.ndarray: ...


@dataclass(frozen=True)
class NetworkResult:
    """One network on images of one size.

    Attributes:
        network: the network.
        sizes: numbers of training images.
        accuracies: of the infinitely wide network on test images, for each of the sizes.
        fit: that of all training images.
        C: sup Θ(x, x) over all images, or an upper bound of it.
        is_upper_bound: which of the two C is.
        largest: the largest |output| over classes and scaled images, for each contrast.
        diagonal: the largest Θ(x, x) of scaled images, for each contrast.
        same: the share of scaled images whose class is that at contrast 1, for each contrast.
        twins: accuracies of trained networks of finite width, by seed.
        twins_largest: as `largest`, by seed and contrast.
        twins_same: as `same`, the mean over seeds.
        losses: of the trained networks on their training images, half the sum of squares.
    """

    network: ImageNetwork
    sizes: Sequence[int]
    accuracies: Sequence[float]
    fit: ClassFit
    C: float
    is_upper_bound: bool
    largest: np.ndarray
    diagonal: np.ndarray
    same: np.ndarray
    twins: np.ndarray
    twins_largest: np.ndarray
    twins_same: np.ndarray
    losses: np.ndarray

    @property
    def relative_noise(self) -> float:
        """The noise over the mean of the diagonal."""
        return self.fit.noise / self.fit.unit

    @property
    def bound(self) -> float:
        """√(C aᵀΘa), which no output of the infinitely wide network exceeds for any image."""
        return math.sqrt(self.C) * self.fit.norm

    @property
    def sharp(self) -> float:
        """max|y| √(C n/λ_min), the bound for all targets of that size: 1 - 1/10 is the largest here."""
        n = len(self.fit.coefficients)
        return (1 - 1 / self.fit.coefficients.shape[1]) * math.sqrt(self.C * n / self.fit.least)


def results(plan: ImagesPlan, data: Sequence[Labelled], found: Pieces) -> list[list[NetworkResult]]:
    """The results of every network, group by group."""
    return [
        [
            _result(one, plan.sizes_of(group), images, plan, *_parts(found, group.halvings, one))
            for one in group.networks
        ]
        for group, images in zip(plan.groups, data, strict=True)
    ]


def _parts(found: Pieces, halvings: int, one: ImageNetwork) -> list[Piece]:
    return [found[part, (halvings, one)] for part in ("gram", "tested", "scaled", "finite")]


def _result(
    one: ImageNetwork,
    sizes: Sequence[int],
    images: Labelled,
    plan: ImagesPlan,
    gram: Piece,
    tested: Piece,
    scaled: Piece,
    finite: Piece,
) -> NetworkResult:
    y, theta = images.targets, gram["theta"]
    fits = [fit_classes(theta[:n, :n], y[:n], plan.noises) for n in sizes]
    outputs = [
        tested["theta"][:, :n] @ made.coefficients for n, made in zip(sizes, fits, strict=True)
    ]
    far = scaled["theta"] @ fits[-1].coefficients
    C = sup_diagonal(one.arch())
    return NetworkResult(
        one,
        sizes,
        [accuracy(out, images.test_label) for out in outputs],
        fits[-1],
        float(C),
        C.is_upper_bound,
        largest=np.abs(far).max((1, 2)),
        diagonal=scaled["diagonal"].max(1),
        same=_same(far),
        twins=np.array([accuracy(out, images.test_label) for out in finite["tested"]]),
        twins_largest=np.abs(finite["scaled"]).max((2, 3)),
        twins_same=np.mean([_same(out) for out in finite["scaled"]], axis=0),
        losses=finite["loss"],
    )


def _same(outputs: np.ndarray) -> np.ndarray:
    """The share of images whose class is that at the first contrast, from outputs (contrasts, images, classes)."""
    classes = outputs.argmax(-1)
    return np.mean(classes == classes[0], axis=1)
