"""One panel of the toy experiment: a target, a network, and what both theory and practice say of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lnkernel.experiments.variants import Variant


@dataclass(frozen=True, eq=False)
class Cell:
    """One target and one variant: trained networks and their limit at the points x."""

    target: str
    variant: Variant
    y: np.ndarray  # (100,)
    x: np.ndarray  # (m,)
    outputs: np.ndarray  # (networks, m)
    rmse: float  # of the networks on the data, their mean
    mean: np.ndarray  # of infinitely wide networks, (m,)
    bounds: dict[str, float]  # rkhs and sharp
    C: float
    lambda_min: float
    noise: float = 0.0  # of the infinitely wide networks' training
    no_bound: str = ""  # why there is none, for all activations but ReLU

    @property
    def largest(self) -> np.ndarray:
        """The largest |output| of each network."""
        return np.asarray(np.abs(self.outputs).max(axis=1))

    @property
    def within(self) -> int:
        """How many networks stay within rkhs."""
        return int((self.largest <= self.bounds["rkhs"]).sum())

    def row(self) -> dict[str, Any]:
        """The row of the table."""
        inside = f"{self.within} of {len(self.outputs)}"
        return {
            "target": self.target,
            "LayerNorm": self.variant.name,
            "training RMSE": self.rmse,
            "largest |output|": float(self.largest.max()),
            "largest |mean|, infinite width": _none_if_nan(float(np.abs(self.mean).max())),
            "B(D), rkhs": _none_if_nan(self.bounds["rkhs"]),
            "B(D), sharp": _none_if_nan(self.bounds["sharp"]),
            "networks within rkhs": inside if math.isfinite(self.C) else None,
            "C": _none_if_nan(self.C),
            "λ_min": _none_if_nan(self.lambda_min),
        }


def _none_if_nan(value: float) -> float | None:
    """NaN stands for what theory does not say: an empty cell of the table."""
    return None if math.isnan(value) else value
