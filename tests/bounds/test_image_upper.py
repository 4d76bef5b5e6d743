"""Upper bounds of C of networks on images from layer to layer: no image exceeds them, and some come close."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.arch import Node
from lnkernel.arch.node import node
from lnkernel.bounds import image_upper
from lnkernel.bounds.image_upper import Limits, passed, product, quotient, through, upper_bound
from lnkernel.errors import ArchitectureError, BoundedNetworkError, InputError

R, LN, G, F = lnk.Relu(), lnk.LayerNorm(), lnk.GlobalAvgPool(), lnk.Flatten()
DENSE = lnk.Dense(1, W_std=2**0.5, b_std=0.1)
EMBEDDING = lnk.PositionalEmbedding(0.5, decay=2.0)
TRAINED = lnk.LayerNorm(1e-3, scale=True, bias=True)


def conv(padding: str = "SAME", b_std: float = 0.1) -> lnk.Conv:
    return lnk.Conv(8, (3,), padding=padding, W_std=2**0.5, b_std=b_std)


LOCAL = lnk.ConvLocal(8, (3,), W_std=2**0.5, b_std=0.1)


def resnet(**options: Any) -> lnk.Serial:
    return lnk.resnet(options.pop("blocks", 2), 8, filter=(3,), **options)


def transformer(blocks: int, norm: str, **options: Any) -> lnk.Serial:
    return lnk.transformer(blocks, 8, norm=norm, activation=options.pop("activation", R), **options)


# network, and the most by which its bound may exceed the largest Θ(x, x) that is found
CASES: dict[str, tuple[lnk.Serial, float]] = {
    "resnet": (resnet(norm="all", padding="CIRCULAR"), 1.21),
    "resnet, zeros around": (resnet(norm="all", pool=False), 1.2),
    "resnet, last norm alone": (resnet(norm="last", padding="CIRCULAR"), 1.4),
    "resnet, stages": (resnet(blocks=(1, 1), norm="all", b_std=0.1, W_std=2**0.5), 2.0),
    "resnet, trained norms": (resnet(norm="all", norm_layer=TRAINED, b_std=0.1), 2.5),
    "resnet, RMSNorm": (resnet(norm="all", norm_layer=lnk.RMSNorm(scale=True)), 2.5),
    "transformer, pre": (transformer(1, "pre"), 1.1),
    "transformer, pre, 2": (transformer(2, "pre"), 3.0),
    "transformer, embedding": (transformer(2, "pre", embedding=EMBEDDING), 4.0),
    "transformer, pre, biases": (transformer(2, "pre", b_std=0.1), 4.0),
    "transformer, post": (transformer(1, "post", b_std=0.1), 1.2),
    "transformer, post, 2": (transformer(2, "post", embedding=EMBEDDING), 2.0),
    "transformer, trained": (transformer(1, "pre", b_std=0.3, norm_layer=TRAINED), 4.0),
    "transformer, GELU": (transformer(1, "pre", activation=lnk.Gelu()), 2.2),
    "transformer, GELU, 2": (transformer(2, "pre", activation=lnk.Gelu(), b_std=0.1), 25.0),
    "GELU, pooling": (lnk.serial(conv(), lnk.Gelu(), conv(), lnk.AvgPool(2), LN, R, F, DENSE), 8.0),
    "GELU by tanh": (lnk.serial(conv(), lnk.Gelu(True), conv(), LN, R, F, DENSE), 3.0),
    "SiLU, trained": (lnk.serial(conv(), LN, TRAINED, lnk.Silu(-2.0), LN, G, DENSE), 20.0),
    "trained norms": (
        lnk.cnn(2, 8, filter=(3,), norm="all", norm_layer=lnk.LayerNorm(0.0, True, True)),
        1.01,
    ),
    "weights of their own": (
        lnk.serial(LOCAL, R, lnk.AvgPool(2), LOCAL, TRAINED, R, lnk.SumPool(2), F, DENSE),
        50.0,
    ),
    "places": (
        lnk.serial(
            *(conv(), R, lnk.ConvTranspose(8, (3,), 2, b_std=0.3), TRAINED, R, lnk.Resize((4,))),
            *(conv(), LN, R, lnk.Crop(1), lnk.Resize((5,), "nearest"), G, DENSE),
        ),
        50.0,
    ),
    "transposed, gaps": (
        lnk.serial(conv(), TRAINED, R, lnk.ConvTranspose(8, (2,), 3, b_std=0.3), TRAINED, F, DENSE),
        50.0,
    ),
    "sums over windows": (lnk.serial(conv("CIRCULAR"), LN, R, lnk.SumPool(2), F, DENSE), 1 + 1e-9),
    "pooling before norms": (
        lnk.serial(
            *(conv(), R, lnk.AvgPool(2), conv(), LN, R),
            *(lnk.AvgPool(2, padding="SAME"), conv(), LN, R, G, DENSE),
        ),
        5.0,
    ),
    "pooling, RMSNorm": (lnk.serial(conv(), R, lnk.AvgPool(2), lnk.RMSNorm(), F, DENSE), 2.1),
    "linear attention": (lnk.serial(conv(), lnk.Attention(8), LN, R, G, DENSE), 1 + 1e-5),
    "attention, norm with bias": (
        lnk.serial(
            *(conv(), LN, R, lnk.Attention(8, b_std=0.1)),
            *(lnk.LayerNorm(bias=True), R, G, DENSE),
        ),
        1.5,
    ),
    "attention, eps": (
        lnk.serial(conv(), R, conv(), LN, lnk.Attention(8), lnk.LayerNorm(0.1), R, G, DENSE),
        2.0,
    ),
    "sums of features": (
        lnk.serial(
            *(conv(), R, lnk.residual(conv(), R)),
            *(lnk.residual(conv(), lnk.LeakyRelu(0.1)), LN, G, DENSE),
        ),
        4.0,
    ),
    "means of both signs": (
        lnk.serial(
            *(conv(), R, lnk.residual(conv(), lnk.Homogeneous(1, -1.0, -0.3))),
            *(LN, G, DENSE),
        ),
        5.0,
    ),
    "norms of all positions": (
        lnk.serial(
            *(conv(), LN, conv(), R, lnk.LayerNorm(1e-2, True, True, "all")),
            *(conv(), R, G, DENSE),
        ),
        10.0,
    ),
    "all positions, channels": (
        lnk.serial(
            *(conv(), R, lnk.LayerNorm(scale=True, axes="all")),
            *(conv(), LN, R, G, DENSE),
        ),
        1.4,
    ),
}


def sequences(length: int = 4) -> np.ndarray:
    """Noise, one colour, one position, opposite positions, very different sizes, at ten contrasts."""
    rng = np.random.default_rng(3)
    colour = np.ones((length, 2)) * [1.0, -1.0]
    first, middle = np.zeros((2, length, 2))
    first[0], middle[length // 2] = 1.0, [1.0, -1.0]
    signs = (-1.0) ** np.arange(length)[:, None]
    lonely = np.where(np.arange(length)[:, None] == 0, 1.0, -1.0) * rng.normal(size=2)
    sizes = np.exp(6 * rng.normal(size=(length, 1))) * rng.normal(size=(length, 2))
    plain = [np.ones((length, 2)), colour, first, middle, signs * colour, lonely, sizes]
    shapes = np.stack([*plain, *rng.normal(size=(4, length, 2))])
    return np.concatenate([scale * shapes for scale in 10.0 ** np.arange(-3, 7)])


def largest(arch: lnk.Serial, rounds: int = 8) -> float:
    """The largest Θ(x, x) of these sequences, and of a climb from the best of them."""
    rng, theta, x = np.random.default_rng(4), lnk.ntk(arch), sequences()
    best = -math.inf
    for _ in range(rounds):
        found = theta.diagonal(x)
        best, top = max(best, float(found.max())), x[int(found.argmax())]
        sizes = 10.0 ** rng.uniform(-3, 0.5, size=(40, 1, 1)) * np.abs(top).max()
        x = np.concatenate([top[None], top + sizes * rng.normal(size=(40, *top.shape))])
    return best


@pytest.mark.parametrize("name", CASES)
def test_no_image_is_above_and_some_come_close(name: str) -> None:
    arch, factor = CASES[name]
    C = lnk.sup_diagonal(arch)
    assert C.method == "layers" and C.is_upper_bound and not C.certified
    found = largest(arch)
    assert found <= C.value * (1 + 1e-13)
    assert C.value <= factor * found


def violations(arch: lnk.Serial) -> list[int]:
    """The layers behind which some image breaks the limits; where positions are left, in the mean over them."""
    found, x = [], sequences()
    for count in range(1, len(arch.layers) + 1):
        limits = passed(lnk.serial(*arch.layers[:count]), Limits(), "")
        ends = () if {G, F} & set(arch.layers[:count]) else (F,)
        K, theta = (
            np.asarray(kernel(lnk.serial(*arch.layers[:count], *ends)).diagonal(x))
            for kernel in (lnk.nngp, lnk.ntk)
        )
        slack = 1 + 1e-9
        most = np.array([product(limits.T, q) for q in K])
        holds = (
            (K * slack >= limits.L)
            & (limits.Q * slack >= K)
            & (theta <= limits.S * slack)
            & (theta <= most * slack + 1e-300)
        )
        found += [] if holds.all() else [count - 1]
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_limits_hold_behind_every_layer(name: str) -> None:
    assert violations(CASES[name][0]) == []


def without_one(before: Limits, w: float, b: float, kept: float = 1.0) -> Limits:
    """The rule of weights with T' = T."""
    right = Limits(w * before.L * kept + b, w * before.Q + b, W=1 + before.W, high=0.0)
    return Limits(right.L, right.Q, right.Q + w * before.S, before.T, right.W, high=0.0)


def cannot_cancel(before: Limits, factor: float = 1.0, kept: float = 1.0) -> Limits:
    """The rule of sums over positions with T' = T, as if their features were all the same."""
    return Limits(before.L, before.Q, before.S, before.T, before.W, before.low, before.high)


@pytest.mark.parametrize(
    ("rule", "wrong", "name"),
    [
        ("weighed", without_one, "resnet"),
        ("weighed", without_one, "transformer, pre"),
        ("mixed", cannot_cancel, "sums over windows"),
        ("gated", lambda before, steepest: before, "GELU by tanh"),
        ("trained", lambda made, scale, bias: made, "trained norms"),
        ("summed", lambda ends: ends[0], "resnet"),
    ],
)
def test_a_wrong_rule_is_caught(
    rule: str, wrong: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_upper, rule, wrong)
    assert violations(CASES[name][0]) != []


@pytest.mark.parametrize("padding", ["SAME", "CIRCULAR"])
@pytest.mark.parametrize("norm", ["first", "last", "all"])
def test_of_plain_chains_it_is_the_theorem(norm: str, padding: str) -> None:
    arch = lnk.cnn(3, 8, norm=norm, padding=padding, pool=True)
    C = lnk.sup_diagonal(arch)
    assert C.method != "layers"  # the theorem comes first
    assert upper_bound(arch) == pytest.approx(C.value, rel=1e-14)


def test_a_constant_image_attains_the_bound_of_trained_norms() -> None:
    norm = lnk.LayerNorm(scale=True, bias=True)
    arch = lnk.cnn(2, 8, norm="all", padding="CIRCULAR", norm_layer=norm)
    found = lnk.ntk(arch).diagonal(np.ones((1, 4, 4, 2)))[0]
    assert lnk.sup_diagonal(arch).value == pytest.approx(found, rel=1e-13)


def test_images_of_two_axes() -> None:
    arch = lnk.resnet((1, 1), 8, norm="all", b_std=0.1)
    rng = np.random.default_rng(0)
    x = np.concatenate([s * rng.normal(size=(3, 4, 4, 2)) for s in (1e-3, 1.0, 1e6)])
    C = lnk.sup_diagonal(arch).value
    assert 0.2 * C < lnk.ntk(arch).diagonal(x).max() <= C


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ((lnk.residual(R, conv()), R, F), "no norm bounds K"),
        ((lnk.residual(LN, R, conv()), R, F), "no norm bounds K"),  # not that of the skip
        ((R, lnk.AvgPool(2), LN, F), "LayerNorm at layer 3.*may be large where"),
        ((lnk.Silu(), conv(), lnk.AvgPool(2), LN, F), "AvgPool at layer 3.*may be large where"),
        ((lnk.LayerNorm(bias=True), conv(), lnk.AvgPool(2), LN, F), "LayerNorm at layer 4"),
        ((LN, lnk.Silu(), conv(), lnk.Attention(8), LN, F), "LayerNorm at layer 5"),
        ((LN, lnk.residual(lnk.Tanh(), conv()), F), "Tanh at layer 2, branch 1.*degree 1"),
        ((LN, lnk.residual(lnk.RectifiedPower(2), conv()), F), "RectifiedPower.*degree 1"),
        ((LN, R, lnk.GlobalSumPool()), "GlobalSumPool.*size of the image"),
        ((LN, R, lnk.Attention(8, weights="relu"), F), "Attention.*number of positions"),
        ((LN, R, lnk.Attention(8, 1, "identity", "sqrt"), F), "number of positions"),
    ],
)
def test_what_has_no_bound_is_refused(layers: tuple[Node, ...], reason: str) -> None:
    arch = lnk.serial(conv(), *layers, DENSE)
    with pytest.raises(ArchitectureError, match="is proved for it here") as refusal:
        lnk.sup_diagonal(arch)
    assert refusal.match(reason)


@pytest.mark.parametrize("arch", [resnet(), resnet(norm="first"), lnk.transformer(1, 8, norm=None)])
def test_where_it_grows_it_is_refused(arch: lnk.Serial) -> None:
    """Without a norm, or with one that the skips pass by."""
    near, far = lnk.ntk(arch).diagonal(np.ones((2, 4, 2)) * [[[1.0]], [[1e6]]])
    assert far > 1e10 * near
    with pytest.raises(ArchitectureError, match="is proved for it here"):
        lnk.sup_diagonal(arch)


@node
class Mirror(Node):
    """A layer from outside of the package, which turns sequences around: nothing is known of it."""


def test_a_layer_from_outside_says_what_it_does() -> None:
    with pytest.raises(ArchitectureError, match=r"Mirror.*Register it in lnkernel.bounds.image"):
        through(Mirror(), Limits(), "")

    @through.register
    def _(layer: Mirror, before: Limits, here: str) -> Limits:
        return before

    assert through(Mirror(), Limits(), "") == Limits()


def test_what_is_said_of_it() -> None:
    arch = resnet(norm="all")
    C = lnk.sup_diagonal(arch)
    assert str(C).startswith("C = sup Θ(x, x) ≤ 3 over all images")
    assert "from layer to layer: C may be less" in str(C)
    assert math.isnan(C.attained_at) and math.isnan(C.limit_at_infinity)
    with pytest.raises(InputError, match="an upper bound alone is known"):
        C.attaining_input((4, 2))
    with pytest.raises(InputError, match="an upper bound alone is known"):
        C.profile([1.0])
    with pytest.raises(ArchitectureError, match="is proved for it here"):
        lnk.sup_diagonal(arch, certify=True)


def test_posterior_and_bound() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(6, 4, 2)), rng.normal(size=6)
    for arch in (resnet(norm="all"), transformer(1, "pre")):
        b = lnk.bound(arch, X, y)
        assert b.is_theorem and "C may be less" in str(b)
        mean = np.abs(lnk.posterior(arch, X, y).mean(sequences()))
        assert mean.max() <= b.rkhs <= b.value
        with pytest.raises(BoundedNetworkError):
            lnk.diverging_witness(arch, X, y)


def test_quotients_and_products_with_nothing_and_infinity() -> None:
    assert quotient(0.0, 0.0) == 0 and quotient(1.0, 0.0) == math.inf
    assert quotient(math.inf, 2.0) == math.inf and quotient(1.0, 4.0) == 0.25
    assert product(0.0, math.inf) == 0 and product(math.inf, 0.0) == math.inf
