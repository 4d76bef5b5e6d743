"""Images and sequences in `stax`: the kernels of neural-tangents' own words, finite networks, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import stax
from lnkernel.errors import InputError, LnkernelError, MissingLayerError

with np.load(Path(__file__).parents[1] / "peers" / "neural_tangents_stax.npz") as stored:
    GOLDEN = dict(stored)
TEXTS = [name for name in GOLDEN if name.startswith(("words: ", "images: "))]


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_words_have_the_same_kernels(name: str) -> None:
    """benchmarks/peers/inside/neural_tangents_stax.py has run them."""
    kind, _, text = name.partition(": ")
    kernel_fn = eval(f"stax.serial({text})", {"stax": stax, "jnp": jnp}).kernel_fn
    for found, theirs in zip(
        kernel_fn(GOLDEN[kind], None, ("nngp", "ntk")), GOLDEN[name], strict=True
    ):
        ends = np.sqrt(np.diagonal(theirs))
        off = np.abs(found - theirs) / np.outer(ends, ends)
        # neural-tangents takes angles from rounded cosines, and is off by the root of a rounding at equal inputs
        assert (off - np.diag(np.diagonal(off))).max() < 1e-13
        assert off.max() < 1e-7


def test_there_are_enough() -> None:
    assert len(TEXTS) >= 32 and "0.6.5" in str(GOLDEN["about"])


def test_finite_networks() -> None:
    layer = stax.serial(
        stax.Conv(8, (2, 2), padding="SAME", b_std=0.1),
        stax.LayerNorm(),
        stax.Relu(),
        stax.AvgPool((2, 2), (2, 2)),
        stax.GlobalSelfAttention(8, 4, 4, 2),
        stax.Flatten(),
        stax.Dense(3),
    )
    images = GOLDEN["images"]
    shape, params = layer.init_fn(jax.random.key(0), images.shape)
    assert shape == (3, 3)
    assert layer.apply_fn(params, images).shape == (3, 3)
    with pytest.raises(InputError, match="those of images and sequences where the network acts"):
        layer.init_fn(jax.random.key(0), (3, 4))
    with pytest.raises(InputError, match=r"start it with stax.Flatten\(\)"):
        stax.Dense(3).init_fn(jax.random.key(0), images.shape)


def test_predictions_on_images() -> None:
    images, y = GOLDEN["images"], np.array([[0.0], [1.0], [2.0]])
    layer = stax.serial(stax.Conv(8, (3, 3)), stax.Relu(), stax.Flatten(), stax.Dense(1))
    predict = stax.predict.gradient_descent_mse_ensemble(layer.kernel_fn, images, y)
    np.testing.assert_allclose(predict(x_test=images, get="ntk"), y, atol=1e-9)


def beside(*branches: Any) -> stax.Layer:
    return stax.serial(stax.FanOut(len(branches)), stax.parallel(*branches), stax.FanInConcat())


def test_channels_side_by_side_at_finite_width() -> None:
    """The sum of branches has as many parameters as weights of channels side by side, and the law of their outputs."""
    one, other = stax.Dense(8), stax.serial(stax.Dense(24), stax.Relu())
    layer = stax.serial(beside(one, other), stax.Dense(1, 2.0, 0.5))
    x = np.array([[0.5, -1.0, 2.0]])
    kernel = float(layer.kernel_fn(x, None, "nngp")[0, 0])
    parts = [
        stax.serial(part, stax.Dense(1)).kernel_fn(x, None, "nngp")[0, 0] for part in (one, other)
    ]
    assert kernel == pytest.approx(4 * (parts[0] / 4 + 3 * parts[1] / 4) + 0.25, rel=1e-14)
    _, params = layer.init_fn(jax.random.key(0), (-1, 3))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 3 * (8 + 24) + 32 + 1
    assert layer.apply_fn(params, x).shape == (1, 1)


def test_parts_and_sizes() -> None:
    S = stax.Slice
    assert stax.Index(S[:, 1:3]).arch == lnk.Crop(1, 3)
    assert stax.Index(S[..., ::2, :]).arch == lnk.Crop(step=2, axis=-1)
    assert stax.Index(S[:, ::-1, ..., :2, :]).arch == lnk.serial(
        lnk.Crop(step=-1), lnk.Crop(stop=2, axis=-1)
    )
    assert stax.Index(...).arch == stax.Index(S[:, :]).arch == lnk.Identity()
    assert stax.ImageResize((-1, -1, -1), "linear").arch == lnk.Identity()
    cubic = jax.image.ResizeMethod.CUBIC
    assert stax.ImageResize((-1, 4, -1, -1), cubic, False).arch == lnk.Resize(
        (4, -1), "cubic", False
    )
    assert stax.ConvTranspose(8, (3, 3)).arch == lnk.ConvTranspose(8, (3, 3), 1, "VALID")
    assert stax.Dropout(1).arch == stax.Dropout(0.5, "test").arch == lnk.Identity()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "channels first": (
        lambda: stax.Conv(8, (3, 3), dimension_numbers=("NCHW", "OIHW", "NCHW")),
        "stax.Conv: dimension_numbers=.*does not have the channels last.*Move the channels",
    ),
    "other letters": (
        lambda: stax.Conv(8, (3, 3), dimension_numbers=("NHC",) * 3),
        "channels last",
    ),
    "channel_axis": (lambda: stax.GlobalAvgPool(channel_axis=2), "channel_axis -1, got 0 and 2"),
    "edges": (
        lambda: stax.AvgPool((2, 2), padding="SAME", normalize_edges=True),
        "divides by the pixels that are there",
    ),
    "part of the axes": (lambda: stax.LayerNorm(axis=(1, -1)), "or all axes but the first"),
    "one axis of an image": (lambda: stax.LayerNorm(axis=2), r"Write axis=\(1, 2, 3\) for images"),
    "s": (lambda: stax.Conv(8, (3,), s=(2, 1)), "stax.Conv: s="),
    "softmax with the root": (
        lambda: stax.GlobalSelfAttention(8, 4, 4, 2, linear_scaling=False),
        "has no closed form",
    ),
    "channels of embeddings": (
        lambda: stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type="CONCAT", n_chan_pos_emb=3),
        "n_chan_pos_emb=3 is a share of channels",
    ),
    "a word": (lambda: stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type="ADD"), "'ADD' is not"),
    "channels resized": (
        lambda: stax.ImageResize((-1, 4, 4, 8), "linear"),
        "stax.ImageResize: shape must have -1 for the inputs and for the channels",
    ),
    "a spline": (
        lambda: stax.ImageResize((-1, 4, 4, -1), "spline"),
        "method='spline' is not known",
    ),
    "part of the inputs": (lambda: stax.Index(stax.Slice[::2]), "a part of the inputs"),
    "part of the channels": (lambda: stax.Index(stax.Slice[..., :3]), "a part of the channels"),
    "a number": (lambda: stax.Index(stax.Slice[:, 2]), "2 is neither a slice nor ...; a number"),
    "dots": (lambda: stax.Index(stax.Slice[..., 1:, ...]), "has ... more than once"),
    "concatenated in space": (lambda: stax.FanInConcat(1), "axis=1 is not that of the channels"),
    "concatenated, then bent": (
        lambda: stax.serial(beside(stax.Dense(8), stax.Dense(8)), stax.Relu()),
        "stax.FanInConcat: .*not identically distributed, and Relu follows",
    ),
    "concatenated, then copied": (
        lambda: stax.serial(beside(stax.Dense(8), stax.Dense(8)), stax.FanOut(2)).arch,
        "and FanOut follows",
    ),
    "concatenated at the end": (lambda: beside(stax.Dense(8), stax.Dense(8)).arch, "no weights"),
    "an unknown width": (
        lambda: stax.serial(beside(stax.Dense(8), stax.Identity()), stax.Dense(1)),
        "the number of channels of a branch is not known",
    ),
    "nothing beside": (lambda: stax.FanInConcat().arch, "nothing to put side by side"),
    "Dropout": (lambda: stax.Dropout(0.9), 'draws new masks at every call.*mode="test"'),
    "Dropout, mode": (lambda: stax.Dropout(0.9, "tests"), 'mode: expected "train" or "test"'),
    "Dropout, rate": (lambda: stax.Dropout(0.0, "test"), "rate: expected a number above 0"),
    "batch_axis_out": (lambda: stax.Flatten(batch_axis_out=1), "batch_axis_out=1 are not 0"),
    "embeddings of the input": (
        lambda: stax.serial(
            stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type="SUM"), stax.Flatten()
        ).kernel_fn(GOLDEN["words"], None, "ntk"),
        "raw input, whose finitely many channels",
    ),
    "an output at every position": (
        lambda: stax.Conv(8, (3,)).kernel_fn(GOLDEN["words"], None, "ntk"),
        "an output at every position",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(LnkernelError, match=message):
        call()


def test_members_of_enumerations_are_words() -> None:
    for padding in stax.Padding:
        for given in (padding, padding.name, padding.value):
            for layer in (stax.Conv(8, (3, 3), padding=given), stax.AvgPool((2, 2), padding=given)):
                assert type(layer.arch.padding) is str and layer.arch.padding == padding.name
    for mechanism in stax.AttentionMechanism:
        made = stax.GlobalSelfAttention(8, 4, 4, 2, attention_mechanism=mechanism).arch
        assert type(made.weights) is str and made.weights == mechanism.name.lower()
    for kind in stax.PositionalEmbedding:
        made = stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type=kind).arch
        assert made == stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type=kind.name).arch
        assert (made.embedding is None) == (kind.name == "NONE")


@pytest.mark.parametrize("name", ["MaxPool", "GlobalMaxPool"])
def test_max_pooling_says_why(name: str) -> None:
    for module in (stax, lnk):
        with pytest.raises(MissingLayerError, match=f"has no {name}: the largest of several corr"):
            getattr(module, name)


def test_strides_are_one_by_default_there() -> None:
    assert stax.AvgPool((2, 2)).arch == lnk.AvgPool((2, 2), 1)
    assert stax.SumPool((2, 2), (2, 1)).arch == lnk.SumPool((2, 2), (2, 1))
    assert stax.Conv(8, (3, 3)).arch == lnk.Conv(8, (3, 3), padding="VALID")
