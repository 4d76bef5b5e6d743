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

    @property
    def largest(self) -> np.ndarray:
        """The largest |output| of each network."""
        return np.asarray(np.abs(self.outputs).max(axis=1))

    @property
    def within(self) -> int:
        """How many networks stay within rkhs."""
        return int((self.largest <= self.bounds["rkhs"]).sum())

    def row(self) -> dict[str, Any]:
        """Of the table."""
        inside = f"{self.within} of {len(self.outputs)}"
        return {
            "target": self.target,
            "LayerNorm": self.variant.name,
            "training RMSE": self.rmse,
            "largest |output|": float(self.largest.max()),
            "largest |mean|, infinite width": float(np.abs(self.mean).max()),
            "B(D), rkhs": self.bounds["rkhs"],
            "B(D), sharp": self.bounds["sharp"],
            "networks within rkhs": inside if math.isfinite(self.C) else None,
            "C": self.C,
            "λ_min": self.lambda_min,
        }
