"""Kernels, posteriors and timings of neural-tangents, in the peer environment.

Once, from files:

    python neural_tangents_kernel.py arch.json inputs.npz output.npz --repeats 5

`arch.json` is a network as `../description.py` describes it; `inputs.npz` holds `x`, perhaps `x2`,
and with `x2` perhaps `y`. The output holds `ntk` and `nngp`, `first` (seconds of the first call,
compilation included) and `warm` (seconds of each later call); with `y` also the posterior `mean`
at `x2` given (`x`, `y`), `posterior_first` and `posterior_warm`; and `versions`, as JSON.

As a server with `--serve` (`protocol.py`):

    {"op": "load", "arch": {"layers": [...]}, "npz": path}   ->  {"first": seconds}
    {"op": "time"}                                           ->  {"seconds": seconds, "processor": seconds}
    {"op": "save", "npz": path}                              ->  {}
    {"op": "posterior", "arch": ..., "npz": path, "spread": bool, "out": path}
                                                             ->  {"seconds": seconds}
    {"op": "versions"}                                       ->  {library: version}

What is timed is what a user of the library would write, jitted, until the result is ready on the
device: `kernel_fn(x, None, "ntk")`, or `kernel_fn(x, x2, "ntk")`. Everything runs in float64.

A posterior is `gradient_descent_mse_ensemble(kernel_fn, x, y)` made anew and asked for the
mean at `x2` (with `spread` also for the variance), from the Gram matrix to the predictions; the
kernel is compiled once per architecture. `out` gets `mean` and perhaps `variance`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import protocol

KERNELS = ("ntk", "nngp")
LIBRARIES = ("neural-tangents", "jax", "jaxlib", "numpy", "scipy")


def compiled_kernel(arch: dict[str, Any]) -> Any:
    """The library's `kernel_fn(x1, x2, get)`, jitted, in float64."""
    import jax
    import neural_tangents_layers  # late: importing the library is slow and prints

    jax.config.update("jax_enable_x64", True)
    _, _, kernel_fn = neural_tangents_layers.serial(arch["layers"])
    return jax.jit(kernel_fn, static_argnums=2)


class Problem:
    """One architecture on one set of inputs, ready to be evaluated and timed."""

    def __init__(self, arch: dict[str, Any], inputs: str | Path) -> None:
        self._kernel_fn = compiled_kernel(arch)
        import jax

        with np.load(inputs) as arrays:
            self._x, self._x2 = (
                jax.numpy.asarray(arrays[name], dtype=np.float64) if name in arrays else None
                for name in ("x", "x2")
            )

    def time(self) -> float:
        """Seconds that one evaluation of the NTK takes; the first one compiles."""
        start = time.perf_counter()
        self._kernel_fn(self._x, self._x2, "ntk").block_until_ready()
        return time.perf_counter() - start

    def kernels(self) -> dict[str, np.ndarray]:
        values = self._kernel_fn(self._x, self._x2, KERNELS)
        return {name: np.asarray(value) for name, value in zip(KERNELS, values, strict=True)}


class Posteriors:
    """Posteriors of one architecture, whose compiled kernel is kept."""

    def __init__(self, arch: dict[str, Any]) -> None:
        self.arch = arch
        self._kernel_fn = compiled_kernel(arch)

    def predict(self, inputs: str | Path, spread: bool) -> tuple[float, dict[str, np.ndarray]]:
        """Seconds, and `mean` and perhaps `variance` at x2."""
        import jax
        import neural_tangents as nt

        with np.load(inputs) as arrays:
            x, y, x2 = (jax.numpy.asarray(arrays[name]) for name in ("x", "y", "x2"))
        start = time.perf_counter()
        predict = nt.predict.gradient_descent_mse_ensemble(self._kernel_fn, x, y[:, None])
        result = predict(x_test=x2, get="ntk", compute_cov=spread)
        jax.block_until_ready(result)
        seconds = time.perf_counter() - start
        if not spread:
            return seconds, {"mean": np.asarray(result)[:, 0]}
        mean, variance = np.asarray(result.mean)[:, 0], np.diagonal(result.covariance)
        return seconds, {"mean": mean, "variance": variance}


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def run_once(arch: dict[str, Any], inputs: Path, output: Path, repeats: int) -> None:
    """Evaluate one problem from files and write what comes out, with timings."""
    problem = Problem(arch, inputs)
    found: dict[str, Any] = {"first": problem.time()}
    found["warm"] = np.array([problem.time() for _ in range(repeats)])
    found |= problem.kernels()
    with np.load(inputs) as arrays:
        has_targets = "y" in arrays
    if has_targets:
        posteriors = Posteriors(arch)
        runs = [posteriors.predict(inputs, spread=False) for _ in range(repeats + 1)]
        seconds = [seconds for seconds, _ in runs]
        found |= {"posterior_first": seconds[0], "posterior_warm": np.array(seconds[1:])}
        found |= runs[-1][1]
    np.savez(output, versions=json.dumps(versions()), **found)


class Server:
    """Answers requests about the problem that was loaded last."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._posteriors: Posteriors | None = None

    def load(self, arch: dict[str, Any], npz: str) -> dict[str, Any]:
        self._problem = None  # a failure must not leave the old one behind
        problem = Problem(arch, npz)
        first = problem.time()
        self._problem = problem
        return {"first": first}

    def time(self) -> dict[str, Any]:
        start = time.process_time()
        return {"seconds": self._loaded().time(), "processor": time.process_time() - start}

    def save(self, npz: str) -> dict[str, Any]:
        np.savez(npz, **self._loaded().kernels())
        return {}

    def posterior(self, arch: dict[str, Any], npz: str, spread: bool, out: str) -> dict[str, Any]:
        if self._posteriors is None or self._posteriors.arch != arch:
            self._posteriors = Posteriors(arch)
        seconds, values = self._posteriors.predict(npz, spread)
        np.savez(out, **values)
        return {"seconds": seconds}

    def _loaded(self) -> Problem:
        if self._problem is None:
            raise ValueError("nothing is loaded")
        return self._problem


def main() -> None:
    """Run once or serve."""
    parser = argparse.ArgumentParser(description="Kernels and timings of neural-tangents.")
    parser.add_argument("arch", nargs="?", type=Path, help="JSON file of the architecture")
    parser.add_argument("inputs", nargs="?", type=Path, help=".npz with x, perhaps x2 and y")
    parser.add_argument("output", nargs="?", type=Path, help=".npz to write")
    parser.add_argument("--repeats", type=int, default=5, help="warm evaluations to time")
    parser.add_argument("--serve", action="store_true", help="answer requests on stdin")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    if options.serve:
        server = Server()
        operations = {name: getattr(server, name) for name in ("load", "time", "save", "posterior")}
        protocol.serve(operations | {"versions": versions})
    elif options.output is None:
        parser.error("arch, inputs and output are needed, unless --serve is given")
    else:
        arch = json.loads(options.arch.read_text())
        run_once(arch, options.inputs, options.output, options.repeats)


if __name__ == "__main__":
    main()
