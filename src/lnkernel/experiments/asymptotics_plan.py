"""The networks and the size of the experiment on the law of the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lnkernel.arch import Dense, GroupNorm, LayerNorm, RectifiedPower, Relu, Serial, serial

WIDTH = 512  # of the finite networks
PROCESS = 1.5  # the degree b of the Gaussian process with the covariance exp(-|x - x'|^b)
FIRST = Dense(WIDTH, b_std=1.0)
LAST = Dense(1, b_std=1.0)
NETWORKS: dict[str, Serial] = {
    "ReLU": serial(FIRST, Relu(), LAST),
    "LayerNorm, ReLU": serial(FIRST, LayerNorm(), Relu(), LAST),
    "ReLU, LayerNorm": serial(FIRST, Relu(), LayerNorm(), LAST),
    "two hidden, LayerNorms": serial(FIRST, LayerNorm(), Relu(), FIRST, LayerNorm(), Relu(), LAST),
    "no bias, LayerNorm, ReLU": serial(Dense(WIDTH), LayerNorm(), Relu(), LAST),
    "ReLU²": serial(FIRST, RectifiedPower(2), LAST),
    "groups of 4": serial(FIRST, GroupNorm(4), LAST),
    "groups of 6": serial(FIRST, GroupNorm(6), LAST),
}
OF_DIRECTIONS = "no bias, LayerNorm, ReLU"  # sees directions alone: a dimension less
TRAINED = ("ReLU", "LayerNorm, ReLU")


@dataclass(frozen=True)
class AsymptoticsPlan:
    """The size of the experiment."""

    seeds: list[int]
    sides: Mapping[int, int]  # by dimension: points of the grid along each axis, an even number
    points: Mapping[int, int]  # the same for the points on which networks are trained
    steps: int = 1500
    networks: Sequence[str] = tuple(NETWORKS)
    width: int = WIDTH

    @property
    def cells(self) -> list[tuple[str, int]]:
        """Networks and dimensions; on a line a network of directions has a kernel of finite rank."""
        return [
            (name, d)
            for name in self.networks
            for d in self.sides
            if not (name == OF_DIRECTIONS and d == 1)
        ]

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds, for the record."""
        sizes = {
            f"{name}, d = {d}": n
            for name in ("sides", "points")
            for d, n in getattr(self, name).items()
        }
        return sizes | {"steps": self.steps, "width": self.width}


FULL = {"sides": {1: 2000, 2: 64, 3: 20}, "points": {1: 256, 2: 16, 3: 6}}
QUICK: dict[str, Any] = {
    "sides": {1: 600, 2: 32, 3: 14},
    "points": {1: 64, 2: 8, 3: 4},
    "steps": 400,
    "networks": ("ReLU", "LayerNorm, ReLU", "groups of 4"),
    "width": 256,
}


def law_dimension(name: str, d: int) -> int:
    """The dimension that decides: that of the directions, for a network that sees nothing else."""
    return d - 1 if name == OF_DIRECTIONS else d
