"""Where a position stands, told to the network: a random, trained vector for each, added to its features."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from lnkernel.arch.flow import Kind, Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.traits import EVERYWHERE, Traits, traits
from lnkernel.arch.window import at_positions
from lnkernel.check.layers import finite, not_negative
from lnkernel.check.numbers import as_number
from lnkernel.errors import ArchitectureError

SMALLEST = 1e-10  # eigenvalue of a covariance, beside the largest, that counts as rounding


@node
class PositionalEmbedding(Node):
    r"""$h_p + \sigma e_p$, with a Gaussian vector $e_p$ for every position, the same for all inputs, trained.

    Its coordinates have the covariance
    $R_{pp'} = E\,e_p e_{p'}$, which is 1 for $p = p'$ and otherwise as `decay` says.

    Args:
        std: $\sigma$.
        decay: None, for vectors that are independent; a length $l > 0$, for $R_{pp'} = e^{-d/l^{norm}}$; or a function
            of $d$, an array, for $R_{pp'} = \mathrm{decay}(d)$.
        norm: $d = \sum_i |p_i - p_i'|^{norm}$ over the axes of the positions.

    >>> import numpy as np, lnkernel as lnk
    >>> body = lnk.Dense(64), lnk.PositionalEmbedding(0.5), lnk.Relu()
    >>> arch = lnk.serial(*body, lnk.GlobalAvgPool(), lnk.Dense(1))
    >>> words = np.random.default_rng(0).normal(size=(1, 5, 3))
    >>> mixed = words[:, [3, 0, 4, 2, 1]]
    >>> bool(lnk.ntk(arch)(words, mixed) < lnk.ntk(arch)(words))    # the order counts
    True
    """

    std: float = 1.0
    decay: float | Callable[[Any], Any] | None = static(default=None)
    norm: float = static(default=2.0)

    def __post_init__(self) -> None:
        finite(self, "std")
        not_negative(self, "std")
        _check_positive(self, "norm", "norm=2.0")
        if self.decay is not None and not callable(self.decay):
            _check_positive(self, "decay", "decay=3.0, or a function of the distance")

    def covariance(self, shape: tuple[int, ...]) -> np.ndarray:
        """R of all positions of this shape, (count, count)."""
        return _covariance(self.decay, self.norm, shape)


def _check_positive(layer: PositionalEmbedding, name: str, example: str) -> None:
    value = as_number(getattr(layer, name))
    if value is None or not 0 < value < math.inf:
        raise ArchitectureError(
            "PositionalEmbedding",
            "",
            f"{name} must be a positive, finite number, got {getattr(layer, name)!r}",
            f"Write e.g. {example}",
        )
    object.__setattr__(layer, name, value)


@lru_cache(maxsize=32)
def _covariance(
    decay: float | Callable[[Any], Any] | None, norm: float, shape: tuple[int, ...]
) -> np.ndarray:
    count = math.prod(shape)
    if decay is None:
        return np.eye(count)
    places = np.indices(shape).reshape(len(shape), count).astype(np.float64)
    distance = (np.abs(places[:, :, None] - places[:, None]) ** norm).sum(axis=0)
    if callable(decay):
        with jax.enable_x64(True), jax.ensure_compile_time_eval():  # it may be called inside a jit
            made = np.asarray(decay(distance), np.float64)
    else:
        made = np.exp(-distance / decay**norm)
    if made.shape != distance.shape or not np.isfinite(made).all():
        _refuse(
            f"decay makes an array of shape {made.shape}, or numbers that are not finite, of distances of shape "
            f"{distance.shape}",
            "Write a function of every distance by itself, e.g. lambda d: jnp.exp(-d)",
        )
    values = np.linalg.eigvalsh(made)
    if values[0] < -SMALLEST * max(values[-1], 1e-300) or made[0, 0] <= 0:
        _refuse(
            f"decay and norm={norm:g} make no covariance of {count} positions: it has the eigenvalue {values[0]:.3g}",
            "Take a positive definite function, such as a length with norm of at most 2, or lambda d: jnp.exp(-d)",
        )
    made.flags.writeable = False
    return made


def _refuse(reason: str, remedy: str) -> None:
    raise ArchitectureError("PositionalEmbedding", "", reason, remedy)


def demand_channels(layer: Node, place: Place, here: str) -> None:
    """Refuse embeddings of the raw input, whose channels are few."""
    if place.kind is Kind.INPUT:
        raise ArchitectureError(
            type(layer).__name__,
            here,
            "it adds embeddings to the raw input, whose finitely many channels do not average them out, so that the "
            "kernel stays random at every width",
            "Put a Dense or Conv before it",
        )


@step.register
def _(layer: PositionalEmbedding, place: Place, here: str) -> Place:
    """The trainable scales before it act on one part of the sum alone."""
    axes = at_positions(layer, place, here)
    demand_channels(layer, place, here)
    return dataclasses.replace(
        place,
        space=Space.POSITIONS,
        axes=axes,
        scaled=False,
        mixed=place.mixed or place.scaled,
    )


@traits.register
def _(layer: PositionalEmbedding) -> Traits:
    """It compares the differences of the lengths of two parts."""
    return Traits(
        needs_difference=EVERYWHERE,
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        on_positions=True,
    )
