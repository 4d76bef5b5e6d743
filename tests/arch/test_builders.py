"""`resnet` and `transformer`: the layers that they write, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import ArchitectureError

RNG = np.random.default_rng(0)
LN, R = lnk.LayerNorm(), lnk.Relu()


def test_a_residual_network() -> None:
    conv = lnk.Conv(8, (3, 3), W_std=1.5, b_std=0.1)
    block = lnk.residual(LN, R, conv, LN, R, conv)
    end = LN, R, lnk.GlobalAvgPool(), lnk.Dense(2, 1.5, 0.1)
    made = lnk.resnet(2, 8, norm="all", W_std=1.5, b_std=0.1, outputs=2)
    assert made == lnk.serial(conv, block, block, *end)
    plain = lnk.residual(R, conv, R, conv)
    first = lnk.resnet(2, 8, norm="first", W_std=1.5, b_std=0.1, pool=False)
    flat = R, lnk.Flatten(), lnk.Dense(1, 1.5, 0.1)
    assert first == lnk.serial(conv, block, plain, *flat)


def test_stages_halve_the_image() -> None:
    made = lnk.resnet((1, 1), 4, filter=(3,), pool=False)
    skip, inside = made.layers[2].branches
    assert skip == lnk.Conv(4, (1,), 2)
    assert inside.layers[1].strides == (2,) and inside.layers[3].strides == (1,)
    assert lnk.ntk(made)(RNG.normal(size=(2, 5, 2))).shape == (2, 2)
    assert lnk.finite.network(made, (5, 2), rngs=0)(RNG.normal(size=(2, 5, 2))).shape == (2, 1)
    assert lnk.parse("resnet((1, 1), 4, filter=(3,), pool=False)") == made


def test_a_transformer() -> None:
    look, wide = lnk.Attention(8, 2, QK_std=0.5, OV_std=2.25), lnk.Dense(16, 1.5)
    network = wide, lnk.Gelu(), lnk.Dense(8, 1.5)
    end = lnk.GlobalAvgPool(), lnk.Dense(1, 1.5)
    options: dict[str, Any] = {"heads": 2, "expansion": 2, "QK_std": 0.5, "W_std": 1.5}
    pre = lnk.residual(LN, look), lnk.residual(LN, *network)
    assert lnk.transformer(1, 8, **options) == lnk.serial(lnk.Dense(8, 1.5), *pre, LN, *end)
    post = lnk.residual(look), LN, lnk.residual(*network), LN
    made = lnk.transformer(1, 8, norm="post", **options)
    assert made == lnk.serial(lnk.Dense(8, 1.5), *post, *end)
    x = RNG.normal(size=(2, 3, 2))
    assert lnk.ntk(made)(x).shape == (2, 2)
    assert lnk.finite.network(made, (3, 2), rngs=0)(x).shape == (2, 1)


def test_a_norm_at_the_end_makes_contrast_harmless() -> None:
    """Θ(x, x) of a transformer stays bounded as all words grow; without norms it does not."""
    x = RNG.normal(size=(1, 4, 3))
    for norm, grows in (("pre", False), ("post", False), (None, True)):
        theta = lnk.ntk(lnk.transformer(1, 8, norm=norm, activation=R))
        near, far = (float(theta.diagonal(scale * x)[0]) for scale in (1e4, 1e6))
        assert (far > 1e3 * near) == grows


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: lnk.resnet(0), "blocks must be an integer >= 1, got 0"),
        (lambda: lnk.resnet(()), "blocks must be an integer >= 1, got None"),
        (lambda: lnk.resnet((1, 2.0)), "got 2.0"),
        (lambda: lnk.resnet(padding="VALID"), "smaller than those of its skip"),
        (lambda: lnk.resnet(norm="pre"), "norm='pre' is not known"),
        (lambda: lnk.resnet(pool=1), "pool must be True or False"),
        (lambda: lnk.transformer(True), "blocks must be an integer >= 1, got True"),
        (lambda: lnk.transformer(norm="all"), "norm='all' is not known"),
        (lambda: lnk.transformer(expansion=0), "expansion must be an integer >= 1"),
        (lambda: lnk.transformer(channels=6), "4 heads do not divide its 6 channels"),
        (lambda: lnk.transformer(pool=None), "pool must be True or False"),
    ],
)
def test_refused(make: Any, reason: str) -> None:
    with pytest.raises(ArchitectureError, match=reason):
        make()


def test_integers_of_numpy_and_jax() -> None:
    two = np.int64(2)
    for made, same in (
        (lnk.mlp(hidden=two), lnk.mlp(hidden=2)),
        (lnk.mlp(hidden=jnp.asarray(2), width=np.array(8)), lnk.mlp(hidden=2, width=8)),
        (lnk.cnn(hidden=two), lnk.cnn(hidden=2)),
        (lnk.resnet((two, two)), lnk.resnet((2, 2))),
        (lnk.transformer(two, expansion=two), lnk.transformer(2, expansion=2)),
        (lnk.Conv(two, (two, 3), strides=two), lnk.Conv(2, (2, 3), strides=2)),
        (lnk.AvgPool((two, two)), lnk.AvgPool((2, 2))),
        (lnk.Resize((two, -1)), lnk.Resize((2, -1))),
        (lnk.Crop(two, axis=two), lnk.Crop(2, axis=2)),
    ):
        assert repr(made) == repr(same) and made == same and lnk.parse(repr(made)) == same


@pytest.mark.parametrize("build", [lnk.mlp, lnk.cnn, lambda hidden: lnk.transformer(hidden)])
def test_a_traced_number_of_layers(build: Callable[..., lnk.Node]) -> None:
    with pytest.raises(ArchitectureError, match=r"a plain Python integer.*static_argnames"):
        jax.jit(lambda count: build(hidden=count).layers)(2)


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet", "transformer"])
def test_a_text_as_activation(name: str) -> None:
    with pytest.raises(
        ArchitectureError, match=rf"^{name}: .* the text 'relu'.*=lnkernel.Relu\(\)"
    ):
        getattr(lnk, name)(activation="relu")
