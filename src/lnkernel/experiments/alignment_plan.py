"""The size of the experiment on the alignment of the tangent kernel with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

WIDTH = 64  # of the hidden layers, one of the paper's two
RATE = 1e-3  # of gradient descent on half the mean of the squares, the paper's


class Kind(NamedTuple):
    """Networks of one depth (linear layers) and one frequency."""

    depth: int
    omega: int

    @property
    def label(self) -> str:
        """Its name in the tables."""
        return f"{self.depth}/{self.omega}"


class Published(NamedTuple):
    """Castiglione, Buckley and Simpson (2025), Table 1."""

    length: float
    auc: float
    time: float  # log10 of the critical time
    loss: float  # log10 of the loss on a finer grid


PUBLISHED = {
    Kind(3, 15): Published(0.18, 0.60, 2.03, -1.83),
    Kind(3, 60): Published(0.06, 0.60, 2.84, -2.00),
    Kind(4, 30): Published(0.10, 0.71, 2.22, -1.99),
    Kind(5, 30): Published(0.09, 0.73, 2.15, -2.02),
    Kind(5, 60): Published(0.05, 0.71, 2.42, -2.05),
    Kind(5, 90): Published(0.03, 0.68, 2.54, -2.01),
}


@dataclass(frozen=True)
class AlignmentPlan:
    """The size of the experiment."""

    seeds: list[int]
    scenes: Sequence[str] = ("astronaut", "camera")
    kinds: Sequence[Kind] = tuple(PUBLISHED)
    side: int = 32  # pixels of a picture to train on
    finer: int = 4  # times as many to evaluate on
    steps: int = 1000
    times: int = 22  # measurements, log-spaced
    scattered: int = 512  # points at random places, on which the correlation length is measured
    sigma: float = 1.0  # pixels, of Canny's edges

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds and the kinds, for the record."""
        left = ("seeds", "kinds")
        own = {key: getattr(self, key) for key in self.__dataclass_fields__ if key not in left}
        return own | {"width": WIDTH, "rate": RATE}
