"""The arguments that several functions share, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import optax
from flax import nnx

from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError
from lnkernel.finite.build import DTYPES


class Settings(NamedTuple):
    """How to train, checked."""

    steps: int
    batch_size: int | None
    checkpoint: Any
    checkpoint_every: int
    progress: bool | None


def settings_of(
    points: int,
    steps: Any,
    batch_size: Any,
    checkpoint: Any,
    checkpoint_every: Any,
    progress: bool | None,
) -> Settings:
    if batch_size is not None and positive_integer("batch_size", batch_size) > points:
        raise InputError(
            "batch_size",
            f"at most the number of points, {points}",
            repr(batch_size),
            "Omit it to use all points in every step",
        )
    return Settings(
        positive_integer("steps", steps),
        None if batch_size is None else int(batch_size),
        checkpoint,
        positive_integer("checkpoint_every", checkpoint_every),
        progress,
    )


def precision_of(dtype: Any) -> np.dtype[Any]:
    try:
        made = np.dtype(dtype)
    except TypeError:
        made = None
    if made is None or made.name not in DTYPES:
        raise InputError("dtype", " or ".join(DTYPES), repr(dtype), "Write dtype=jnp.float32")
    return made


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, optax.GradientTransformation):
        raise InputError(
            "optimizer",
            "an optimizer of optax",
            f"{optimizer!r} of type {type(optimizer).__name__}",
            "Write e.g. optimizer=optax.adam(1e-3), or optax.sgd(rate) for gradient descent",
        )


def check_module(network: Any) -> None:
    if not isinstance(network, nnx.Module):
        raise InputError(
            "network",
            "a flax.nnx.Module",
            f"{network!r} of type {type(network).__name__}",
            "Make one by lnkernel.finite.network(arch, in_dim, rngs=0)",
        )
