"""Ask PyTorch to train networks, or for their tangent kernel, from our own Python.

with TorchTraining() as peer:
    reply = peer.train("start.npz", steps=3000, rate=1e-3, threads=1, how="fused")

with TorchNTK() as peer:
    peer.load(x=x, W0=..., b0=..., W1=..., W_std=1.4, b_std=0.1)
    seconds, ntk = peer.time("jacobian"), peer.kernel()
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .environment import TORCH
from .process import Peer


class TorchTraining(Peer):
    """Networks trained one by one."""

    environment, script = TORCH, "torch_training.py"

    def train(self, npz: Path, **request: Any) -> dict[str, Any]:
        """Seconds and final losses."""
        return self.ask("train", npz=str(npz), **request)


class TorchNTK(Peer):
    """`torch.func` at one network."""

    environment, script = TORCH, "torch_ntk.py"
    ways = ("jacobian", "vector")

    def load(self, threads: int, **arrays: Any) -> None:
        """Take inputs and parameters, as `inside/torch_ntk.py` names them."""
        self.ask("load", npz=self.write_arrays("network.npz", **arrays), threads=threads)

    def time(self, way: str) -> float:
        """Seconds of one evaluation of the kernel."""
        return float(self.ask("time", way=way)["seconds"])

    def time_tiles(self, tile: int) -> float:
        """Seconds of one evaluation by the Jacobians of so many inputs at a time."""
        return float(self.ask("time_tiles", tile=tile)["seconds"])

    def kernel(self) -> np.ndarray:
        """The kernel as it was evaluated last."""
        self.ask("save", npz=self.path("ntk.npz"))
        return self.read_arrays("ntk.npz")["ntk"]
