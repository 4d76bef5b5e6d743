"""Ask GPyTorch for a posterior, from our own Python.

with GPyTorch() as peer:
    reply = peer.fit(x, y, tests, noise=0.1, length=3.0, threads=2)
    mean, bytes = peer.mean(), peer.high_water()
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.memory import high_water

from .environment import GPYTORCH
from .process import Peer


class GPyTorch(Peer):
    """Its exact Gaussian process with a Gaussian kernel."""

    environment, script = GPYTORCH, "gpytorch_posterior.py"

    def fit(self, x: np.ndarray, y: np.ndarray, x2: np.ndarray, **request: Any) -> dict[str, Any]:
        """Seconds by their parts, and the likelihood."""
        return self.ask("fit", npz=self.write_arrays("data.npz", x=x, y=y, x2=x2), **request)

    def mean(self) -> np.ndarray:
        """The mean at x2."""
        self.ask("save", npz=self.path("mean.npz"))
        return self.read_arrays("mean.npz")["mean"]

    def high_water(self) -> int | None:
        """The most memory of its process."""
        return high_water(self._process.pid)
