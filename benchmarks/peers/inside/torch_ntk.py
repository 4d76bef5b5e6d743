"""The tangent kernel of a network as it stands, by `torch.func`, in float64.

As a server (`protocol.py`):

    {"op": "load", "npz": path, "threads": 2}   ->  {}
    {"op": "time", "way": "jacobian"}           ->  {"seconds": seconds}
    {"op": "time_tiles", "tile": 100}           ->  {"seconds": seconds}
    {"op": "save", "npz": path}                 ->  {}
    {"op": "versions"}                          ->  {library: version}

The file holds `x` (n, d), perhaps `x2` (m, d), and the parameters `W0` (d, width), `b0` (width,),
`W1`, ... with the numbers `W_std` and `b_std` of all layers: Dense in NTK parametrisation,
LayerNorm without parameters behind the first (unless `norm` is there and false), ReLU between them.

The ways are the two that PyTorch's own tutorial on neural tangent kernels has: "jacobian"
contracts the Jacobians, `vmap(jacrev(f))`, and "vector" takes `jvp` of `f` along what `vjp` gives,
pair by pair. `time_tiles` is "jacobian" with so many inputs at a time, whose Jacobians fit. `save`
writes `ntk` as it was made last.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import protocol
import torch
from torch.func import jacrev, jvp, vjp, vmap

Parameters = dict[str, torch.Tensor]


class Network:
    """The function of parameters and one input, and its tangent kernel in two ways."""

    def __init__(self, W_std: float, b_std: float, depth: int, norm: bool) -> None:
        self._W_std, self._b_std, self._depth, self._norm = W_std, b_std, depth, norm

    def __call__(self, parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
        for i in range(self._depth):
            W, b = parameters[f"W{i}"], parameters[f"b{i}"]
            x = self._W_std / W.shape[0] ** 0.5 * (x @ W) + self._b_std * b
            if i == 0 and self._norm:
                x = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=0.0)
            if i < self._depth - 1:
                x = torch.relu(x)
        return x

    def jacobian(self, parameters: Parameters, x: Any, x2: Any) -> torch.Tensor:
        one, other = (vmap(jacrev(self), (None, 0))(parameters, points) for points in (x, x2))
        pairs = ((a.flatten(2), other[name].flatten(2)) for name, a in one.items())
        return sum(torch.einsum("nof,mof->nm", a, b) for a, b in pairs)

    def vector(self, parameters: Parameters, x: Any, x2: Any) -> torch.Tensor:
        def of_pair(point: torch.Tensor, point2: torch.Tensor) -> torch.Tensor:
            output, back = vjp(lambda p: self(p, point), parameters)
            (slopes,) = back(torch.ones_like(output))
            return jvp(lambda p: self(p, point2), (parameters,), (slopes,))[1][0]

        return vmap(vmap(of_pair, (None, 0)), (0, None))(x, x2)


class Server:
    """Answers requests about the network that was loaded last."""

    def load(self, npz: str, threads: int) -> dict[str, Any]:
        torch.set_num_threads(threads)
        with np.load(npz) as arrays:
            given = {name: torch.tensor(arrays[name]) for name in arrays}
        self._x = given.pop("x")
        self._x2 = given.pop("x2", self._x)
        W_std, b_std = float(given.pop("W_std")), float(given.pop("b_std"))
        norm = bool(given.pop("norm", True))
        self._parameters = given
        self._network = Network(W_std, b_std, len(given) // 2, norm)
        return {}

    def time(self, way: str) -> dict[str, Any]:
        start = time.perf_counter()
        with torch.no_grad():
            self._ntk = getattr(self._network, way)(self._parameters, self._x, self._x2)
        return {"seconds": time.perf_counter() - start}

    def time_tiles(self, tile: int) -> dict[str, Any]:
        """Every pair of tiles once; of a symmetric matrix, as this is, those above the diagonal."""
        start, parts = time.perf_counter(), self._x.split(tile)
        n = len(self._x)
        self._ntk = torch.empty(n, n, dtype=self._x.dtype)
        with torch.no_grad():
            for i, one in enumerate(parts):
                for j, other in enumerate(parts[i:], i):
                    rows, columns = (slice(at * tile, at * tile + tile) for at in (i, j))
                    made = self._network.jacobian(self._parameters, one, other)
                    self._ntk[rows, columns] = made
                    self._ntk[columns, rows] = made.T
        return {"seconds": time.perf_counter() - start}

    def save(self, npz: str) -> dict[str, Any]:
        np.savez(npz, ntk=self._ntk.numpy())
        return {}


if __name__ == "__main__":
    server = Server()
    operations = {name: getattr(server, name) for name in ("load", "time", "time_tiles", "save")}
    protocol.serve(
        operations | {"versions": lambda: {"torch": torch.__version__, "numpy": np.__version__}}
    )
