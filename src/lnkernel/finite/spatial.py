"""Twins of the layers that act on positions: Flax's convolution and pooling, in both parametrisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch import Conv, Flatten, GlobalAvgPool, GlobalSumPool
from lnkernel.arch.pooling import WindowPool
from lnkernel.arch.window import Slide
from lnkernel.check import known_zero
from lnkernel.finite.twins import Layer, TwinSettings, keeps_width, plain_number, twin

Padding = Sequence[tuple[int, int]]


class NTKConv(nnx.Module):
    r"""$h_p = \frac{W_{std}}{\sqrt{|F| n_{in}}} \sum_f W_f a_{p+f} + b_{std}\, b$ with standard normal parameters."""

    def __init__(
        self,
        layer: Conv,
        in_features: int,
        out_features: int,
        padding: Padding,
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        normal = jax.random.normal
        self.W_std, self.b_std = plain_number(layer.W_std), plain_number(layer.b_std)
        shape = (*layer.filter, in_features, out_features)
        self.kernel = nnx.Param(normal(rngs.params(), shape, dtype))
        self.bias: nnx.Param[jax.Array] | None = (
            nnx.data(None)
            if known_zero(self.b_std)
            else nnx.Param(normal(rngs.params(), (out_features,), dtype))
        )
        self.in_features, self.out_features = in_features, out_features
        self.strides, self.padding = layer.strides, tuple(padding)

    def __call__(self, x: Float[Array, "n *positions inputs"]) -> Float[Array, "n *places outputs"]:
        kernel = self.kernel[...]
        axes = "HWD"[: kernel.ndim - 2]
        layout = f"N{axes}C", f"{axes}IO", f"N{axes}C"
        h = lax.conv_general_dilated(
            x, kernel, self.strides, self.padding, dimension_numbers=layout
        )
        h = self.W_std / math.sqrt(math.prod(kernel.shape[:-1])) * h
        return h if self.bias is None else h + self.b_std * self.bias[...]


class Wrap(nnx.Module):
    """Puts positions from the other end of the image around it."""

    def __init__(self, padding: Padding):
        self.padding = nnx.static(tuple(padding))

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *more features"]:
        return jnp.pad(x, ((0, 0), *self.padding, (0, 0)), mode="wrap")


class Pool(nnx.Module):
    """The sum over a window of positions, times a factor."""

    def __init__(
        self, window: tuple[int, ...], strides: tuple[int, ...], padding: Padding, factor: float
    ):
        self.window, self.strides = window, strides
        self.padding, self.factor = nnx.static(tuple(padding)), factor

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *places features"]:
        dims, steps = (1, *self.window, 1), (1, *self.strides, 1)
        around = ((0, 0), *self.padding, (0, 0))
        zero = jnp.zeros((), x.dtype)
        return self.factor * lax.reduce_window(x, zero, lax.add, dims, steps, around)


class Mean(nnx.Module):
    """The mean over all positions."""

    def __call__(self, x: Float[Array, "n *positions features"]) -> Float[Array, "n features"]:
        return x.mean(axis=tuple(range(1, x.ndim - 1)))


class Total(nnx.Module):
    """The sum over all positions."""

    def __call__(self, x: Float[Array, "n *positions features"]) -> Float[Array, "n features"]:
        return x.sum(axis=tuple(range(1, x.ndim - 1)))


class SideBySide(nnx.Module):
    """The features of all positions as one vector."""

    def __call__(self, x: Float[Array, "n *positions features"]) -> Float[Array, "n all"]:
        return x.reshape(len(x), -1)


@twin.register
def _(layer: Conv, settings: TwinSettings) -> tuple[Layer, int]:
    width = layer.channels if settings.output or settings.width is None else settings.width
    slides = layer.window.over(settings.positions, "Conv")
    around = _around(slides)
    padding: Padding = [(0, 0)] * len(slides) if slides[0].wraps else around
    made: Any
    if settings.parameterization == "ntk":
        made = NTKConv(
            layer, settings.n_in, width, padding, dtype=settings.dtype, rngs=settings.rngs
        )
    else:
        W_std, b_std = plain_number(layer.W_std), plain_number(layer.b_std)
        spread = W_std / math.sqrt(math.prod(layer.filter) * settings.n_in)
        made = nnx.Conv(
            settings.n_in,
            width,
            layer.filter,
            layer.strides,
            padding=padding,
            use_bias=not known_zero(b_std),
            kernel_init=jax.nn.initializers.normal(spread),
            bias_init=jax.nn.initializers.normal(b_std),
            dtype=settings.dtype,
            param_dtype=settings.dtype,
            rngs=settings.rngs,
        )
    return _wrapped(made, slides), width


@twin.register
def _(layer: WindowPool, settings: TwinSettings) -> tuple[Layer, int]:
    slides = layer.slides.over(settings.positions, type(layer).__name__)
    padding = [(0, 0)] * len(slides) if slides[0].wraps else _around(slides)
    pool = Pool(layer.window, layer.slides.strides, padding, layer.factor)
    return _wrapped(pool, slides), settings.n_in


@twin.register
def _(layer: GlobalAvgPool, settings: TwinSettings) -> tuple[Layer, int]:
    return Mean(), settings.n_in


@twin.register
def _(layer: GlobalSumPool, settings: TwinSettings) -> tuple[Layer, int]:
    return Total(), settings.n_in


@twin.register
def _(layer: Flatten, settings: TwinSettings) -> tuple[Layer, int]:
    return SideBySide(), settings.n_in * math.prod(settings.positions)


@keeps_width.register
def _(layer: Conv) -> bool:
    return False


def _around(slides: list[Slide]) -> Padding:
    return [(slide.low, slide.high) for slide in slides]


def _wrapped(layer: Layer, slides: list[Slide]) -> Layer:
    if not slides[0].wraps:
        return layer
    made: Layer = nnx.Sequential(Wrap(_around(slides)), layer)
    return made
