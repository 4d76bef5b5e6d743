"""Low-rank adapters for the linear layers of a module."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flax import nnx

from lnkernel.check.numbers import as_number, positive_integer
from lnkernel.errors import InputError
from lnkernel.finite.build import as_rngs
from lnkernel.finite.training.arguments import check_module
from lnkernel.tangents.selection import Path, Wrt, choose, spell
from lnkernel.tangents.structure import is_linear, scales


def add_lora(
    model: nnx.Module,
    rank: int,
    where: Wrt = None,
    *,
    A_std: float | None = None,
    rngs: nnx.Rngs | int | Any,
) -> nnx.Module:
    r"""A copy of the model with a low-rank adapter around linear layers $c\,W a + s\,b$,

        h(a) = layer(a) + a A B,     A ~ N(0, c² A_std²), (inputs, rank),     B = 0, (rank, outputs).

    The function is the same as before, because B = 0. Then only B has a gradient, and the mean of its
    tangent kernel over A is $\mathrm{rank} \cdot A_{std}^2$ times that of the layer's weights W.

    Args:
        model: any `flax.nnx.Module`; it is not changed.
        rank: the rank of the adapters.
        where: which of the linear layers (`nnx.Linear`, and those of twins): a path, a list of paths or
            a predicate on the path, as `wrt` of `lnkernel.tangent`; by default all.
        A_std: by default $1/\sqrt{\mathrm{rank}}$, so that the factor is 1.
        rngs: the source of A, an `nnx.Rngs`, a seed or a key of `jax.random`.

    >>> import lnkernel as lnk
    >>> from flax import nnx
    >>> f = lnk.finite.network(lnk.mlp(hidden=2), in_dim=3, width=16, rngs=0)
    >>> g = lnk.finite.add_lora(f, rank=2, where="layers/2", rngs=1)
    >>> lnk.tangent(g, wrt=nnx.LoRAParam).paths
    [('layers', 2, 'lora_a'), ('layers', 2, 'lora_b')]
    """
    check_module(model)
    size = positive_integer("rank", rank)
    spread = 1 / math.sqrt(size) if A_std is None else as_number(A_std)
    if spread is None or not 0 < spread < math.inf:
        raise InputError("A_std", "a positive number", repr(A_std), "Leave it out for 1/√rank")
    made, source = nnx.clone(model), as_rngs(rngs)
    wanted = choose(True if where is None else where)
    linear = [(path, layer) for path, layer in nnx.iter_modules(made) if is_linear(layer)]
    chosen = [(path, layer) for path, layer in linear if path and wanted(path, layer)]
    if not chosen:
        known = ", ".join(spell(path) for path, _ in linear if path) or "none"
        raise InputError(
            "where",
            "at least one linear layer inside of the model",
            repr(where),
            f"Its linear layers are {known}",
        )
    for path, layer in chosen:
        _replace(made, path, _adapt(layer, size, spread, source))
    return made


def _adapt(layer: Any, rank: int, spread: float, rngs: nnx.Rngs) -> nnx.LoRA:
    inputs, outputs = layer.kernel.shape
    scale, _ = scales(layer)
    return nnx.LoRA(
        inputs,
        rank,
        outputs,
        base_module=layer,
        param_dtype=layer.kernel.dtype,
        a_initializer=nnx.initializers.normal(float(np.abs(scale)) * spread),
        rngs=rngs,
    )


def _replace(model: Any, path: Path, layer: Any) -> None:
    """Put a layer where another one was: an attribute of a module, or an item of a list."""
    owner = model
    for key in path[:-1]:
        owner = owner[key] if isinstance(key, int) else getattr(owner, key)
    if isinstance(path[-1], int):
        owner[path[-1]] = layer
    else:
        setattr(owner, path[-1], layer)
