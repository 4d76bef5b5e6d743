"""The size of the experiment on linearized networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NETWORKS = ("MLP", "LeNet")
PAIRS = (("MLP", "digits"), ("MLP", "CIFAR2"), ("LeNet", "digits"), ("LeNet", "CIFAR2"))
ON_DIGITS = tuple((network, data) for network, data in PAIRS if data == "digits")
WIDTH = 100  # of the MLP, the paper's
DIRECTIONS = 8  # neural anisotropy directions that are shown


@dataclass(frozen=True)
class LinearizedPlan:
    """The size of the experiment."""

    seeds: list[int]
    points: int = 1000  # to train on
    tests: int = 500
    epochs: int = 60
    tasks: Sequence[int] = (1, 3, 10, 30, 100, 300, 1000)  # eigenfunctions, from 0
    again: Sequence[int] = (10,)  # of these tasks, and of the labels, the kernel after training
    side: int = 32  # of the pictures whose anisotropy is shown, the paper's
    pairs: Sequence[tuple[str, str]] = PAIRS  # networks and data

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds, for the record."""
        own = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("seeds", "pairs")
        }
        return own | {"width": WIDTH}
