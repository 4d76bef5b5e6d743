"""Activations whose pairs NumPy computes with all care, at any angle, where others are integrated by a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64.moments import Moments

Layer = TypeVar("Layer", bound=Elementwise)


class KnownPairs(NamedTuple):
    """How that is done for an activation."""

    suits: Callable[[float], bool]  # up to some length
    dual: Callable[[Covariance, float], Dual]  # of pairs listed side by side, none longer
    moments: Callable[[float, np.ndarray], Moments] | None = None  # of inputs, if not as ever
    for_all: bool = False  # whether it takes less time than the quick way


@singledispatch
def known_pairs(layer: Elementwise) -> KnownPairs:
    """How it is done for this activation."""
    raise NotImplementedError(type(layer).__name__)


def plain(layer: Layer) -> Layer:
    """The layer with plain numbers, by which tables are kept."""
    made: Layer = jax.tree.map(float, layer)
    return made
