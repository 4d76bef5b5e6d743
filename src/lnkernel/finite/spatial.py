"""Twins of the layers that act on positions: Flax's convolution and pooling, in both parametrisations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch import (
    Conv,
    ConvLocal,
    ConvTranspose,
    Crop,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    Resize,
)
from lnkernel.arch.convolution import Convolution
from lnkernel.arch.places import NOTHING, Places
from lnkernel.arch.pooling import WindowPool
from lnkernel.arch.window import Slide
from lnkernel.check.plain import known_zero
from lnkernel.finite.attention import Scaled
from lnkernel.finite.patches import convolve, patches_of
from lnkernel.finite.twins import Layer, TwinSettings, keeps_width, plain_number, twin

Padding = Sequence[tuple[int, int]]


class NTKConv(nnx.Module):
    r"""$h_p = \frac{W_{std}}{\sqrt{|F| n_{in}}} \sum_f W_f a_{p+f} + b_{std}\, b$ with standard normal parameters."""

    def __init__(
        self,
        layer: Conv,
        in_features: int,
        out_features: int,
        slides: list[Slide],
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
        self.filter, self.strides, self.padding = layer.filter, layer.strides, layer.padding
        self.around = nnx.static(_around(slides))

    def __call__(self, x: Float[Array, "n *positions inputs"]) -> Float[Array, "n *places outputs"]:
        kernel = self.kernel[...]
        x, around = _surrounded(x, self.around, self.padding)
        h = convolve(x, kernel, self.strides, around)
        h = self.W_std / math.sqrt(math.prod(kernel.shape[:-1])) * h
        return h if self.bias is None else h + self.b_std * self.bias[...]


class LocalConv(nnx.Module):
    """`lnkernel.ConvLocal` at finite width: weights and biases of its own at every position behind it."""

    def __init__(
        self, layer: ConvLocal, slides: list[Slide], out_features: int, settings: TwinSettings
    ):
        W_std, b_std = plain_number(layer.W_std), plain_number(layer.b_std)
        self.layer = nnx.static(jax.tree.map(plain_number, layer))
        self.in_features, self.out_features = settings.n_in, out_features
        self.around = nnx.static(_around(slides))
        standard = settings.parameterization == "standard"

        def scaled(shape: tuple[int, ...], factor: float) -> Scaled:
            return Scaled(shape, factor, standard, settings.dtype, settings.rngs)

        places, fan_in = (
            math.prod(slide.steps for slide in slides),
            settings.n_in * math.prod(layer.filter),
        )
        self.weights = scaled((places, fan_in, out_features), W_std / math.sqrt(fan_in))
        self.bias: Scaled | None = (
            nnx.data(None) if known_zero(b_std) else scaled((places, out_features), b_std)
        )

    def __call__(self, x: Float[Array, "n *positions inputs"]) -> Float[Array, "n *places outputs"]:
        x, around = _surrounded(x, self.around, self.layer.padding)
        patches = patches_of(x, self.layer.filter, self.layer.strides, around)
        flat = patches.reshape(len(x), -1, patches.shape[-1])
        h = jnp.einsum("npi,pio->npo", flat, self.weights())
        h = h if self.bias is None else h + self.bias()
        return h.reshape(*patches.shape[:-1], self.out_features)


class TransposedConv(nnx.Module):
    """`lnkernel.ConvTranspose` at finite width."""

    def __init__(self, layer: ConvTranspose, out_features: int, settings: TwinSettings):
        W_std, b_std = plain_number(layer.W_std), plain_number(layer.b_std)
        self.layer = nnx.static(jax.tree.map(plain_number, layer))
        self.in_features, self.out_features = settings.n_in, out_features
        standard = settings.parameterization == "standard"

        def scaled(shape: tuple[int, ...], factor: float) -> Scaled:
            return Scaled(shape, factor, standard, settings.dtype, settings.rngs)

        shape = (*layer.filter, settings.n_in, out_features)
        self.weights = scaled(shape, W_std / math.sqrt(math.prod(shape[:-1])))
        self.bias: Scaled | None = (
            nnx.data(None) if known_zero(b_std) else scaled((out_features,), b_std)
        )

    def __call__(self, x: Float[Array, "n *positions inputs"]) -> Float[Array, "n *places outputs"]:
        wide = _taken(x, self.layer.over(x.shape[1:-1]))
        h = convolve(wide, self.weights(), self.layer.window.strides, "VALID")
        return h if self.bias is None else h + self.bias()


class Part(nnx.Module):
    """Some of the positions."""

    def __init__(self, layer: Crop):
        self.layer = nnx.static(layer)

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *places features"]:
        return _taken(x, self.layer.over(x.shape[1:-1]))


class Resized(nnx.Module):
    """The image with another number of positions, by `jax.image.resize`."""

    def __init__(self, layer: Resize):
        self.layer = nnx.static(layer)

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *places features"]:
        shape = len(x), *self.layer.behind(x.shape[1:-1]), x.shape[-1]
        return jax.image.resize(x, shape, self.layer.method, antialias=self.layer.antialias)


def _taken(x: Array, places: Places) -> Array:
    """x at these places along each axis of the positions, 0 where there is nothing."""
    for axis, along in enumerate(places, start=1):
        x = jnp.take(x, np.where(along == NOTHING, x.shape[axis], along), axis, fill_value=0)
    return x


class Wrap(nnx.Module):
    """Puts positions from the other end of the image around it."""

    def __init__(self, padding: Padding):
        self.padding = nnx.static(tuple(padding))

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *more features"]:
        return _surrounded(x, self.padding, "CIRCULAR")[0]


class Pool(nnx.Module):
    """The sum over a window of positions, times a factor."""

    def __init__(self, layer: WindowPool, slides: list[Slide], factor: float):
        self.layer, self.around = nnx.static(layer), nnx.static(_around(slides))
        self.factor = factor

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *places features"]:
        dims, steps = (1, *self.layer.window, 1), (1, *self.layer.slides.strides, 1)
        x, around = _surrounded(x, self.around, self.layer.padding)
        zero = np.zeros(
            (), x.dtype
        )  # of NumPy: JAX differentiates a sum only if it knows that it begins with 0
        every = ((0, 0), *around, (0, 0))
        return self.factor * lax.reduce_window(x, zero, lax.add, dims, steps, every)


def _surrounded(x: Array, around: Padding, padding: str) -> tuple[Array, Padding]:
    """The positions with those of the other end around them; and how many zeros are still to come."""
    if padding != "CIRCULAR":
        return x, around
    return jnp.pad(x, ((0, 0), *around, (0, 0)), mode="wrap"), [(0, 0)] * len(around)


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
    if settings.parameterization == "ntk":
        return NTKConv(
            layer, settings.n_in, width, slides, dtype=settings.dtype, rngs=settings.rngs
        ), width
    W_std, b_std = plain_number(layer.W_std), plain_number(layer.b_std)
    spread = W_std / math.sqrt(math.prod(layer.filter) * settings.n_in)
    # Flax's own circular padding is the same for strides of 1
    wraps = slides[0].wraps and set(layer.strides) != {1}
    made = nnx.Conv(
        settings.n_in,
        width,
        layer.filter,
        layer.strides,
        padding="VALID" if wraps else layer.padding,
        use_bias=not known_zero(b_std),
        kernel_init=jax.nn.initializers.normal(spread),
        bias_init=jax.nn.initializers.normal(b_std),
        dtype=settings.dtype,
        param_dtype=settings.dtype,
        conv_general_dilated=convolve,
        rngs=settings.rngs,
    )
    return (nnx.Sequential(Wrap(_around(slides)), made) if wraps else made), width


@twin.register
def _(layer: ConvLocal, settings: TwinSettings) -> tuple[Layer, int]:
    width = layer.channels if settings.output or settings.width is None else settings.width
    slides = layer.window.over(settings.positions, "ConvLocal")
    return LocalConv(layer, slides, width, settings), width


@twin.register
def _(layer: ConvTranspose, settings: TwinSettings) -> tuple[Layer, int]:
    width = layer.channels if settings.output or settings.width is None else settings.width
    return TransposedConv(layer, width, settings), width


@twin.register
def _(layer: Crop, settings: TwinSettings) -> tuple[Layer, int]:
    return Part(layer), settings.n_in


@twin.register
def _(layer: Resize, settings: TwinSettings) -> tuple[Layer, int]:
    return Resized(layer), settings.n_in


@twin.register
def _(layer: WindowPool, settings: TwinSettings) -> tuple[Layer, int]:
    slides = layer.slides.over(settings.positions, type(layer).__name__)
    return Pool(layer, slides, layer.factor), settings.n_in


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
def _(layer: Convolution) -> bool:
    return False


def _around(slides: list[Slide]) -> Padding:
    return tuple((slide.low, slide.high) for slide in slides)
