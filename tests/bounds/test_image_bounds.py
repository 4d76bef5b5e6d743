"""C of networks on images: an upper bound for all images, attained by those that are the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.arch import Node, Serial
from lnkernel.arch.node import node
from lnkernel.bounds.images import Counterpart, behind, dense_counterpart
from lnkernel.errors import ArchitectureError, InputError

RNG = np.random.default_rng(7)
DENSE, R, LN = lnk.Dense(1, W_std=2**0.5, b_std=0.1), lnk.Relu(), lnk.LayerNorm()


def network(padding: str, *, first: bool, end: lnk.Node) -> lnk.Serial:
    """Two convolutions, of which one is normalised."""
    conv = lnk.Conv(8, (3, 3), padding=padding, W_std=2**0.5, b_std=0.1)
    layers = (conv, LN, R, conv, R) if first else (conv, R, conv, LN, R)
    return lnk.serial(*layers, end, DENSE)


def pictures() -> np.ndarray:
    """Noise, one pixel, one colour, a checkerboard, each at four contrasts."""
    one = np.zeros((4, 4, 2))
    one[1, 2] = 1.0
    board = np.indices((4, 4)).sum(axis=0)[..., None] % 2 * np.ones(2)
    some = np.stack([RNG.normal(size=(4, 4, 2)), one, np.ones((4, 4, 2)), board])
    return np.concatenate([scale * some for scale in (1e-2, 1.0, 1e3, 1e6)])


@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("padding", ["SAME", "CIRCULAR"])
def test_no_image_is_above(padding: str, first: bool, end: lnk.Node) -> None:
    arch = network(padding, first=first, end=end)
    dense = lnk.mlp(hidden=2, norm="first" if first else "last")
    C = lnk.sup_diagonal(arch)
    assert C.value == lnk.sup_diagonal(dense).value
    assert C.is_upper_bound == (padding == "SAME")
    found = lnk.ntk(arch).diagonal(pictures())
    assert found.max() <= C.value * (1 + 1e-14)
    if padding == "CIRCULAR":  # the one colour, at its largest contrast
        assert found[14] == pytest.approx(C.value, rel=1e-8)
        assert C.profile([1e6])[0] == pytest.approx(found[14], rel=1e-14)


@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
def test_weights_of_each_position_s_own(end: lnk.Node) -> None:
    """One colour attains C where nothing is pooled; pooled features of different positions are less alike."""
    own, shared = (
        kind(8, (3, 3), padding="CIRCULAR", W_std=2**0.5, b_std=0.1)
        for kind in (lnk.ConvLocal, lnk.Conv)
    )
    arch = lnk.serial(own, LN, R, shared, R, end, DENSE)
    C, pooled = lnk.sup_diagonal(arch), end == lnk.GlobalAvgPool()
    assert C.value == lnk.sup_diagonal(lnk.serial(shared, LN, R, shared, R, end, DENSE)).value
    assert C.is_upper_bound == pooled and (not pooled or "filters of their own" in str(C))
    found = lnk.ntk(arch).diagonal(pictures())
    assert found.max() <= C.value * (1 + 1e-14)
    one = lnk.ntk(arch).diagonal(C.attaining_input((4, 4, 2))[None])[0]
    assert (one < 0.9 * C.value) if pooled else one == pytest.approx(C.value, rel=1e-10)


CIRCLE = lnk.Conv(8, (2, 2), padding="CIRCULAR", W_std=2**0.5, b_std=0.1)
LARGER = lnk.ConvTranspose(8, (3, 3), 2, "CIRCULAR", W_std=2**0.5, b_std=0.1)
AROUND = lnk.ConvTranspose(8, (3, 3), 1, "CIRCULAR", W_std=2**0.5, b_std=0.1)


@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
@pytest.mark.parametrize(
    ("layers", "attained"),
    [
        ((CIRCLE, LN, R, lnk.Crop(1), lnk.Resize((3, 5), "nearest"), CIRCLE, R), True),
        ((CIRCLE, LN, R, CIRCLE, R, lnk.Resize((3, 5))), True),
        ((CIRCLE, LN, R, AROUND, R), True),
        ((CIRCLE, LN, R, LARGER, R), False),
        ((CIRCLE, lnk.LayerNorm(axes="all"), R, LARGER, R), False),
    ],
)
def test_places(layers: tuple[lnk.Node, ...], attained: bool, end: lnk.Node) -> None:
    arch = lnk.serial(*layers, end, DENSE)
    C = lnk.sup_diagonal(arch)
    assert np.isfinite(C.value) and C.is_upper_bound != attained and C.method != "layers"
    assert lnk.ntk(arch).diagonal(pictures()).max() <= C.value * (1 + 1e-13)
    image = C.attaining_input((4, 4, 2))
    one = lnk.ntk(arch).diagonal(image[None])[0]
    assert one == pytest.approx(C.value, rel=1e-10) if attained else one < 0.999 * C.value


def test_negative_weights_are_refused() -> None:
    layers = CIRCLE, LN, R, lnk.Resize((3, 3), "cubic"), CIRCLE, R, lnk.Flatten(), DENSE
    with pytest.raises(ArchitectureError, match="negative weights"):
        lnk.sup_diagonal(lnk.serial(*layers))


def test_without_a_norm_it_is_infinite() -> None:
    arch = lnk.serial(lnk.Conv(8, (3, 3)), R, lnk.Flatten(), DENSE)
    C = lnk.sup_diagonal(arch)
    assert C.value == np.inf and C.growth is not None and C.growth.exponent == 2


def test_what_is_not_proved_is_refused() -> None:
    conv = lnk.Conv(8, (3, 3))
    for layers in (
        (conv, lnk.Tanh(), lnk.Flatten()),
        (conv, R, lnk.AvgPool((2, 2)), LN, lnk.Flatten()),
        (conv, R, lnk.LayerNorm(axes="all"), lnk.Flatten()),
        (conv, lnk.LayerNorm(scale=True, axes="all"), R, lnk.Flatten()),
        (conv, lnk.LayerNorm(axes="all"), R, lnk.Conv(8, (3, 3), 2), lnk.Flatten()),
        (conv, lnk.LayerNorm(axes="all"), R, lnk.Conv(8, (3, 3), padding="VALID"), lnk.Flatten()),
        (conv, lnk.LayerNorm(axes="all"), R, lnk.AvgPool((2, 2)), lnk.Flatten()),
        (conv, lnk.LayerNorm(axes="all"), R, lnk.Attention(8), lnk.Flatten()),
        (conv, LN, lnk.Attention(8, weights="relu"), lnk.Flatten()),
        (conv, R, lnk.SumPool((2, 2)), lnk.Flatten()),
    ):
        with pytest.raises(ArchitectureError, match="is proved for it here"):
            lnk.sup_diagonal(lnk.serial(*layers, DENSE))


LOOK = lnk.Attention(8, 2, QK_std=3.0, OV_std=1.3, b_std=0.2)


@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
@pytest.mark.parametrize("padding", ["SAME", "CIRCULAR"])
@pytest.mark.parametrize("kind", ["all first", "all last", "all twice", "attention", "twice"])
def test_attention_and_norms_of_all_positions(kind: str, padding: str, end: lnk.Node) -> None:
    """Their C is at most that of the dense network, and that of images of one colour if no zeros come in."""
    conv = lnk.Conv(8, (3, 3), padding=padding, W_std=2**0.5, b_std=0.1)
    every = lnk.LayerNorm(axes="all")
    body = {
        "all first": (conv, every, R, conv, R),
        "all last": (conv, R, conv, every, R),
        "all twice": (conv, lnk.LayerNorm(1e-3, axes="all"), R, conv, every, R),
        "attention": (conv, LN, R, LOOK, R),
        "twice": (conv, R, conv, LN, LOOK, R, LOOK),
    }[kind]
    arch = lnk.serial(*body, end, DENSE)
    C = lnk.sup_diagonal(arch)
    assert np.isfinite(C.value) and C.is_upper_bound == (padding == "SAME")
    found = lnk.ntk(arch).diagonal(pictures())
    assert found.max() <= C.value * (1 + 1e-13)
    if padding == "CIRCULAR":
        image = C.attaining_input((4, 4, 2))
        assert lnk.ntk(arch).diagonal(image[None])[0] == pytest.approx(C.value, rel=1e-10)


@node
class Mirror(Node):
    """A layer from outside of the package, which turns images around: nothing is known of it."""


def test_a_layer_from_outside_is_refused_until_it_says_what_it_is() -> None:
    layers = lnk.Conv(8, (3, 3)), Mirror(), lnk.Flatten()
    with pytest.raises(ArchitectureError, match=r"Mirror.*layer 1.*is proved for it here"):
        dense_counterpart(Serial(layers))

    @behind.register
    def _(layer: Mirror, before: Counterpart, here: str) -> Counterpart:
        return before.then(lnk.Identity())

    assert dense_counterpart(Serial(layers)).layers[1:] == (lnk.Identity(), lnk.Identity())


def test_an_activation_from_outside_of_degree_one_is_known() -> None:
    class Steep(lnk.LeakyRelu):
        """Another member of the family of degree 1, which its base tells."""

    assert dense_counterpart(Steep(0.5)).layers == (Steep(0.5),)


def test_posterior_and_bound() -> None:
    arch = network("SAME", first=True, end=lnk.Flatten())
    X, y = RNG.normal(size=(6, 4, 4, 2)), RNG.normal(size=6)
    post = lnk.posterior(arch, X, y)
    np.testing.assert_allclose(post.mean(X), y, rtol=1e-9)
    assert post.variance(X[:2]).max() < 1e-9
    b = lnk.bound(arch, X, y)
    far = 1e3 * pictures()
    assert np.abs(post.mean(far)).max() <= b.rkhs
    assert (np.abs(post.mean(far)) <= b.at(far) * (1 + 1e-9)).all()
    with pytest.raises(InputError, match="inputs of the shape of the training inputs"):
        post.mean(X[:, :3])


@pytest.mark.parametrize("padding", ["CIRCULAR", "VALID"])
@pytest.mark.parametrize("norm", ["first", "last"])
def test_the_attaining_image(padding: str, norm: str) -> None:
    arch = lnk.cnn(hidden=2, filter=(2, 2), norm=norm, padding=padding, pool=True)
    C = lnk.sup_diagonal(arch)
    image = C.attaining_input((4, 5, 3))
    assert not C.is_upper_bound and image.shape == (4, 5, 3)
    assert lnk.ntk(arch).diagonal(image[None])[0] == pytest.approx(C.value, rel=1e-10)
    with pytest.raises(InputError, match="a finite C"):
        lnk.sup_diagonal(lnk.cnn(hidden=1)).attaining_input((4, 4, 1))


@pytest.mark.parametrize("shape", [0, -3, (), (4, 0, 3), (4, 4, 1.5), True, "3"])
def test_a_shape_that_no_input_has(shape: Any) -> None:
    with pytest.raises(InputError, match="shape: expected positive integers"):
        lnk.sup_diagonal(lnk.mlp(norm="first")).attaining_input(shape)


def test_what_an_image_s_C_is_said_to_be() -> None:
    """Θ(x, x) of images is no constant: a pooling sees all of an image, and patches may be zero."""
    text = str(lnk.sup_diagonal(lnk.cnn(hidden=1, norm="first", pool=True)))
    assert "C may be less" in text and "the same for every x" not in text
    circular = lnk.sup_diagonal(lnk.cnn(hidden=1, norm="first", padding="CIRCULAR"), certify=True)
    assert "attained by images that are the same" in str(circular) and "proved" in str(circular)
    assert circular.enclosure is not None and circular.enclosure[0] > 0.99 * circular.value
    zeros = lnk.sup_diagonal(lnk.cnn(hidden=1, norm="first"), certify=True)
    assert zeros.certified and zeros.enclosure == (0.0, zeros.value)
