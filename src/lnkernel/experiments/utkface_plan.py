"""How much of the UTKFace experiment is run: seeds, epochs, training faces."""

from __future__ import annotations

from dataclasses import dataclass

from lnkernel.experiments.learners import Recipe
from lnkernel.experiments.variants import Variant

BACKBONE = "ResNet-18"  # the paper's
LEARNING_RATES = {"none": 1e-3, "first": 1e-3, "last": 3e-3, "all": 3e-3}
BATCH = 128


@dataclass(frozen=True)
class FacesPlan:
    """The size of the experiment."""

    seeds: list[int]
    epochs: int = 10
    most: int | None = None  # training faces, at most; None is all of them

    def recipe(self, variant: Variant, points: int) -> Recipe:
        """How networks of this variant are trained on so many points."""
        batch = min(BATCH, points)
        return Recipe(self.epochs * -(-points // batch), LEARNING_RATES[variant.name], batch)

    def note(self, backbone: str) -> str:
        """The note for every row of the table."""
        parts = [
            f"QUICK RUN, {self.most} training faces" if self.most else "",
            f"{len(self.seeds)} of the paper's 10 seeds" if len(self.seeds) < 10 else "",
            "" if is_the_papers(backbone) else f"another backbone: {backbone}",
        ]
        return "; ".join(part for part in parts if part)


def is_the_papers(backbone: str) -> bool:
    """Whether the features come from the same kind of network as the paper's.

    >>> is_the_papers("ResNet-18 (torchvision, ImageNet)"), is_the_papers("ResNet-50")
    (True, False)
    """
    return backbone.startswith(BACKBONE)
