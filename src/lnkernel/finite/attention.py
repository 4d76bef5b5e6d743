"""Twins of self-attention and of positional embeddings, in both parametrisations."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch import Attention, PositionalEmbedding
from lnkernel.check.plain import known_zero
from lnkernel.finite.twins import Layer, TwinSettings, keeps_width, plain_number, twin


class Scaled(nnx.Module):
    """Standard normal parameters with a factor: at every call, or, in the standard parametrisation, once."""

    def __init__(
        self, shape: tuple[int, ...], factor: Any, standard: bool, dtype: DTypeLike, rngs: nnx.Rngs
    ):
        drawn = jax.random.normal(rngs.params(), shape, dtype)
        self.kernel = nnx.Param(factor * drawn if standard else drawn)
        self.factor = 1.0 if standard else factor

    def __call__(self) -> Array:
        return self.factor * self.kernel[...]


class SelfAttention(nnx.Module):
    """`lnkernel.Attention` at finite width; without a module for queries, keys are also queries."""

    def __init__(
        self, layer: Attention, heads: int, size: int, out_features: int, settings: TwinSettings
    ):
        self.layer, self.heads, self.size = (
            nnx.static(jax.tree.map(plain_number, layer)),
            heads,
            size,
        )
        QK_std, OV_std, b_std = (plain_number(x) for x in (layer.QK_std, layer.OV_std, layer.b_std))
        n_in = settings.n_in
        standard = settings.parameterization == "standard"

        def scaled(shape: tuple[int, ...], factor: Any) -> Scaled:
            return Scaled(shape, factor, standard, settings.dtype, settings.rngs)

        side = math.sqrt(1 / n_in)
        root = jnp.sqrt(QK_std) if isinstance(QK_std, jax.Array) else math.sqrt(QK_std)
        self.keys = scaled((n_in, heads, size), root * side)
        linear = layer.scaling == "linear"
        self.queries: Scaled | None = (
            nnx.data(None) if linear else scaled((n_in, heads, size), root * side)
        )
        self.values = scaled((n_in, heads, size), side)
        self.output = scaled((heads, size, out_features), OV_std / math.sqrt(heads * size))
        self.bias: Scaled | None = (
            nnx.data(None) if known_zero(b_std) else scaled((out_features,), b_std)
        )
        self.embedding: Embedding | None = (
            nnx.data(None) if layer.embedding is None else Embedding(layer.embedding, settings)
        )

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *positions outputs"]:
        shape = x.shape[:-1]
        seen = x if self.embedding is None else self.embedding(x)
        flat, seen = (part.reshape(len(x), -1, x.shape[-1]) for part in (x, seen))
        keys = jnp.einsum("nac,chm->nham", seen, self.keys())
        queries = (
            keys if self.queries is None else jnp.einsum("nac,chm->nham", seen, self.queries())
        )
        values = jnp.einsum("nac,chm->nham", flat, self.values())
        power = 1.0 if self.layer.scaling == "linear" else 0.5
        scores = jnp.einsum("nhpm,nham->nhpa", queries, keys) / self.size**power
        weights = {
            "softmax": jax.nn.softmax,
            "identity": jax.nn.identity,
            "relu": jax.nn.relu,
            "abs": jnp.abs,
        }[self.layer.weights](scores)
        h = jnp.einsum("nhpa,nham,hmo->npo", weights, values, self.output())
        h = h if self.bias is None else h + self.bias()
        return h.reshape(*shape, -1)


class Embedding(nnx.Module):
    """Adds a vector of its own to the features of every position."""

    def __init__(self, layer: PositionalEmbedding, settings: TwinSettings):
        self.layer = nnx.static(jax.tree.map(plain_number, layer))
        shape, dtype = settings.positions, settings.dtype
        standard = settings.parameterization == "standard"
        self.vectors = Scaled(
            (*shape, settings.n_in), plain_number(layer.std), standard, dtype, settings.rngs
        )
        R = layer.covariance(shape)
        self.root = nnx.static(None) if layer.decay is None else nnx.data(_root(R, dtype))

    def __call__(
        self, x: Float[Array, "n *positions features"]
    ) -> Float[Array, "n *positions features"]:
        vectors = self.vectors()
        if self.root is not None:
            flat = vectors.reshape(len(self.root), -1)
            vectors = (self.root @ flat).reshape(vectors.shape)
        return x + vectors


def _root(R: np.ndarray, dtype: DTypeLike) -> Array:
    """A matrix whose square is R, which may be singular."""
    values, vectors = np.linalg.eigh(R)
    return jnp.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype)


@twin.register
def _(layer: Attention, settings: TwinSettings) -> tuple[Layer, int]:
    """Scores that tend to a limit need large heads, random ones many heads."""
    width = layer.channels if settings.width is None else settings.width
    heads, size = layer.heads, layer.channels // layer.heads
    if layer.scaling == "linear":
        size = max(1, width // heads)
    else:
        heads = max(1, width // size)
    out = layer.channels if settings.output else width
    return SelfAttention(layer, heads, size, out, settings), out


@twin.register
def _(layer: PositionalEmbedding, settings: TwinSettings) -> tuple[Layer, int]:
    return Embedding(layer, settings), settings.n_in


@keeps_width.register
def _(layer: Attention) -> bool:
    return False
