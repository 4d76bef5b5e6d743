"""What the experiment on Laplace's approximation classifies, by which networks, at which sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments.classifier import Make, Recipe

WEAK = 0.01  # prior precision of training: the networks become as sure of themselves as they can
PRIORS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
FEW_PRIORS = (
    1.0,
    10.0,
    100.0,
    1000.0,
)  # for the exact one, of which each takes as long as the first
RANK = 20  # that of the paper; early stopping is shown with it
NARROWER = (1.0, 10.0, 100.0)  # times the prior precision that is best without early stopping
SAMPLES, FEW_SAMPLES = 512, 128  # of the outputs, for probabilities and for the choice of τ


@dataclass(frozen=True, eq=False)
class Task:
    """Pictures, a network, and the sizes of what is compared.

    Attributes:
        name: of the pieces and of the figures' files.
        title: for readers.
        known: pictures to train on and to validate with; each seed draws its own.
        unseen: pictures to test on; None takes them of `known` too.
        train, validation, test: how many.
        make: the network, from the shape of a picture.
        recipe: of its training.
        ranks: of ELLA.
        subsample: training inputs that its directions come from.
        exact: whether the kernel of all training outputs fits.
        check_every: training inputs between two looks at the validation data.
    """

    name: str
    title: str
    known: Pictures
    unseen: Pictures | None
    train: int
    validation: int
    test: int
    make: Make
    recipe: Recipe
    ranks: tuple[int, ...]
    subsample: int
    exact: bool
    check_every: int

    @property
    def settings(self) -> dict[str, Any]:
        """All that a trial depends on, beside the seed and the pictures."""
        sizes = ("train", "validation", "test", "ranks", "subsample", "exact", "check_every")
        return {
            **{name: getattr(self, name) for name in sizes},
            "network": getattr(self.make, "__name__", str(self.make)),
            "recipe": vars(self.recipe),
            "priors": [PRIORS, FEW_PRIORS, NARROWER],
            "samples": SAMPLES,
        }


@dataclass(frozen=True, eq=False)
class Parts:
    """The pictures of one seed."""

    train: Pictures
    validation: Pictures
    test: Pictures


def draw_parts(task: Task, seed: int) -> Parts:
    """Training, validation and test pictures that have none in common.

    >>> import numpy as np
    >>> from lnkernel.experiments.classifier import make_mlp
    >>> known = Pictures(np.zeros((10, 2, 2, 1), np.float32), np.arange(10))
    >>> task = Task("t", "", known, None, 5, 3, 2, make_mlp, Recipe(1, 1.0), (1,), 5, True, 5)
    >>> parts = draw_parts(task, seed=0)
    >>> sorted([*parts.train.label, *parts.validation.label, *parts.test.label]) == list(range(10))
    True
    """
    mixed, first = task.known.shuffle(seed), task.train + task.validation
    rest = mixed.take(slice(first, None)) if task.unseen is None else task.unseen.shuffle(seed)
    return Parts(
        mixed.take(slice(task.train)),
        mixed.take(slice(task.train, first)),
        rest.take(slice(task.test)),
    )
