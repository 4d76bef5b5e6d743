"""Small networks of Flax NNX for pictures: an MLP, a transformer of two blocks, a LeNet."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

BIAS = nnx.initializers.normal(0.1)
HE = nnx.initializers.he_normal()


def tanh_mlp(inputs: int, width: int, hidden: int, outputs: int, seed: int) -> nnx.Sequential:
    """`hidden` layers of tanh and a linear one."""
    rngs = nnx.Rngs(seed)
    sizes = [inputs, *[width] * hidden]
    layers: list[Callable[..., Array]] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [nnx.Linear(fan_in, fan_out, rngs=rngs), jnp.tanh]
    return nnx.Sequential(*layers, nnx.Linear(sizes[-1], outputs, rngs=rngs))


def relu_mlp(inputs: int, width: int, seed: int) -> nnx.Sequential:
    """Two hidden layers, one output, He's weights; biases are not 0, and no kink is at the input 0."""
    rngs = nnx.Rngs(seed)

    def linear(fan_in: int, fan_out: int) -> nnx.Linear:
        return nnx.Linear(fan_in, fan_out, kernel_init=HE, bias_init=BIAS, rngs=rngs)

    layers = linear(inputs, width), jax.nn.relu, linear(width, width), jax.nn.relu, linear(width, 1)
    return nnx.Sequential(*layers)


class Attention(nnx.Module):
    """Softmax attention of every token to all, in several heads."""

    def __init__(self, features: int, heads: int, rngs: nnx.Rngs):
        self.heads = heads
        self.query, self.key, self.value, self.out = (
            nnx.Linear(features, features, rngs=rngs) for _ in range(4)
        )

    def __call__(self, x: Float[Array, "n t d"]) -> Float[Array, "n t d"]:
        def split(y: Array) -> Array:
            return y.reshape(*y.shape[:-1], self.heads, -1)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = jnp.einsum("nthd,nshd->nhts", q, k) / math.sqrt(q.shape[-1])
        mixed = jnp.einsum("nhts,nshd->nthd", jax.nn.softmax(scores), v)
        return self.out(mixed.reshape(x.shape))


class Block(nnx.Module):
    """x + attention(LN x), then x + mlp(LN x)."""

    def __init__(self, features: int, heads: int, rngs: nnx.Rngs):
        self.norm1, self.norm2 = (nnx.LayerNorm(features, rngs=rngs) for _ in range(2))
        self.attention = Attention(features, heads, rngs)
        self.up = nnx.Linear(features, 2 * features, rngs=rngs)
        self.down = nnx.Linear(2 * features, features, rngs=rngs)

    def __call__(self, x: Float[Array, "n t d"]) -> Float[Array, "n t d"]:
        x = x + self.attention(self.norm1(x))
        return x + self.down(jax.nn.gelu(self.up(self.norm2(x))))


class Transformer(nnx.Module):
    """A picture's rows as tokens, pre-LN blocks, the mean over the tokens, a linear head."""

    def __init__(
        self, rows: int, columns: int, features: int, heads: int, outputs: int, seed: int
    ) -> None:
        rngs = nnx.Rngs(seed)
        self.shape = rows, columns
        self.embed = nnx.Linear(columns, features, rngs=rngs)
        self.place = nnx.Param(0.3 * jax.random.normal(rngs.params(), (rows, features)))
        self.blocks = nnx.List([Block(features, heads, rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(features, rngs=rngs)
        self.head = nnx.Linear(features, outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n pixels"]) -> Float[Array, "n k"]:
        tokens = self.embed(x.reshape(-1, *self.shape)) + self.place[...]
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens.mean(axis=1)))


class Convolution(nnx.Module):
    """5 × 5 with a frame of zeros, as one product with all patches: in float64 that is many times as
    fast on a CPU as a convolution."""

    def __init__(self, before: int, after: int, rngs: nnx.Rngs):
        self.inner = nnx.Linear(25 * before, after, kernel_init=HE, bias_init=BIAS, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w d"]:
        height, width = x.shape[1:3]
        wide = jnp.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)))
        rows = jnp.concatenate([wide[:, :, j : j + width] for j in range(5)], axis=-1)
        patches = jnp.concatenate([rows[:, i : i + height] for i in range(5)], axis=-1)
        return self.inner(patches)


class LeNet(nnx.Module):
    """Two convolutions of 5 × 5 with 6 and 16 channels, means of 2 × 2, then 120, 84 and 1."""

    def __init__(self, height: int, width: int, channels: int, seed: int):
        rngs = nnx.Rngs(seed)

        def linear(before: int, after: int) -> nnx.Linear:
            return nnx.Linear(before, after, kernel_init=HE, bias_init=BIAS, rngs=rngs)

        self.convolutions = nnx.List([Convolution(channels, 6, rngs), Convolution(6, 16, rngs)])
        sizes = (height // 4) * (width // 4) * 16, 120, 84
        self.linear = nnx.List([linear(a, b) for a, b in pairwise(sizes)])
        self.head = linear(84, 1)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n 1"]:
        for convolution in self.convolutions:
            x = mean_of_fours(jax.nn.relu(convolution(x)))
        x = x.reshape(len(x), -1)
        for linear in self.linear:
            x = jax.nn.relu(linear(x))
        return self.head(x)


def mean_of_fours(x: Float[Array, "n h w c"]) -> Float[Array, "n half_h half_w c"]:
    """The means of 2 × 2 pixels; a last odd row or column is left out.

    >>> float(mean_of_fours(jnp.arange(4.0).reshape(1, 2, 2, 1))[0, 0, 0, 0])
    1.5
    """
    n, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(n, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))
