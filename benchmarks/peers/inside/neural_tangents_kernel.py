"""Evaluate and time the kernels of neural-tangents, in the peer environment.

Once, from files:

    python neural_tangents_kernel.py arch.json inputs.npz output.npz --repeats 5

`arch.json` holds `{"layers": [{"layer": "Dense", "width": 128, ...}, ...]}`, `inputs.npz`
holds `x` and perhaps `x2`. The output holds the kernels asked for (`ntk`, `nngp`), `first`
(seconds of the first call, compilation included) and `warm` (seconds of each later call).

As a server, one JSON request a line on stdin and one JSON reply a line on stdout:

    {"op": "load", "arch": {"layers": [...]}, "npz": path}   ->  {"first": seconds}
    {"op": "time"}                                           ->  {"seconds": seconds}
    {"op": "save", "npz": path}                              ->  {}
    {"op": "posterior", "arch": ..., "npz": path, "spread": bool, "out": path}
                                                             ->  {"seconds": seconds}
    {"op": "quit"}                                           ->  {}

A request that fails is answered by `{"error": message}`. What is timed is what a user of
the library would write, jitted, until the result is ready on the device:
`kernel_fn(x, None, "ntk")`, or `kernel_fn(x, x2, "ntk")`. Everything runs in float64.

A posterior is `gradient_descent_mse_ensemble(kernel_fn, x, y)` made anew and asked for the
mean at `x2` (with `spread` also for the variance), from the Gram matrix to the predictions; the
kernel is compiled once per architecture. `out` gets `mean` and perhaps `variance`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

KERNELS = {"ntk": ("ntk",), "nngp": ("nngp",), "both": ("ntk", "nngp")}


def stax_layer(description: dict[str, Any]) -> Any:
    """The layer of neural-tangents for one layer of the neutral description."""
    from neural_tangents import stax  # late: importing it writes to stdout and is slow

    given = dict(description)
    kind = given.pop("layer")
    if kind == "Dense":
        bias = given.get("b_std", 0.0)
        return stax.Dense(given["width"], given.get("W_std", 1.0), bias if bias != 0 else None)
    if kind == "Parallel":
        branches = [stax_serial(branch) for branch in given["branches"]]
        return stax.serial(stax.FanOut(len(branches)), stax.parallel(*branches), stax.FanInSum())
    if kind == "LeakyRelu":
        return stax.LeakyRelu(given["slope"])
    if kind == "RectifiedPower":
        return stax.RectifiedMonomial(given["degree"])
    if kind in ("LayerNorm", "Relu", "Abs", "Identity"):
        return getattr(stax, kind)(**given)
    raise ValueError(f"unknown layer {kind!r}")


def stax_serial(layers: Iterable[dict[str, Any]]) -> Any:
    """The network of neural-tangents for a sequence of described layers."""
    from neural_tangents import stax

    return stax.serial(*map(stax_layer, layers))


class Problem:
    """One architecture on one set of inputs, ready to be evaluated and timed."""

    def __init__(self, arch: dict[str, Any], inputs: str | Path) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        _, _, kernel_fn = stax_serial(arch["layers"])
        self._kernel_fn = jax.jit(kernel_fn, static_argnames="get")
        with np.load(inputs) as arrays:
            self._x, self._x2 = (
                jax.numpy.asarray(arrays[name], dtype=np.float64) if name in arrays else None
                for name in ("x", "x2")
            )

    def time(self, kernel: str = "ntk") -> float:
        """Seconds that one evaluation takes; the first one compiles."""
        start = time.perf_counter()
        self._kernel_fn(self._x, self._x2, get=kernel).block_until_ready()
        return time.perf_counter() - start

    def kernels(self, names: tuple[str, ...] = KERNELS["both"]) -> dict[str, np.ndarray]:
        """The kernels of these names."""
        values = self._kernel_fn(self._x, self._x2, get=names)
        return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


class Posteriors:
    """Posteriors of one architecture, whose compiled kernel is kept."""

    def __init__(self, arch: dict[str, Any]) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.arch = arch
        _, _, kernel_fn = stax_serial(arch["layers"])
        self._kernel_fn = jax.jit(kernel_fn, static_argnums=2)

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


def run_once(options: argparse.Namespace) -> None:
    """Evaluate one problem from files and write its kernels and timings."""
    problem = Problem(json.loads(options.arch.read_text()), options.inputs)
    timed = "nngp" if options.get == "nngp" else "ntk"
    output: dict[str, Any] = {"first": problem.time(timed)}
    output["warm"] = np.array([problem.time(timed) for _ in range(options.repeats)])
    if not options.no_output:
        output |= problem.kernels(KERNELS[options.get])
    np.savez(options.output, **output)


class Server:
    """Answers requests about the problem that was loaded last."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._posteriors: Posteriors | None = None
        self._running = True

    def serve(self, requests: Iterable[str], replies: TextIO) -> None:
        """Answer one JSON object a line, until `quit` or the end of the stream."""
        for line in requests:
            try:
                reply = self.answer(json.loads(line))
            except Exception as failure:  # the client must hear of any
                reply = {"error": f"{type(failure).__name__}: {failure}"}
            print(json.dumps(reply), file=replies, flush=True)
            if not self._running:
                break

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request."""
        match request["op"]:
            case "load":
                self._problem = None  # a failure must not leave the old one behind
                problem = Problem(request["arch"], request["npz"])
                first = problem.time()
                self._problem = problem
                return {"first": first}
            case "time":
                return {"seconds": self._loaded().time()}
            case "save":
                kernels: dict[str, Any] = {**self._loaded().kernels()}
                np.savez(request["npz"], **kernels)
                return {}
            case "posterior":
                if self._posteriors is None or self._posteriors.arch != request["arch"]:
                    self._posteriors = Posteriors(request["arch"])
                seconds, values = self._posteriors.predict(request["npz"], request["spread"])
                np.savez(request["out"], **values)
                return {"seconds": seconds}
            case "quit":
                self._running = False
                return {}
            case other:
                raise ValueError(f"unknown op {other!r}")

    def _loaded(self) -> Problem:
        if self._problem is None:
            raise ValueError("nothing is loaded")
        return self._problem


def claim_stdout() -> TextIO:
    """A private stream to the real stdout; what others print goes to stderr from now on."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return stream


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Kernels and timings of neural-tangents.")
    parser.add_argument("arch", nargs="?", type=Path, help="JSON file of the architecture")
    parser.add_argument("inputs", nargs="?", type=Path, help=".npz with x and perhaps x2")
    parser.add_argument("output", nargs="?", type=Path, help=".npz to write")
    parser.add_argument("--repeats", type=int, default=5, help="warm evaluations to time")
    parser.add_argument(
        "--get",
        choices=tuple(KERNELS),
        default="both",
        help="kernels to store; the NTK is what is timed, unless this is nngp",
    )
    parser.add_argument("--no-output", action="store_true", help="store the timings only")
    parser.add_argument("--serve", action="store_true", help="answer requests on stdin")
    options = parser.parse_args(arguments)
    if not options.serve and options.output is None:
        parser.error("arch, inputs and output are needed, unless --serve is given")
    return options


def main() -> None:
    """Run once or serve, with the noise of the imported libraries kept away from stdout."""
    options = parse()
    replies = claim_stdout()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    if options.serve:
        Server().serve(sys.stdin, replies)
    else:
        run_once(options)


if __name__ == "__main__":
    main()
