"""A Gaussian process by GPyTorch at fixed hyperparameters, factorised, in float64.

As a server (`protocol.py`):

    {"op": "fit", "npz": path, "noise": 0.1, "length": 3.0, "threads": 2}
        ->  {"wall": {part: seconds}, "processor": {part: seconds}, "factorisations": 2, "likelihood": number}
    {"op": "save", "npz": path}  ->  {}
    {"op": "versions"}           ->  {library: version}

The file holds the training data `x` (n, d) and `y` (n,), and the inputs `x2` (m, d) to predict at; `save` writes the
`mean` (m,) there. The parts are "factorisation", inside of "whole", which is the likelihood and what predictions need
of the training data, and "predictions". From 800 points on GPyTorch iterates by itself, to a residual of 0.01; here it
is told to factorise.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gpytorch
import numpy as np
import protocol
import torch


class Model(gpytorch.models.ExactGP):
    """Mean 0 and a Gaussian kernel."""

    def __init__(
        self, x: torch.Tensor, y: torch.Tensor, likelihood: Any, kernel: gpytorch.kernels.Kernel
    ) -> None:
        super().__init__(x, y, likelihood)
        self.kernel = kernel

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            torch.zeros(len(x), dtype=x.dtype), self.kernel(x)
        )


class Server:
    """Answers requests about one process."""

    def fit(self, npz: str, noise: float, length: float, threads: int) -> dict[str, Any]:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float64)
        with np.load(npz) as arrays:
            x, y, new = (torch.tensor(arrays[name]) for name in ("x", "y", "x2"))
        kernel, likelihood = gpytorch.kernels.RBFKernel(), gpytorch.likelihoods.GaussianLikelihood()
        kernel.lengthscale, likelihood.noise = length, noise
        model = Model(x, y, likelihood, kernel)
        self._wall, self._processor = dict[str, float](), dict[str, float]()
        self._count, usual = 0, torch.linalg.cholesky_ex

        def timed(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            with self._part("factorisation"):
                return usual(*arguments, **options)

        torch.linalg.cholesky_ex = timed
        try:
            with (
                torch.no_grad(),
                gpytorch.settings.max_cholesky_size(len(x) + 1),
                gpytorch.settings.skip_posterior_variances(),
            ):
                said = self._work(model, likelihood, x, y, new)
        finally:
            torch.linalg.cholesky_ex = usual
        return {
            "wall": self._wall,
            "processor": self._processor,
            "factorisations": self._count,
            "likelihood": said,
        }

    def _work(
        self, model: Model, likelihood: Any, x: torch.Tensor, y: torch.Tensor, new: torch.Tensor
    ) -> float:
        with self._part("whole"):
            said = float(likelihood(model(x)).log_prob(y))
            model.eval()
            likelihood.eval()
            _ = model(new[:1]).mean
        with self._part("predictions"):
            self._mean = model(new).mean.numpy()
        return said

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self._wall[name] = self._wall.get(name, 0.0) + time.perf_counter() - wall
        self._processor[name] = self._processor.get(name, 0.0) + time.process_time() - processor

    def save(self, npz: str) -> dict[str, Any]:
        np.savez(npz, mean=self._mean)
        return {}


if __name__ == "__main__":
    server = Server()
    operations: dict[str, Callable[..., dict[str, Any]]] = {
        "fit": server.fit,
        "save": server.save,
        "versions": lambda: {
            name: importlib.metadata.version(name) for name in ("gpytorch", "torch")
        },
    }
    protocol.serve(operations)
