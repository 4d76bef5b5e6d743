"""Train networks one by one in PyTorch, in its own environment, on request.

As a server (`protocol.py`):

    {"op": "train", "npz": path, "steps": 3000, "rate": 1e-3, "threads": 1, "how": "fused"}
        ->  {"seconds": seconds, "losses": [one for each network]}
    {"op": "versions"}  ->  {library: version}

The file holds `x` (n, d), `y` (n, 1) and the initial parameters of the networks, `W0`, `b0`, `W1`,
... with the networks along the first axis: Linear, LayerNorm without parameters, ReLU, Linear,
ReLU, ..., Linear. What is timed is what a user would write, in float32: the loop over networks and
steps, without reading the loss in between.

`how` is "plain" (Adam as it comes), "fused" (Adam in one kernel), "compiled" (`torch.compile` of
network and loss), or "vmap" (all networks at once by `torch.func`, which is not one by one).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import protocol
import torch
from torch import nn


def network(start: dict[str, np.ndarray], number: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    depth = len(start) // 2
    for i in range(depth):
        W, b = (torch.tensor(start[f"{name}{i}"][number]) for name in "Wb")
        linear = nn.Linear(*W.shape)
        with torch.no_grad():
            linear.weight.copy_(W.T)
            linear.bias.copy_(b)
        layers.append(linear)
        if i == 0:
            layers.append(nn.LayerNorm(W.shape[1], eps=0.0, elementwise_affine=False))
        if i < depth - 1:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def one_by_one(
    networks: list[nn.Sequential], x: Any, y: Any, steps: int, rate: float, how: str
) -> list[float]:
    def loss_of(model: nn.Module) -> Any:
        return 0.5 * (model(x) - y).square().sum()

    def compiled_loss_of(model: nn.Module) -> Any:
        return _compiled_loss(dict(model.named_parameters()), networks[0], x, y)

    loss = compiled_loss_of if how == "compiled" else loss_of
    losses = []
    for model in networks:
        optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=how != "plain" or None)
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
        with torch.no_grad():
            losses.append(float(loss_of(model)))
    return losses


@torch.compile
def _compiled_loss(params: Any, skeleton: nn.Module, x: Any, y: Any) -> Any:
    """With the parameters as arguments, so that it is compiled once for all networks."""
    return 0.5 * (torch.func.functional_call(skeleton, params, (x,)) - y).square().sum()


def all_at_once(
    networks: list[nn.Sequential], x: Any, y: Any, steps: int, rate: float, _: str
) -> list[float]:
    params, buffers = torch.func.stack_module_state(networks)
    skeleton = networks[0]

    def of(params: Any, buffers: Any) -> Any:
        return (
            0.5 * (torch.func.functional_call(skeleton, (params, buffers), (x,)) - y).square().sum()
        )

    losses_of = torch.func.vmap(of)
    optimizer = torch.optim.Adam(params.values(), lr=rate, fused=True)
    for _ in range(steps):
        optimizer.zero_grad()
        losses_of(params, buffers).sum().backward()
        optimizer.step()
    with torch.no_grad():
        return [float(loss) for loss in losses_of(params, buffers)]


def train(npz: str, steps: int, rate: float, threads: int, how: str) -> dict[str, Any]:
    torch.set_num_threads(threads)
    data = dict(np.load(npz))
    x, y = torch.tensor(data.pop("x")), torch.tensor(data.pop("y"))
    networks = [network(data, i) for i in range(len(data["W0"]))]
    began = time.perf_counter()
    trained = all_at_once if how == "vmap" else one_by_one
    losses = trained(networks, x, y, steps, rate, how)
    return {"seconds": time.perf_counter() - began, "losses": losses}


if __name__ == "__main__":
    protocol.serve(
        {"train": train, "versions": lambda: {"torch": torch.__version__, "numpy": np.__version__}}
    )
