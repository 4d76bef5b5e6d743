"""scikit-learn's Gaussian processes, with our kernel in them: the same posterior."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterator

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

import lnkernel as lnk
from benchmarks import posterior
from benchmarks.comparisons.row import Row, Size
from benchmarks.memory import peak
from benchmarks.timing import in_turns
from lnkernel.sklearn import NTKKernel

ARCH, NOISE, PREDICTIONS, WARM = posterior.ARCH, 0.01, 500, 300
PREPARED = (
    "from benchmarks import posterior\n"
    "from benchmarks.comparisons.scikit_learn import its, mine\n"
    "x, y, x2 = posterior.data({n}, {m})\n"
    "{call}(x[:{warm}], y[:{warm}], x2[:{warm}])"
)

Predictions = tuple[np.ndarray, np.ndarray]


def versions() -> dict[str, str]:
    return {"scikit-learn": importlib.metadata.version("scikit-learn")}


def mine(x: np.ndarray, y: np.ndarray, x2: np.ndarray) -> Predictions:
    """Mean and standard deviation of the Bayesian network."""
    post = lnk.posterior(ARCH, x, y, kernel="nngp", noise=NOISE)
    return np.asarray(post.mean(x2)), np.asarray(post.std(x2))


def its(x: np.ndarray, y: np.ndarray, x2: np.ndarray) -> Predictions:
    """The same by scikit-learn."""
    model = GaussianProcessRegressor(NTKKernel(ARCH, "nngp"), alpha=NOISE, optimizer=None)
    mean, std = model.fit(x, y).predict(x2, return_std=True)
    return np.asarray(mean), np.asarray(std)


def rows(size: Size) -> Iterator[Row]:
    n = size.of(3000, 200)
    x, y, x2 = posterior.data(n, PREDICTIONS)
    last: dict[str, Predictions] = {}

    def timed(name: str) -> float:
        start = time.perf_counter()
        last[name] = {"mine": mine, "its": its}[name](x, y, x2)
        return time.perf_counter() - start

    calls = [lambda: timed("mine"), lambda: timed("its")]
    in_turns(*calls, rounds=1)
    seconds, peer_seconds = in_turns(*calls, rounds=size.of(5, 1))
    agreement = max(
        float(np.abs(a - b).max() / np.abs(a).max())
        for a, b in zip(last["mine"], last["its"], strict=True)
    )
    few = posterior.data(posterior.FEW, 10)
    exact = posterior.exact_mean(ARCH, *few, kernel="nngp", noise=NOISE)
    error, peer_error = (float(np.abs(call(*few)[0] - exact).max()) for call in (mine, its))
    memory, peer_memory = (peak_of(call, n) for call in ("mine", "its"))
    yield Row(
        "scikit-learn",
        f"Gaussian process with our K, {n:,} points, mean and std at {PREDICTIONS}",
        "give kernels of networks by itself",
        agreement=agreement,
        error=error,
        peer_error=peer_error,
        seconds=seconds,
        peer_seconds=peer_seconds,
        memory=memory,
        peer_memory=peer_memory,
        checks={"agrees": agreement < 1e-10, "exact": error < 1e-13},  # no claim about the times
    )


def peak_of(call: str, n: int) -> int | None:
    prepared = PREPARED.format(n=n, m=PREDICTIONS, call=call, warm=WARM)
    return peak(prepared, f"found = {call}(x, y, x2)")[0]
