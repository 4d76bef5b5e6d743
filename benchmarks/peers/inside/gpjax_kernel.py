r"""The arc-cosine kernel of GPJax as that of an infinitely wide layer, in its own environment.

GPJax's `ArcCosine(order=n, variance=s, weight_variance=w, bias_variance=c)` is

    s/π · (q q')^{n/2} · J_n(θ),   q = w x·x + c,   cos θ = (w x·x' + c)/√(q q'),

and Cho and Saul (2009) have E[u₊ⁿ u'₊ⁿ] = (q q')^{n/2} J_n(θ)/(2π) for Gaussian (u, u') with these
covariances. So the layer `Dense(W_std, b_std)` and then u₊ⁿ has the NNGP kernel with

    s = 1/2,   w = W_std²/d,   c = b_std²,   n = 0, 1, 2,

of inputs in d dimensions; n = 0, the step function, is what the NTK of n = 1 multiplies by.

Once, from files: `python gpjax_kernel.py arch.json inputs.npz output.npz --repeats 5`, where
`arch.json` is `../description.py`'s, of one Dense and one Relu or RectifiedPower, and `inputs.npz`
holds `x` and perhaps `x2`. The output holds `nngp`, `first` and `warm` (seconds), `versions`.

As a server with `--serve` (`protocol.py`):

    {"op": "load", "arch": {"layers": [...]}, "npz": path}   ->  {"first": seconds}
    {"op": "time"}                                           ->  {"seconds": seconds}
    {"op": "save", "npz": path}                              ->  {}
    {"op": "versions"}                                       ->  {library: version}

What is timed is `cross_covariance`, jitted, in float64.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import protocol

jax.config.update("jax_enable_x64", True)

from gpjax.kernels import ArcCosine  # noqa: E402  # its types are checked by what x64 is now

LIBRARIES = ("gpjax", "jax", "jaxlib", "numpy")


def kernel(arch: dict[str, Any], dimension: int) -> ArcCosine:
    """The kernel of one layer."""
    dense, activation = arch["layers"]
    order = {"Relu": 1, "RectifiedPower": activation.get("degree")}[activation["layer"]]
    return ArcCosine(
        order=order,
        variance=0.5,
        weight_variance=dense.get("W_std", 1.0) ** 2 / dimension,
        bias_variance=dense.get("b_std", 0.0) ** 2,
    )


class Problem:
    """One layer on one set of inputs."""

    def load(self, arch: dict[str, Any], npz: str | Path) -> dict[str, Any]:
        with np.load(npz) as arrays:
            self._x = jax.numpy.asarray(arrays["x"], dtype=np.float64)
            x2 = arrays["x2"] if "x2" in arrays else arrays["x"]
            self._x2 = jax.numpy.asarray(x2, dtype=np.float64)
        covariance = kernel(arch, self._x.shape[1]).cross_covariance
        self._matrix = jax.jit(lambda x, x2: covariance(x, x2))  # a bound method is not hashable
        return {"first": self.time()["seconds"]}

    def time(self) -> dict[str, Any]:
        start = time.perf_counter()
        self._nngp = self._matrix(self._x, self._x2).block_until_ready()
        return {"seconds": time.perf_counter() - start}

    def save(self, npz: str | Path, **more: Any) -> dict[str, Any]:
        np.savez(npz, nngp=np.asarray(self._nngp), **more)
        return {}


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def main() -> None:
    parser = argparse.ArgumentParser(description="The arc-cosine kernel of GPJax.")
    parser.add_argument("arch", nargs="?", type=Path, help="JSON file of the layer")
    parser.add_argument("inputs", nargs="?", type=Path, help=".npz with x and perhaps x2")
    parser.add_argument("output", nargs="?", type=Path, help=".npz to write")
    parser.add_argument("--repeats", type=int, default=5, help="warm evaluations to time")
    parser.add_argument("--serve", action="store_true", help="answer requests on stdin")
    options = parser.parse_args()
    problem = Problem()
    if options.serve:
        operations = {name: getattr(problem, name) for name in ("load", "time", "save")}
        protocol.serve(operations | {"versions": versions})
        return
    if options.output is None:
        parser.error("arch, inputs and output are needed, unless --serve is given")
    first = problem.load(json.loads(options.arch.read_text()), options.inputs)["first"]
    warm = [problem.time()["seconds"] for _ in range(options.repeats)]
    problem.save(options.output, first=first, warm=warm, versions=json.dumps(versions()))


if __name__ == "__main__":
    main()
