"""Ask laplace-torch for the covariance of Laplace's approximation, from our own Python.

with LaplaceTorch() as peer:
    peer.load(threads, x=x, y=y, x2=x2, chosen=chosen, outputs=outputs, W0=..., b0=..., W1=...)
    seconds, covariance = peer.ella(rank=20, batch=250, tau=1.0), peer.covariance()
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .environment import LAPLACE
from .process import Peer


class LaplaceTorch(Peer):
    """ELLA, and the approximation with the whole Hessian of Gauss and Newton."""

    environment, script = LAPLACE, "laplace_torch.py"

    def load(self, threads: int, **arrays: Any) -> None:
        """Take data and parameters, as `inside/laplace_torch.py` names them."""
        self.ask("load", npz=self.saved("network.npz", **arrays), threads=threads)

    def ella(self, rank: int, batch: int, tau: float) -> float:
        """Seconds to fit, and to predict at x2."""
        reply = self.ask("ella", rank=rank, batch=batch, tau=tau)
        return float(reply["fit"] + reply["predict"])

    def full(self, batch: int, tau: float) -> float:
        """Seconds to fit, and to predict at x2."""
        reply = self.ask("full", batch=batch, tau=tau)
        return float(reply["fit"] + reply["predict"])

    def covariance(self) -> np.ndarray:
        """As it was asked for last: (m, k, k)."""
        self.ask("save", npz=self.path("covariance.npz"))
        return self.loaded("covariance.npz")["covariance"]
