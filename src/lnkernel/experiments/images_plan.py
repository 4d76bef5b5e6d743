"""The networks and the size of the experiment on images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lnkernel.arch import Serial, cnn, mlp

CLASSES = 10


@dataclass(frozen=True)
class ImageNetwork:
    """A network of three hidden layers: dense, convolutional or convolutional with pooling; with a norm or without."""

    kind: str  # "dense", "CNN" or "pooled CNN"
    norm: str | None

    @property
    def name(self) -> str:
        return self.kind if self.norm is None else f"{self.kind}, LayerNorm"

    @property
    def file(self) -> str:
        return self.name.lower().replace(", ", "-").replace(" ", "-")

    def arch(self, width: int = 64, outputs: int = 1) -> Serial:
        """The network; a dense one is four times as wide, and still has fewer numbers than the images have."""
        if self.kind == "dense":
            return mlp(hidden=3, width=4 * width, norm=self.norm, outputs=outputs)
        pool = self.kind == "pooled CNN"
        return cnn(hidden=3, channels=width, norm=self.norm, pool=pool, outputs=outputs)

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Images as the network takes them: a dense one takes rows."""
        return x.reshape(len(x), -1) if self.kind == "dense" else x


PLAIN = tuple(ImageNetwork(kind, norm) for kind in ("dense", "CNN") for norm in (None, "first"))
POOLED = tuple(ImageNetwork("pooled CNN", norm) for norm in (None, "first"))


@dataclass(frozen=True)
class ImageGroup:
    """Images of one size and the networks that are compared on them.

    Attributes:
        halvings: how often means of 2 × 2 pixels are taken.
        train, test: numbers of images.
        networks: the networks.
        width: channels of the networks of finite width.
    """

    halvings: int
    train: int
    test: int
    networks: tuple[ImageNetwork, ...]
    width: int = 16


@dataclass(frozen=True)
class ImagesPlan:
    """The size of the experiment."""

    seeds: list[int]
    groups: Sequence[ImageGroup] = (
        ImageGroup(0, 1000, 500, PLAIN),
        ImageGroup(2, 250, 250, PLAIN + POOLED, width=32),
    )
    sizes: Sequence[int] = (60, 125, 250, 500, 1000)  # numbers of training images
    contrasts: Sequence[float] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    scaled: int = 24  # test images whose contrast is changed
    noises: Sequence[float] = tuple(10.0**power for power in range(-5, 1))  # over the mean diagonal
    steps: int = 400  # of training networks of finite width
    batch: int = 50
    rate: float = 2e-3

    def sizes_of(self, group: ImageGroup) -> list[int]:
        """The numbers of training images of which accuracy is shown; the last one is all of them."""
        return [*(n for n in self.sizes if n < group.train), group.train]

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds, for the record."""
        return {name: value for name, value in asdict(self).items() if name != "seeds"}


QUICK: dict[str, Any] = {
    "groups": (ImageGroup(2, 60, 100, (*PLAIN[1:], POOLED[1])),),
    "sizes": (30,),
    "contrasts": (1.0, 30.0, 1000.0),
    "scaled": 6,
    "noises": (1e-4, 1e-2, 1.0),
    "steps": 100,
    "batch": 20,
    "rate": 5e-3,
}
