"""How long the first calls of neural-tangents take, in a process that has done nothing else.

    python neural_tangents_first.py '{"arch": {"layers": [...]}, "calls": [CALL, ...], "jit": true}'

A CALL is {"name": ..., "kind": "matrix", "n": 2000, "d": 10, "m": null}; its kind may also be "posterior" (mean and
spread at m points, given n) or "gradient" (of one entry, by the first point). The answer, in one line, is
{"import": [wall, processor], name: [wall, processor], ...} in seconds; "jit" is whether the kernel function is compiled
as a whole, or called as it is. Everything runs in float64.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import protocol

Times = tuple[float, float]


def timed(call: Callable[[], Any]) -> Times:
    """Wall and processor seconds until the result is there."""
    import jax

    wall, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(call())
    return time.perf_counter() - wall, time.process_time() - processor


def loaded() -> Times:
    """Seconds that the import takes."""
    wall, processor = time.perf_counter(), time.process_time()
    import jax
    import neural_tangents  # noqa: F401

    seconds = time.perf_counter() - wall, time.process_time() - processor
    jax.config.update("jax_enable_x64", True)
    jax.numpy.zeros(3).block_until_ready()  # the backend starts
    return seconds


def prepared(kernel_fn: Any, rng: np.random.Generator, call: dict[str, Any]) -> Callable[[], Any]:
    """What is to be timed, with its inputs made."""
    import jax
    import neural_tangents as nt

    x = rng.normal(size=(call["n"], call["d"]))
    x2 = None if call["m"] is None else rng.normal(size=(call["m"], call["d"]))
    if call["kind"] == "matrix":
        return lambda: kernel_fn(x, x2, "ntk")
    if call["kind"] == "gradient":
        return lambda: jax.grad(lambda v: kernel_fn(v[None], x2, "ntk")[0, 0])(x[0])

    def posterior() -> Any:
        predict = nt.predict.gradient_descent_mse_ensemble(kernel_fn, x, x[:, :1])
        return predict(x_test=x2, get="ntk", compute_cov=True)

    return posterior


def main() -> None:
    """Time all calls in order."""
    asked = json.loads(sys.argv[1])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    replies = protocol.claim_stdout()
    found = {"import": loaded()}
    import jax
    import neural_tangents_layers

    _, _, kernel_fn = neural_tangents_layers.serial(asked["arch"]["layers"])
    kernel_fn = jax.jit(kernel_fn, static_argnums=2) if asked["jit"] else kernel_fn
    rng = np.random.default_rng(0)
    for call in asked["calls"]:
        found[call["name"]] = timed(prepared(kernel_fn, rng, call))
    print(json.dumps(found), file=replies, flush=True)


if __name__ == "__main__":
    main()
