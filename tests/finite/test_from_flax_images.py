"""Flax networks on images and sequences read as architectures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import ArchitectureError
from lnkernel.finite import from_flax, network

RNGS = nnx.Rngs(0)
R, END = lnk.Relu(), lnk.Dense(1)


def conv(n_in: int = 3, **options: Any) -> nnx.Conv:
    return nnx.Conv(n_in, 16, (3, 3), rngs=RNGS, **options)


def linear(n_in: int) -> nnx.Linear:
    return nnx.Linear(n_in, 1, rngs=RNGS)


def mean(x: Any) -> Any:
    return jnp.mean(x, axis=(1, 2))


class Residual(nnx.Module):
    """As one writes it."""

    def __init__(self) -> None:
        self.first, self.second, self.end = conv(), conv(16), linear(16)

    def __call__(self, x: Any) -> Any:
        x = self.first(x)
        x = x + self.second(nnx.relu(x))
        x = nnx.avg_pool(nnx.relu(x), (2, 2), strides=(2, 2))
        return self.end(x.mean(axis=(1, 2)))


C = lnk.Conv(16, (3, 3))
# modules are made by the tests: they take seconds, and every worker collects all tests
READ: dict[str, tuple[Callable[[], nnx.Module], tuple[lnk.Node, ...]]] = {
    "mean": (
        lambda: nnx.Sequential(conv(), nnx.relu, mean, linear(16)),
        (C, R, lnk.GlobalAvgPool(), END),
    ),
    "flat": (
        lambda: nnx.Sequential(conv(), nnx.relu, lambda x: x.reshape(x.shape[0], -1), linear(64)),
        (C, R, lnk.Flatten(), END),
    ),
    "flat by jnp": (
        lambda: nnx.Sequential(conv(), lambda x: jnp.reshape(x, (x.shape[0], -1)), linear(64)),
        (C, lnk.Flatten(), END),
    ),
    "pool": (
        lambda: nnx.Sequential(
            conv(),
            functools.partial(nnx.avg_pool, window_shape=(2, 2), padding="SAME"),
            mean,
            linear(16),
        ),
        (C, lnk.AvgPool((2, 2), 1, "SAME"), lnk.GlobalAvgPool(), END),
    ),
    "norms": (
        lambda: nnx.Sequential(
            conv(padding="VALID", strides=2),
            nnx.LayerNorm(16, rngs=RNGS),
            nnx.LayerNorm(16, reduction_axes=(1, 2, 3), feature_axes=-1, rngs=RNGS),
            mean,
            linear(16),
        ),
        (
            lnk.Conv(16, (3, 3), 2, "VALID"),
            lnk.LayerNorm(1e-6, scale=True, bias=True),
            lnk.LayerNorm(1e-6, scale=True, bias=True, axes="all"),
            lnk.GlobalAvgPool(),
            END,
        ),
    ),
    "zeros by number": (
        lambda: nnx.Sequential(
            conv(padding=1), conv(16, padding=((0, 0), (0, 0))), mean, linear(16)
        ),
        (C, lnk.Conv(16, (3, 3), padding="VALID"), lnk.GlobalAvgPool(), END),
    ),
    "circular": (
        lambda: nnx.Sequential(conv(padding="CIRCULAR"), mean, linear(16)),
        (lnk.Conv(16, (3, 3), padding="CIRCULAR"), lnk.GlobalAvgPool(), END),
    ),
    "class": (
        Residual,
        (
            C,
            lnk.residual(R, C),
            R,
            lnk.AvgPool((2, 2)),
            lnk.GlobalAvgPool(),
            END,
        ),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    make, layers = READ[name]
    assert from_flax(make()) == lnk.serial(*layers)


def test_what_is_read_is_what_is_computed() -> None:
    """The network of finite width, called, has the shape of the kernel's inputs, and its own twin's function."""
    module = Residual()
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 3)).astype(np.float32)
    twin = network(from_flax(module), x.shape[1:], rngs=0, parameterization="standard")
    params = nnx.state(module, nnx.Param)
    # the parameters of the module in the place of the twin's, in the order of the data
    order = [params["first"], params["second"], params["end"]]
    places = [twin.layers[0], twin.layers[1].branches[1].layers[1], twin.layers[-1]]
    for place, values in zip(places, order, strict=True):
        place.kernel[...] = values["kernel"][...]
    np.testing.assert_allclose(twin(x), module(x), rtol=1e-5, atol=1e-6)


TWINS = {
    "cnn": lnk.cnn(2, 8, norm="first"),
    "circular": lnk.cnn(1, 8, padding="CIRCULAR", pool=True),
    "resnet": lnk.resnet((1, 1), 8, norm="all"),
    "sums": lnk.serial(C, R, lnk.SumPool((2, 2)), lnk.GlobalSumPool(), END),
    "all": lnk.serial(C, lnk.LayerNorm(axes="all"), R, lnk.Flatten(), END),
    "local": lnk.serial(lnk.ConvLocal(8, (3, 2), 2, b_std=0.5), R, lnk.Flatten(), END),
    "places": lnk.serial(
        *(C, R, lnk.Crop(0, 3), lnk.ConvTranspose(8, (3, 2), 2, b_std=0.5), R),
        *(lnk.Resize((5, -1)), lnk.Flatten(), END),
    ),
    "transformer": lnk.transformer(1, 8, heads=2, embedding=lnk.PositionalEmbedding(0.5, 2.0)),
    "random scores": lnk.serial(
        lnk.Dense(8), lnk.Attention(8, 2, "identity", "sqrt", 1.5, 0.5, 0.25), lnk.Flatten(), END
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_twins_are_read_back(name: str) -> None:
    shape = (4, 3) if name in ("transformer", "random scores") else (4, 4, 3)
    assert from_flax(network(TWINS[name], shape, rngs=0)) == TWINS[name]


def test_standard_deviations() -> None:
    arch = lnk.serial(lnk.Conv(16, (3, 3), W_std=1.5, b_std=0.25), R, lnk.Flatten(), lnk.Dense(1))
    module = network(arch, (4, 4, 3), rngs=0, parameterization="standard")
    assert from_flax(module, W_std=[1.5, 1.0], b_std=0.25) == arch
    with pytest.raises(
        ArchitectureError, match=r"Conv at layer 0: its weights have variance 2\.\d+/n_in"
    ):
        from_flax(module)


REFUSED: dict[str, tuple[Any, str]] = {
    "max pooling": (
        functools.partial(nnx.max_pool, window_shape=(2, 2)),
        "the largest of several correlated features",
    ),
    "max pooling inside": (
        lambda x: nnx.max_pool(x, (2, 2), strides=(2, 2)),
        "the largest of several correlated features",
    ),
    "dilation": (conv(16, kernel_dilation=2), "kernel_dilation=2 has no rule here"),
    "groups": (conv(16, feature_group_count=4), "its channels or weights are separated"),
    "padding": (conv(16, padding=2), "padding=2 with these strides has no rule here"),
    "attention": (
        nnx.MultiHeadAttention(2, 16, rngs=RNGS),
        "MultiHeadAttention at layer 1: a softmax of scores divided by the root",
    ),
    "part of the positions": (lambda x: x.mean(axis=1), "over 1 axes behind the first"),
    "a mean over channels": (lambda x: x.mean(axis=-1), "a mean that is not over all positions"),
    "another shape": (lambda x: x.reshape(-1, 16), "otherwise than by"),
    "sizes": (lambda x: x.reshape(x.shape[1], -1), "depends on the shape of the data"),
    "means without zeros": (
        lambda x: nnx.avg_pool(x, (2, 2), padding="SAME", count_include_pad=False),
        "means without the zeros",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    part, reason = REFUSED[name]
    end = () if "axes" in reason else (mean,)
    with pytest.raises(ArchitectureError, match=reason):
        from_flax(nnx.Sequential(conv(), part, *end, linear(16)))
