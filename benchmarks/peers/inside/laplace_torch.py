"""Laplace's approximation by laplace-torch, around a network with copied weights, in float64.

As a server (`protocol.py`):

    {"op": "load", "npz": path, "threads": 2}                 ->  {}
    {"op": "ella", "rank": 20, "batch": 250, "tau": 1.0}      ->  {"fit": seconds, "predict": seconds}
    {"op": "full", "batch": 250, "tau": 1.0}                  ->  {"fit": seconds, "predict": seconds}
    {"op": "save", "npz": path}                               ->  {}
    {"op": "versions"}                                        ->  {library: version}

The file holds the training data `x` (n, d) and `y` (n,), classes; the inputs `x2` (m, d) to predict
at; the parameters `W0` (d, width), `b0`, `W1`, ... of dense layers with ReLU between them; and the
rows that ELLA's directions come from: `chosen` (M,), training inputs, and `outputs` (M,), one output
each. laplace-torch draws these itself; here it is given them, so that the directions are the same.
`save` writes the `covariance` (m, k, k) of what was asked for last.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import protocol
import torch
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GIVEN = ("x", "y", "x2", "chosen", "outputs")


def network(arrays: dict[str, np.ndarray]) -> nn.Sequential:
    layers: list[nn.Module] = []
    depth = sum(name.startswith("W") for name in arrays)
    for i in range(depth):
        W, b = torch.tensor(arrays[f"W{i}"]), torch.tensor(arrays[f"b{i}"])
        linear = nn.Linear(*W.shape, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(W.T)
            linear.bias.copy_(b)
        layers += [linear, nn.ReLU()] if i < depth - 1 else [linear]
    return nn.Sequential(*layers)


class Drawn:
    """In place of `torch.randint`: the outputs that were chosen, some at a time."""

    def __init__(self, outputs: torch.Tensor) -> None:
        self._outputs, self._first = outputs, 0

    def __call__(self, high: int, size: tuple[int], **_: Any) -> torch.Tensor:
        first, self._first = self._first, self._first + size[0]
        return self._outputs[first : self._first]


class Server:
    """Answers requests about the network that was loaded last."""

    def load(self, npz: str, threads: int) -> dict[str, Any]:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float64)
        with np.load(npz) as arrays:
            self._arrays = dict(arrays)
        self._given = {name: torch.tensor(self._arrays[name]) for name in GIVEN}
        return {}

    def ella(self, rank: int, batch: int, tau: float) -> dict[str, Any]:
        made = self._laplace(
            "gp",
            tau,
            functional_approximation="nystrom",
            subsample_size=len(self._given["chosen"]),
            n_eigenvalues=rank,
        )
        made._indices = lambda *_: self._given["chosen"]
        known = torch.randint
        torch.randint = Drawn(self._given["outputs"])
        try:
            return self._timed(made, batch)
        finally:
            torch.randint = known

    def full(self, batch: int, tau: float) -> dict[str, Any]:
        return self._timed(self._laplace("full", tau), batch)

    def _laplace(self, structure: str, tau: float, **more: Any) -> Any:
        return Laplace(
            network(self._arrays),
            "classification",
            subset_of_weights="all",
            hessian_structure=structure,
            prior_precision=tau,
            **more,
        )

    def _timed(self, made: Any, batch: int) -> dict[str, Any]:
        data = TensorDataset(self._given["x"], self._given["y"])
        fit, _ = timed(lambda: made.fit(DataLoader(data, batch)))
        predict, parts = timed(
            lambda: [
                made._glm_predictive_distribution(some)[1]
                for some in self._given["x2"].split(batch)
            ]
        )
        self._covariance = torch.cat(parts).detach()
        return {"fit": fit, "predict": predict}

    def save(self, npz: str) -> dict[str, Any]:
        np.savez(npz, covariance=self._covariance.numpy())
        return {}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    server = Server()
    operations = {name: getattr(server, name) for name in ("load", "ella", "full", "save")}
    names = ("laplace-torch", "torch")
    protocol.serve(
        operations
        | {"versions": lambda: {name: importlib.metadata.version(name) for name in names}}
    )
