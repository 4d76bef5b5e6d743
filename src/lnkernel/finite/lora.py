r"""Low-rank adapters: every chosen linear layer $x W$ becomes $x\,(W + A B)$, with $B = 0$ at first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flax import nnx

from lnkernel.check import positive_integer
from lnkernel.errors import InputError

Path = tuple[str | int, ...]


def add_lora(
    network: nnx.Module,
    rank: int,
    *,
    rngs: nnx.Rngs | int = 0,
    where: Callable[[Path], bool] | None = None,
    deviation: float | None = None,
) -> nnx.Module:
    r"""A copy of a network whose chosen linear layers $x W + b$ are $x\,(W + A B) + b$.

    $B$ starts at 0, so that the network is the same function at first, and to first order only B
    moves it. With $A \sim N(0, \sigma^2)$ its tangent kernel has the mean $r \sigma^2 K_W$, where
    $K_W$ is that of the matrix W (Hu et al. 2022; r is the rank).

    Args:
        network: a `flax.nnx.Module`; it is not changed.
        rank: r, of A (inputs, r) and B (r, outputs), the `nnx.LoRAParam`s of an `nnx.LoRA`.
        rngs: of A.
        where: a predicate on the path of a `nnx.Linear`, such as ("layers", 0); by default all.
        deviation: σ. By default $1/\sqrt r$, so that the mean of the kernel is $K_W$ itself.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> from flax import nnx
    >>> net = nnx.Sequential(nnx.Linear(3, 8, rngs=nnx.Rngs(0)), nnx.Linear(8, 2, rngs=nnx.Rngs(1)))
    >>> adapted = lnk.finite.add_lora(net, rank=2, where=lambda path: path == ("layers", 0))
    >>> bool((net(jnp.ones((1, 3))) == adapted(jnp.ones((1, 3)))).all())
    True
    >>> lnk.tangent(adapted, wrt=nnx.LoRAParam).paths
    [('layers', 0, 'lora_a'), ('layers', 0, 'lora_b')]
    """
    r = positive_integer("rank", rank)
    spread = 1 / math.sqrt(r) if deviation is None else float(deviation)
    keys = rngs if isinstance(rngs, nnx.Rngs) else nnx.Rngs(rngs)
    made: nnx.Module = nnx.clone(network)
    linear = [path for path, part in nnx.iter_modules(made) if type(part) is nnx.Linear]
    chosen = [path for path in linear if path and (where is None or where(path))]
    if not chosen:
        known = ", ".join("/".join(map(str, path)) for path in linear if path)
        raise InputError(
            "where" if linear else "network",
            "at least one nnx.Linear inside of the module",
            f"none chosen of {known}" if known else f"{type(network).__name__} without any",
            "Choose among their paths, or put the layer into an nnx.Sequential",
        )
    for path in chosen:
        parent = _at(made, path[:-1])
        layer = _at(parent, path[-1:])
        adapter = nnx.LoRA(
            layer.in_features,
            r,
            layer.out_features,
            base_module=layer,
            param_dtype=layer.kernel[...].dtype,
            a_initializer=nnx.initializers.normal(spread),
            rngs=keys,
        )
        if isinstance(path[-1], int):
            parent[path[-1]] = adapter
        else:
            setattr(parent, path[-1], adapter)
    return made


def _at(module: Any, path: Path) -> Any:
    for key in path:
        module = module[key] if isinstance(key, int) else getattr(module, key)
    return module
