"""Attention and positional embeddings: to 50 digits, by programs and by NumPy, under transformations, and errors."""

from __future__ import annotations

from typing import Any

import image_oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import ArchitectureError, InputError, KernelOverflowError, MissingLayerError
from lnkernel.gram import images

RNG = np.random.default_rng(8)
WORDS, IMAGES = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 2, 2, 2))
D, R, LN = lnk.Dense(8, 1.3, 0.2), lnk.Relu(), lnk.LayerNorm()
GAP, FLAT = (
    (end, lnk.Dense(1, W_std=1.1, b_std=0.3)) for end in (lnk.GlobalAvgPool(), lnk.Flatten())
)
NEAR = lnk.PositionalEmbedding(0.7, 1.5, 1.0)
RANDOM = {"weights": "identity", "scaling": "sqrt"}


def look(**options: Any) -> lnk.Attention:
    return lnk.Attention(8, **{"QK_std": 1.3, "OV_std": 0.9, "b_std": 0.2, **options})


NETWORKS = {
    "on the input": (look(), R, *GAP),
    "two": (D, R, look(), R, look(b_std=0.0), *FLAT),
    "LN": (D, LN, R, look(), LN, R, look(), LN, *GAP),
    "identity": (D, look(weights="identity"), R, *FLAT),
    "relu": (D, look(weights="relu"), R, *FLAT),
    "abs": (D, look(weights="abs"), R, *FLAT),
    "random": (D, R, look(**RANDOM), R, *FLAT),
    "random, embedded": (D, R, look(**RANDOM, embedding=NEAR), R, *GAP),
    "embedded keys": (D, R, look(embedding=lnk.PositionalEmbedding(0.7)), R, *FLAT),
    "near": (D, look(embedding=NEAR), R, *FLAT),
    "embedding": (D, lnk.PositionalEmbedding(0.6, 2.0), R, look(), *GAP),
    "embedded features": (D, R, lnk.PositionalEmbedding(0.6), LN, D, R, *FLAT),
    "transformer": (
        D,
        NEAR,
        lnk.residual(LN, look()),
        lnk.residual(LN, D, R, lnk.Dense(8, 0.8)),
        LN,
        *GAP,
    ),
}


def through(layer: lnk.Node, pair: image_oracle.Pair) -> image_oracle.Pair:
    """One layer of the oracle, or a residual block, whose branch is Gaussian at its end."""
    if not isinstance(layer, lnk.Parallel):
        return image_oracle.STEPS[type(layer)](layer, pair)
    end = pair
    for part in layer.branches[1].layers:
        end = image_oracle.STEPS[type(part)](part, end)
    K = {key: image_oracle.plus(block, end.K[key]) for key, block in pair.K.items()}
    return image_oracle.Pair(pair.shape, K, image_oracle.plus(pair.T, end.T), None)


@pytest.fixture(autouse=True)
def oracle_of_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(image_oracle.STEPS, lnk.Parallel, through)


@pytest.mark.parametrize("x", [WORDS, IMAGES], ids=["words", "images"])
@pytest.mark.parametrize("name", NETWORKS)
def test_fifty_digits(name: str, x: np.ndarray) -> None:
    arch = lnk.serial(*NETWORKS[name])
    kernels = lnk.kernels(arch)
    found, ends = kernels(x[:1], x[1:2]), kernels.diagonal(x[:2])
    exact, itself = (image_oracle.kernels(arch, x[0], x[k]) for k in (1, 0))
    for value, true, end, own in zip(found, exact, ends, itself, strict=True):
        assert abs(float(value[0, 0] - float(true))) < 3e-15 * np.sqrt(end[0] * end[1])
        assert abs(end[0] / float(own) - 1) < 3e-15


@pytest.mark.parametrize("name", ["LN", "transformer"])
def test_a_near_duplicate(name: str) -> None:
    """As behind a pooling, angles are differences of sums: what is left of a small one are the digits of its square."""
    arch = lnk.serial(*NETWORKS[name])
    y = WORDS[0] + 1e-7 * WORDS[1]
    exact = image_oracle.kernels(arch, WORDS[0], y)
    for value, true in zip(lnk.kernels(arch)(WORDS[:1], y[None]), exact, strict=True):
        assert abs(value[0, 0] / float(true) - 1) < 3e-8


@pytest.mark.parametrize("name", ["transformer"])
def test_programs_compute_what_numpy_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arch, x = lnk.serial(*NETWORKS[name]), np.concatenate([WORDS, -WORDS])
    both = lnk.kernels(arch)(x)
    monkeypatch.setattr(images, "MOST", 0)
    monkeypatch.setattr(images, "AT_ONCE", 64)  # several tiles, the last ones not full
    for one, two in zip(both, lnk.kernels(arch)(x), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13)


@pytest.mark.slow  # compiling
def test_derivatives() -> None:
    def theta(std: jax.Array, QK_std: jax.Array) -> jax.Array:
        embedding = lnk.PositionalEmbedding(std, 1.5)
        arch = lnk.serial(D, lnk.Attention(8, QK_std=QK_std, embedding=embedding), R, *GAP)
        return lnk.ntk(arch)(jnp.asarray(WORDS[:1]), WORDS[1:2])[0, 0]

    with jax.enable_x64(True):
        slopes = jax.grad(theta, (0, 1))(0.7, 1.3)
        for slope, step in zip(slopes, ((1e-5, 0.0), (0.0, 1e-5)), strict=True):
            there, back = (float(theta(0.7 + s * step[0], 1.3 + s * step[1])) for s in (1, -1))
            assert abs(float(slope) / ((there - back) / 2e-5) - 1) < 1e-7


def test_positions_are_alike_without_embeddings() -> None:
    """Attention and means do not know the order of the words; embeddings tell it."""
    order = [2, 0, 3, 1]
    plain, told = ((D, *more, R, look(), *GAP) for more in ((), (lnk.PositionalEmbedding(),)))
    for layers, alike in ((plain, True), (told, False)):
        theta = lnk.ntk(lnk.serial(*layers))
        both = theta(WORDS[:1], np.stack([WORDS[1], WORDS[1][order]]))[0]
        assert (abs(both[0] / both[1] - 1) < 1e-14) == alike


def test_a_function_of_the_distance() -> None:
    by_length = lnk.PositionalEmbedding(0.5, 2.0, 1.0)
    by_function = lnk.PositionalEmbedding(0.5, lambda d: jnp.exp(-d / 2.0), 1.0)
    np.testing.assert_allclose(by_length.covariance((3, 2)), by_function.covariance((3, 2)), 1e-15)
    first, second = (lnk.ntk(lnk.serial(D, E, R, *GAP))(IMAGES) for E in (by_length, by_function))
    np.testing.assert_allclose(first, second, rtol=1e-15)


def test_softmax_of_constant_scores_is_a_mean() -> None:
    """With scores next to zero all weights are equal, and attention is a pooling, with two layers of weights."""
    attention = lnk.Attention(8, QK_std=1e-30, OV_std=1.5)
    pooled = lnk.serial(D, R, lnk.GlobalAvgPool(), lnk.Dense(8, 1.5), lnk.Dense(8), *GAP[1:])
    found = lnk.ntk(lnk.serial(D, R, attention, *GAP))(WORDS)
    np.testing.assert_allclose(found, lnk.ntk(pooled)(WORDS), rtol=1e-13)


@pytest.mark.parametrize("activation", [lnk.Gelu(), lnk.Tanh(), lnk.RectifiedPower(2.0)])
def test_behind_activations_whose_lengths_have_twice_the_digits(
    activation: lnk.Elementwise,
) -> None:
    """By hand for words that are all alike: weights of any kind with the sum 1 leave them as they are."""
    before = D, activation, D
    x = RNG.normal(size=(3, 2))
    K, theta = lnk.kernels(lnk.serial(*before))(x)
    K = 0.9**2 * K + 0.2**2
    theta = 0.9**2 * theta + 2 * (K - 0.2**2) + 0.2**2
    K = 1.1**2 * K + 0.3**2
    theta = K + 1.1**2 * theta
    found = lnk.kernels(lnk.serial(*before, look(), *GAP))(np.repeat(x[:, None], 4, axis=1))
    np.testing.assert_allclose(found.nngp, K, rtol=1e-13)
    np.testing.assert_allclose(found.ntk, theta, rtol=1e-13)


def test_text() -> None:
    arch = lnk.serial(*NETWORKS["transformer"])
    assert lnk.parse(repr(arch)) == arch
    assert lnk.parse("Attention(8, embedding=PositionalEmbedding(0.5))").embedding.std == 0.5


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: lnk.Attention(8, scaling="sqrt"), "the scores stay random at every width"),
        (lambda: lnk.Attention(8, 3), "3 heads do not divide its 8 channels"),
        (lambda: lnk.Attention(8, weights="max"), "weights='max' is not known"),
        (lambda: lnk.Attention(8, embedding=1.0), "embedding must be a PositionalEmbedding"),
        (lambda: lnk.Attention(8, QK_std=0.0), "QK_std must be positive"),
        (lambda: lnk.PositionalEmbedding(-1.0), "std must not be negative"),
        (lambda: lnk.PositionalEmbedding(decay=0.0), "decay must be a positive, finite number"),
        (lambda: lnk.PositionalEmbedding(norm="2"), "norm must be a positive, finite number"),
        (
            lambda: lnk.ntk(lnk.serial(lnk.PositionalEmbedding(), D, *GAP)),
            "the raw input, whose finitely many channels",
        ),
        (lambda: lnk.ntk(lnk.serial(look(embedding=NEAR), *GAP)), "embeddings to the raw input"),
        (lambda: lnk.ntk(lnk.serial(D, *FLAT, look())), "has left none"),
        (lambda: lnk.ntk(lnk.serial(D, look())), "ends here with an output at every position"),
        (lambda: lnk.ntk(lnk.serial(D, R, look(), R, R, *GAP)), "not Gaussian"),
        (
            lambda: lnk.PositionalEmbedding(decay=2.0, norm=4.0).covariance((9,)),
            "no covariance of 9 positions",
        ),
        (
            lambda: lnk.PositionalEmbedding(decay=lambda d: d.sum()).covariance((2,)),
            "a function of every distance by itself",
        ),
    ],
)
def test_refused(make: Any, reason: str) -> None:
    with pytest.raises(ArchitectureError, match=reason):
        make()


def test_wrong_inputs() -> None:
    theta = lnk.ntk(lnk.serial(*NETWORKS["two"]))
    with pytest.raises(InputError, match="because the network acts on positions"):
        theta(WORDS[0])
    with pytest.raises(InputError, match=r"got 1.39e\+160 at position \(0,\) of input 1"):
        theta(np.stack([WORDS[0], 1e160 * WORDS[1]]))
    long = lnk.ntk(lnk.serial(*NETWORKS["two"][:-1], lnk.Dense(1, W_std=1e160)))
    with pytest.raises(KernelOverflowError, match=r"point 0 \(norm "):
        long(WORDS)


def test_max_pooling_says_why() -> None:
    with pytest.raises(
        MissingLayerError, match=r"^lnkernel has no MaxPool: the largest .* AvgPool"
    ):
        _ = lnk.MaxPool
    with pytest.raises(ValueError, match="there is no MaxPool: the largest of several"):
        lnk.parse("serial(Conv(8, (3, 3)), MaxPool((2, 2)), Flatten())")
    assert not hasattr(lnk, "MaxPool")
