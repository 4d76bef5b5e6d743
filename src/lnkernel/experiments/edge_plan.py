"""What the experiment at the edge of stability computes: networks, data, rates, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NORMS: dict[str, str | None] = {"MLP": None, "MLP with LayerNorm": "all"}
W_STD, B_STD = 3**-0.5, 0.1  # the variance that PyTorch's default gives to weights
LEADING = 20  # eigenvectors whose alignment is measured


@dataclass(frozen=True)
class EdgePlan:
    """Sizes; those of the quick version are smaller.

    Attributes:
        seeds: of the starts, which are the same for all rates.
        data: names of the data sets.
        points: to train on.
        width: of the hidden layers.
        fractions: learning rates, as multiples of 2/sharpness at the start (the mean over the seeds).
        steps: of a rate that is 2/sharpness at the start; a rate of a fraction takes as many times more.
        measurements: log-spaced, along every run.
        levels: losses, (1/2n)Σ, at which the rates are compared.
        linear_rates: of the two-layer linear network.
        linear_steps: of the two-layer linear network.
    """

    seeds: list[int]
    data: tuple[str, ...] = ("digits", "CIFAR-10")
    points: int = 200
    width: int = 100
    fractions: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 4.0)
    steps: int = 600
    measurements: int = 60
    levels: tuple[float, ...] = (0.1, 0.05, 0.02, 0.01)
    linear_rates: tuple[float, ...] = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07)
    linear_steps: int = 4000

    @property
    def settings(self) -> dict[str, Any]:
        """All that results depend on, but for seeds and data."""
        return {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "seeds"
        } | {"W_std": W_STD, "b_std": B_STD, "leading": LEADING}
