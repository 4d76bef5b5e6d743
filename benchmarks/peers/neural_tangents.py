"""Ask neural-tangents for kernels and timings, from our own Python.

    with NeuralTangents() as peer:
        peer.load(arch, x)
        seconds = [peer.time() for _ in range(5)]
        theta = peer.kernels()["ntk"]

The library runs in a process and an environment of its own (`environment.py`), which stays
up between calls, so that a benchmark can time it in turns with ours. Standard library and
NumPy only.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np

from .environment import ensure

SERVER = Path(__file__).with_name("neural_tangents_kernel.py")
ACTIVATIONS = ("Relu", "Abs", "LeakyRelu", "RectifiedPower", "Homogeneous")


class NotExpressibleError(ValueError):
    """neural-tangents has no kernel for this architecture; the message says why."""


class PeerFailedError(RuntimeError):
    """neural-tangents, or the process it runs in, failed."""


def describe(arch: Any) -> dict[str, Any]:
    """The neutral description of an lnkernel architecture, as the peer process reads it.

    Raises:
        NotExpressibleError: if neural-tangents has no kernel for it.
    """
    walk = _Walk(gaussian=False)
    return {"layers": walk.layers(arch)}


class _Walk:
    """A walk along one branch that keeps what neural-tangents needs to know of the state.

    `gaussian`: whether the state is Gaussian, as activations, norms and sums need it.
    `independent`: whether a Dense stands between the start of the branch and here.
    """

    def __init__(self, gaussian: bool) -> None:
        self.gaussian = gaussian
        self.independent = False

    def layers(self, node: Any) -> list[dict[str, Any]]:
        """The descriptions of the layers of `node`, nested sequences flattened."""
        if type(node).__name__ == "Serial":
            return [described for inner in node.layers for described in self.layers(inner)]
        return [self.layer(node)]

    def layer(self, layer: Any) -> dict[str, Any]:
        kind = type(layer).__name__
        if kind == "Identity":
            return {"layer": "Identity"}
        if kind == "Dense":
            return self.dense(layer)
        if kind == "LayerNorm":
            return self.layer_norm(layer)
        if kind == "Parallel":
            return self.parallel(layer)
        if kind in ACTIVATIONS:
            return self.activation(layer)
        raise NotExpressibleError(f"neural-tangents has no {kind}")

    def dense(self, layer: Any) -> dict[str, Any]:
        self.gaussian = self.independent = True
        return {
            "layer": "Dense",
            "width": int(layer.width),
            "W_std": float(layer.W_std),
            "b_std": float(layer.b_std),
        }

    def layer_norm(self, layer: Any) -> dict[str, Any]:
        if layer.scale or layer.bias:
            raise NotExpressibleError("neural-tangents has no trainable scale or bias in LayerNorm")
        if not self.gaussian:
            raise NotExpressibleError(
                "neural-tangents has LayerNorm on the output of a Dense only, "
                "not after an activation or on the input of the network"
            )
        return {"layer": "LayerNorm", "eps": float(layer.eps)}

    def activation(self, layer: Any) -> dict[str, Any]:
        if not self.gaussian:
            raise NotExpressibleError("neural-tangents needs a Dense before each activation")
        self.gaussian = False
        degree, a, b = float(layer.degree), float(layer.a), float(layer.b)
        if degree == a == 1:
            named = {0.0: "Relu", 1.0: "Abs"}
            return {"layer": named[b]} if b in named else {"layer": "LeakyRelu", "slope": -b}
        if a == 1 and b == 0 and degree.is_integer():
            return {"layer": "RectifiedPower", "degree": int(degree)}
        raise NotExpressibleError(
            f"neural-tangents has no {layer}: only relu, leaky relu, abs and the "
            "rectified powers of integer degree"
        )

    def parallel(self, layer: Any) -> dict[str, Any]:
        walks = [_Walk(self.gaussian) for _ in layer.branches]
        branches = [walk.layers(branch) for walk, branch in zip(walks, layer.branches, strict=True)]
        if len(walks) > 1 and not all(walk.gaussian for walk in walks):
            raise NotExpressibleError(
                "neural-tangents adds branches only if each ends in a Gaussian state "
                "(a Dense, or a skip from one)"
            )
        skips = sum(not walk.independent for walk in walks)
        if skips > 1:
            raise NotExpressibleError(
                "neural-tangents takes branches to be independent: "
                "only one of them can be without a Dense"
            )
        self.gaussian = all(walk.gaussian for walk in walks)
        self.independent = self.independent or skips == 0
        return {"layer": "Parallel", "branches": branches}


class NeuralTangents:
    """neural-tangents in a process of its own; a context manager that ends the process.

    The first use on a machine builds the peer environment, which takes minutes.
    """

    def __init__(self) -> None:
        python = ensure()
        self._files = tempfile.TemporaryDirectory()
        self._log = self._path("log.txt")
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                [python, "-I", SERVER, "--serve"],  # -I: our PYTHONPATH is not for the peer
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def load(self, layers: Any, x: Any, x2: Any = None) -> float:
        """Take an architecture and inputs; seconds of the first evaluation, with compilation.

        Args:
            layers: an lnkernel architecture, its description (`describe`), or the list of
                layers in the description.
            x: inputs, one a row.
            x2: second inputs; without them the kernel is that of `x` with itself.
        """
        if isinstance(layers, dict):
            arch = layers
        else:
            arch = {"layers": layers} if isinstance(layers, list) else describe(layers)
        arrays: dict[str, Any] = {"x": np.asarray(x, dtype=np.float64)}
        if x2 is not None:
            arrays["x2"] = np.asarray(x2, dtype=np.float64)
        path = self._path("inputs.npz")
        np.savez(path, **arrays)
        return self._ask(op="load", arch=arch, npz=path)["first"]

    def time(self) -> float:
        """Seconds of one warm evaluation of the NTK."""
        return self._ask(op="time")["seconds"]

    def kernels(self) -> dict[str, np.ndarray]:
        """The kernels `ntk` and `nngp` of what was loaded."""
        path = self._path("kernels.npz")
        self._ask(op="save", npz=path)
        with np.load(path) as arrays:
            return dict(arrays)

    def posterior(
        self, arch: Any, x: Any, y: Any, x2: Any, spread: bool = False
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Seconds of a posterior given (x, y), predicting at x2; its `mean`, perhaps `variance`.

        The first call for an architecture and for shapes of data compiles.
        """
        given, made = self._path("data.npz"), self._path("posterior.npz")
        np.savez(given, x=np.asarray(x, float), y=np.asarray(y, float), x2=np.asarray(x2, float))
        request = {"op": "posterior", "arch": describe(arch), "npz": given, "out": made}
        seconds = self._ask(**request, spread=spread)["seconds"]
        with np.load(made) as arrays:
            return seconds, dict(arrays)

    def close(self) -> None:
        """End the process and remove its files."""
        try:
            self._process.communicate('{"op": "quit"}\n', timeout=30)
        except (OSError, ValueError, subprocess.TimeoutExpired):  # it is dead, or stuck
            self._process.kill()
            self._process.wait()
        self._files.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path(self, name: str) -> str:
        return os.path.join(self._files.name, name)

    def _ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and return the reply to it."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None and replies is not None  # both are pipes
        try:
            print(json.dumps(request), file=requests, flush=True)
            line = replies.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            log = Path(self._log).read_text()
            raise PeerFailedError(f"the peer process ended:\n{log[-2000:]}")
        reply = json.loads(line)
        if "error" in reply:
            raise PeerFailedError(reply["error"])
        return reply
