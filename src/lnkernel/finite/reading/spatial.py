"""Flax's convolution and pooling, and the twins of layers that act on positions, read as layers of an architecture."""

from __future__ import annotations

import dataclasses
import functools
from types import FunctionType
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from lnkernel.arch import (
    Attention,
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    Node,
    PositionalEmbedding,
)
from lnkernel.errors import ArchitectureError
from lnkernel.finite.attention import Embedding, SelfAttention
from lnkernel.finite.reading.functions import register_function
from lnkernel.finite.reading.refusals import NotUnderstoodError, Refusal, explain_refusal
from lnkernel.finite.reading.registry import Found, Reading, read_module
from lnkernel.finite.reading.shapes import flattened, mean_over, squeezed
from lnkernel.finite.reading.spread import check_bias, check_weights
from lnkernel.finite.spatial import (
    LocalConv,
    Mean,
    NTKConv,
    Part,
    Pool,
    Resized,
    SideBySide,
    Total,
    TransposedConv,
)


@read_module.register
def _(part: nnx.Conv, reading: Reading) -> Found:
    reading.check_width(part, part.in_features)
    W_std, b_std = reading.next_stds()
    size = tuple(part.kernel_size)
    strides = _one_each(part.strides, len(size))
    padding = _padding(part, size, strides, reading.here)
    for name in ("input_dilation", "kernel_dilation"):
        if set(_one_each(getattr(part, name), len(size))) != {1}:
            raise _refusal(part, reading.here, f"{name}={getattr(part, name)!r} has no rule here")
    if part.feature_group_count != 1 or part.mask is not None:
        raise _refusal(
            part, reading.here, "its channels or weights are separated, which has no rule here"
        )
    if W_std is None:
        W_std = 1.0
        check_weights(part, reading.here)
    if part.bias is None:
        b_std = 0.0
    elif b_std is None:
        b_std = 0.0
        check_bias(part, reading.here)
    return Conv(part.out_features, size, strides, padding, W_std, b_std), part.out_features


@read_module.register
def _(part: NTKConv, reading: Reading) -> Found:
    reading.check_width(part, part.in_features)
    shape = part.filter, part.strides, part.padding
    return Conv(part.out_features, *shape, part.W_std, part.b_std), part.out_features


@read_module.register(LocalConv)
@read_module.register(TransposedConv)
def _(part: LocalConv | TransposedConv, reading: Reading) -> Found:
    reading.check_width(part, part.in_features)
    layer: ConvLocal | ConvTranspose = part.layer
    return dataclasses.replace(layer, channels=part.out_features), part.out_features


@read_module.register(Part)
@read_module.register(Resized)
def _(part: Part | Resized, reading: Reading) -> Found:
    return part.layer, reading.width


@read_module.register
def _(part: Pool, reading: Reading) -> Found:
    return part.layer, reading.width


@read_module.register
def _(part: Mean, reading: Reading) -> Found:
    return GlobalAvgPool(), reading.width


@read_module.register
def _(part: Total, reading: Reading) -> Found:
    return GlobalSumPool(), reading.width


@read_module.register
def _(part: SideBySide, reading: Reading) -> Found:
    return Flatten(), None


@read_module.register
def _(part: SelfAttention, reading: Reading) -> Found:
    layer: Attention = part.layer
    out = part.output.kernel.shape[-1]
    heads = part.heads if out % part.heads == 0 else 1
    return dataclasses.replace(layer, channels=out, heads=heads), out


@read_module.register
def _(part: Embedding, reading: Reading) -> Found:
    layer: PositionalEmbedding = part.layer
    return layer, reading.width


def _padding(part: Any, size: tuple[int, ...], strides: tuple[int, ...], here: str) -> str:
    """The name of a padding; numbers of zeros are "VALID", or "SAME" if that means the same for all images."""
    given = part.padding
    once = set(strides) == {1}
    if isinstance(given, str) and (
        given.upper() in ("SAME", "VALID") or (given.upper() == "CIRCULAR" and once)
    ):
        return given.upper()
    pairs = given if isinstance(given, tuple | list) else (given,) * len(size)
    pairs = tuple(tuple(p) if isinstance(p, tuple | list) else (p, p) for p in pairs)
    if pairs == ((0, 0),) * len(size):
        return "VALID"
    if once and pairs == tuple(((k - 1) // 2, k // 2) for k in size):
        return "SAME"
    raise _refusal(part, here, f"padding={given!r} with these strides has no rule here")


def _one_each(given: Any, count: int) -> tuple[int, ...]:
    return (given or 1,) * count if given is None or isinstance(given, int) else tuple(given)


def _refusal(part: Any, here: str, reason: str) -> ArchitectureError:
    remedy = "Use an nnx.Conv with padding 'SAME' or 'VALID', of all channels, without dilation"
    return ArchitectureError(type(part).__name__, here, reason, remedy)


def _avg_pool(
    window_shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    padding: str = "VALID",
    count_include_pad: bool = True,
) -> Node:
    if not count_include_pad:
        raise NotUnderstoodError(
            "it takes means without the zeros around an image, which has no rule here"
        )
    return AvgPool(
        tuple(window_shape), (1,) * len(window_shape) if strides is None else strides, padding
    )


def _reshape(shape: Any) -> Node:
    return flattened(shape)


register_function(nnx.avg_pool, None, with_keywords=_avg_pool, name="nnx.avg_pool with its window")
register_function(nnx.max_pool, None)  # no layer: classes that call it get the reason below
register_function(jnp.mean, None, with_keywords=mean_over)
for _squeeze in (jnp.squeeze, np.squeeze):
    register_function(_squeeze, None, with_keywords=squeezed)
register_function(jnp.reshape, None, with_keywords=_reshape)


@explain_refusal.register
def _(part: nnx.MultiHeadAttention) -> Refusal:
    return Refusal(
        "MultiHeadAttention",
        "a softmax of scores divided by the root of their size has no kernel in closed form",
        "Describe the network by lnkernel.serial with lnkernel.Attention, whose scores are divided by their size",
    )


@explain_refusal.register(FunctionType)
@explain_refusal.register(functools.partial)
def _(part: FunctionType | functools.partial[Any]) -> Refusal:
    """Functions that people use, which are no layers here."""
    if getattr(part, "func", part) is nnx.max_pool:
        why = "the largest of several correlated features has no kernel in closed form"
        return Refusal("max_pool", why, "Use nnx.avg_pool, or an nnx.Conv with strides")
    return explain_refusal.dispatch(object)(part)
