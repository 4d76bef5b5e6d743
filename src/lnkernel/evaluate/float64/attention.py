"""Sums over all positions, of arrays whose last axes are positions, with the weights of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.calculus.attention import (
    attention_weights,
    constant_block,
    sum_of_products,
    weighted_sums,
)
from lnkernel.calculus.positions import Positions
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.precise import plain
from lnkernel.types import Array


@attention_weights.register
def _(num: Float64, kind: str, scores: Any) -> Any:
    xp = namespace.of(scores)
    if kind == "softmax":
        largest = namespace.constant(scores.max(axis=-1, keepdims=True))
        powers = xp.exp(scores - largest)
        return powers / powers.sum(axis=-1, keepdims=True)
    return {"identity": scores, "relu": xp.maximum(scores, 0.0), "abs": xp.abs(scores)}[kind]


@weighted_sums.register
def _(num: Float64, x: Any, at: Positions, first: Any, second: Any) -> Any:
    x = plain(x)  # what single inputs tell of themselves may have twice the digits
    xp = namespace.of(x, first, second)
    if not at.paired:  # as if all positions were alike
        return _largest(x, at) * np.square(first.sum(axis=-1)).reshape(-1, *at.shape)
    made = first @ _as_matrix(x, at) @ xp.swapaxes(second, -1, -2)
    return made.reshape(*made.shape[:-2], *at.form(None))


@sum_of_products.register
def _(num: Float64, x: Any, y: Any, at: Positions) -> Any:
    x, y = plain(x), plain(y)
    if not at.paired:
        return int(np.prod(at.shape)) ** 2 * _largest(x, at) * _largest(y, at)
    count = 2 * len(at.shape)
    return (x * y).sum(axis=tuple(range(-count, 0)), keepdims=True)


@constant_block.register
def _(num: Float64, matrix: Any, at: Positions) -> Any:
    if not at.paired:
        return np.diagonal(matrix).reshape(at.form(None))
    return matrix.reshape(at.form(None))


def _as_matrix(x: Array, at: Positions) -> Array:
    """(..., count, count)"""
    count = int(np.prod(at.shape))
    return x.reshape(*x.shape[: x.ndim - 2 * len(at.shape)], count, count)


def _largest(x: Array, at: Positions) -> Array:
    """Over all positions, which keep axes of one element."""
    return x.max(axis=tuple(range(-len(at.shape), 0)), keepdims=True)
