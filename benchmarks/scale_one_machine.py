"""One posterior on one machine, in a process of its own: time by its parts, and the most memory that it takes.

    python -m benchmarks.scale_one_machine 10000 half

prints them as JSON. Processor seconds are of all cores together, and do not count what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

import lnkernel as lnk
from benchmarks.memory import growth, high_water
from benchmarks.peers.gpytorch_posterior import GPyTorch
from lnkernel.experiments import learners
from lnkernel.experiments.domains import Split, r_squared, split
from lnkernel.experiments.protein_plan import ProteinPlan
from lnkernel.experiments.protein_report import LARGE
from lnkernel.gp import cholesky, fit, packed, rectangular_packed

ARCH = lnk.mlp(hidden=2, norm="first")
NOISE = 0.1
LENGTH = 3.0  # of the Gaussian kernel of the peers
WAYS = ("square", "half", "scikit-learn", "GPyTorch")


@dataclass
class Clock:
    """Seconds by the wall and of the processors, of several parts."""

    wall: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start, used = time.perf_counter(), time.process_time()
        yield
        self.counts[name] += 1
        self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - start
        self.processor[name] = self.processor.get(name, 0.0) + time.process_time() - used

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            with self.part(name):
                return call(*arguments, **options)

        return wrapped


def proteins(seed: int = 0) -> Split:
    """The split of the experiment `protein`: 40,132 rows to train on."""
    data = lnk.datasets.protein()
    return split(data.x, data.y, data.surface >= LARGE, seed)


def choose_noise() -> dict[str, Any]:
    """The noise as the experiment chooses it, by 10,000 of the rows, and what they predict with it."""
    plan, data = ProteinPlan([0]), proteins()
    few = learners.infinite_network(data, "first", plan.rows, plan.validation)
    return {
        "noise": float(few["noise"]),
        "rows": plan.rows,
        "r2_inside": r_squared(data.inside.y, few["inside"]),
        "r2_outside": r_squared(data.outside.y, few["outside"]),
    }


def measure(n: int, way: str, noise: float) -> dict[str, Any]:
    """A posterior of n proteins, its mean at the tests of the experiment, and its likelihood."""
    data, clock = proteins(), Clock()
    x, y = data.train.x[:n], data.targets[:n]
    tests = np.concatenate([data.inside.x, data.outside.x])
    lnk.ntk(ARCH)(x[:200], tests[:300])  # compiles
    before = high_water()
    if way == "GPyTorch":
        outputs, peak = _gpytorch(x, y, tests, noise, clock)
    else:
        with clock.part("whole"):
            predict = (
                _scikit_learn(x, y, noise, clock)
                if way == "scikit-learn"
                else _ours(x, y, noise, clock, way)
            )
        with clock.part("predictions"):
            outputs = predict(tests)
        peak = high_water()
    inside, outside = np.split(data.in_units(outputs), [len(data.inside.x)])
    # a peer may factorise once for its likelihood and once more for its predictions
    factor = clock.processor["factorisation"] / clock.counts["factorisation"]
    return {
        "n": n,
        "way": way,
        "noise": noise,
        "wall": clock.wall,
        "processor": clock.processor,
        "factorisations": clock.counts["factorisation"],
        "factorisation": factor,
        "peak": peak,
        "growth": growth(before, high_water()),
        "rate": n**3 / 3 / factor,
        "whole_by_factorisation": clock.processor["whole"] / factor,
        "r2_inside": r_squared(data.inside.y, inside),
        "r2_outside": r_squared(data.outside.y, outside),
    }


def _ours(
    x: np.ndarray, y: np.ndarray, noise: float, clock: Clock, way: str
) -> Callable[[np.ndarray], np.ndarray]:
    """Everything up to the refined coefficients and the likelihood."""
    half, square = rectangular_packed.factorise_in_place, cholesky.cholesky_in_place
    with (
        mock.patch.object(packed, "ROOM", np.inf if way == "half" else 0),
        mock.patch.object(
            rectangular_packed, "factorise_in_place", clock.timed("factorisation", half)
        ),
        mock.patch.object(fit, "cholesky_in_place", clock.timed("factorisation", square)),
    ):
        made = fit.fit(ARCH, "ntk", x, y, noise)
        post = lnk.Posterior(made)
        with clock.part("refined solution"):
            _ = made.coefficients
        post.log_marginal_likelihood()
    return lambda points: np.asarray(post.mean(points))


def _scikit_learn(
    x: np.ndarray, y: np.ndarray, noise: float, clock: Clock
) -> Callable[[np.ndarray], np.ndarray]:
    """Its Gaussian process with its own kernel, which is a cheaper one, at fixed hyperparameters."""
    from sklearn.gaussian_process import GaussianProcessRegressor, _gpr
    from sklearn.gaussian_process.kernels import RBF

    timed = clock.timed("factorisation", _gpr.cholesky)
    with mock.patch.object(_gpr, "cholesky", timed):
        made = GaussianProcessRegressor(RBF(LENGTH), alpha=noise, optimizer=None).fit(x, y)
    return made.predict


def _gpytorch(
    x: np.ndarray, y: np.ndarray, tests: np.ndarray, noise: float, clock: Clock
) -> tuple[np.ndarray, int | None]:
    """The mean at the tests, and the most memory of its process; the same kernel as scikit-learn's."""
    with GPyTorch() as peer:
        few = min(len(x), 200)
        threads = len(os.sched_getaffinity(0))
        settings = {"noise": noise, "length": LENGTH, "threads": threads}
        peer.fit(x[:few], y[:few], tests[:few], **settings)  # its first call loads what it needs
        said = peer.fit(x, y, tests, **settings)
        clock.wall.update(said["wall"])
        clock.processor.update(said["processor"])
        clock.counts["factorisation"] = said["factorisations"]
        return peer.mean(), peer.high_water()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=int)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--choose-noise", action="store_true", help="by 10,000 rows, beforehand")
    options = parser.parse_args(arguments)
    chosen = choose_noise() if options.choose_noise else {"noise": NOISE}
    print(json.dumps(measure(options.points, options.way, chosen["noise"]) | {"chosen": chosen}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
