"""Kernels of images and sequences: to 50 digits, by programs and by NumPy, inside of transformations, and errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import cases
import image_oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus import local_convolution
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.gram import compiled, frames, images, offsets, readout
from lnkernel.gram.network import needs_of

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 3, 2, 2))
STEP = RNG.normal(size=X[0].shape)
DENSE = lnk.Dense(1, W_std=1.1, b_std=0.3)


def conv(*filter: int, **options: object) -> lnk.Conv:
    return lnk.Conv(8, filter or (2, 3), **{"W_std": 1.4, "b_std": 0.2, **options})


def local(*filter: int, **options: object) -> lnk.ConvLocal:
    return lnk.ConvLocal(8, filter or (2, 3), **{"W_std": 1.4, "b_std": 0.2, **options})


def transposed(*filter: int, **options: object) -> lnk.ConvTranspose:
    standard = {"strides": 2, "W_std": 1.4, "b_std": 0.2}
    return lnk.ConvTranspose(8, filter or (2, 3), **{**standard, **options})


R, LN, ALL = lnk.Relu(), lnk.LayerNorm(), lnk.LayerNorm(axes="all")
FLAT = {
    "same": (conv(), R, conv(), R, lnk.Flatten(), DENSE),
    "no bias": (conv(b_std=0.0), R, conv(b_std=0.0), R, lnk.Flatten(), DENSE),
    "circular, strides": (
        conv(strides=2, padding="CIRCULAR"),
        R,
        conv(padding="CIRCULAR"),
        R,
        lnk.Flatten(),
        DENSE,
    ),
    "LN": (conv(), LN, R, conv(b_std=0.0), LN, R, lnk.Flatten(), DENSE),
    "LN behind": (conv(), R, LN, conv(), R, lnk.LayerNorm(eps=0.1), lnk.Flatten(), DENSE),
    "LN all": (conv(), ALL, R, conv(), lnk.LayerNorm(eps=0.1, axes="all"), R, lnk.Flatten(), DENSE),
    "LN all behind": (
        conv(),
        R,
        ALL,
        conv(),
        R,
        lnk.LayerNorm(0.1, axes="all"),
        lnk.Flatten(),
        DENSE,
    ),
    "local": (conv(), R, local(2, 1, padding="VALID", b_std=0.0), LN, R, lnk.Flatten(), DENSE),
    "crop": (conv(), R, lnk.Crop(None, None, -2), LN, conv(), R, lnk.Flatten(), DENSE),
    "crop, LN all": (
        lnk.Crop(1),
        conv(),
        R,
        ALL,
        lnk.Crop(0, 1, axis=-1),
        LN,
        lnk.Flatten(),
        DENSE,
    ),
    "nearest": (conv(), R, lnk.Resize((2, 3), "nearest"), LN, conv(), R, lnk.Flatten(), DENSE),
    "transposed": (conv(), R, transposed(padding="VALID"), LN, R, lnk.Flatten(), DENSE),
    "transposed, gaps": (
        *(conv(strides=2), R, transposed(1, 2, strides=(2, 3), b_std=0.0), R, conv(1, 2), LN, R),
        *(lnk.Flatten(), DENSE),
    ),
    "flat at once": (lnk.Flatten(), lnk.Dense(8, b_std=0.1), R, DENSE),
}
POOLED = {
    "GAP": (conv(), R, conv(), R, lnk.GlobalAvgPool(), DENSE),
    "GAP, LN all": (conv(), R, ALL, conv(), R, lnk.GlobalAvgPool(), DENSE),
    "GAP as a sum": (conv(), R, conv(), R, lnk.GlobalSumPool(), DENSE),
    "GAP, local": (conv(), R, local(), R, conv(2, 2), R, lnk.GlobalAvgPool(), DENSE),
    "GAP, crop": (conv(), R, lnk.Crop(1), conv(2, 2), LN, R, lnk.GlobalAvgPool(), DENSE),
    "GAP, nearest": (
        conv(),
        R,
        lnk.Resize((2, 3), "nearest"),
        conv(),
        R,
        lnk.GlobalAvgPool(),
        DENSE,
    ),
    "GAP, transposed": (
        transposed(1, 3, padding="CIRCULAR"),
        R,
        transposed(2, 1, strides=(1, 2), b_std=0.0),
        R,
        lnk.GlobalAvgPool(),
        DENSE,
    ),
    "smaller": (conv(), R, lnk.Resize((2, -1)), conv(), R, lnk.Flatten(), DENSE),
    "larger, LN": (conv(), R, lnk.Resize((4, 3)), LN, conv(), R, lnk.GlobalAvgPool(), DENSE),
    "larger, no antialias": (
        *(conv(), lnk.Resize((2, 3), antialias=False), R, conv(), R, lnk.Flatten(), DENSE),
    ),
    "local, average": (
        *(local(strides=2, padding="CIRCULAR"), LN, R, lnk.AvgPool((2, 1), 1)),
        *(local(1, 2, b_std=0.0), R, lnk.Flatten(), DENSE),
    ),
    "average": (conv(), R, lnk.AvgPool((2, 1)), conv(), R, lnk.Flatten(), DENSE),
    "sum, LN": (conv(), R, lnk.SumPool((2, 2), 1, "SAME"), LN, conv(), R, lnk.Flatten(), DENSE),
}
NEAR = {"1e-3": X[0] + 1e-3 * STEP, "1e-7": X[0] + 1e-7 * STEP, "1e-12": X[0] + 1e-12 * STEP}
NEAR |= {"contrast": 3.0 * X[0], "negative": -X[0], "long": 1e8 * X[1], "short": 1e-8 * X[1]}


def error(arch: lnk.Serial, x: np.ndarray, y: np.ndarray) -> float:
    """The largest error of K and Θ, relative to the root of the diagonals."""
    found = lnk.kernels(arch)(x[None], y[None])
    ends = [lnk.kernels(arch).diagonal(some[None]) for some in (x, y)]
    exact = image_oracle.kernels(arch, x, y)
    return max(
        abs(float(value[0, 0] - true)) / float(np.sqrt(one[0] * two[0]))
        for value, true, one, two in zip(found, exact, *ends, strict=True)
    )


@pytest.mark.parametrize("name", FLAT)
def test_fifty_digits_without_pooling(name: str) -> None:
    arch = lnk.serial(*FLAT[name])
    assert error(arch, X[0], X[1]) < 2e-15
    for near in NEAR.values():
        assert error(arch, X[0], near) < 6e-15


@pytest.mark.parametrize("name", POOLED)
def test_fifty_digits_with_pooling(name: str) -> None:
    arch = lnk.serial(*POOLED[name])
    last = name.startswith("GAP")  # nothing but the readout stands behind the pooling
    assert error(arch, X[0], X[1]) < 5e-15
    assert error(arch, X[0], X[0]) < 5e-15
    assert error(arch, X[0], NEAR["1e-3"]) < (5e-15 if last else 1e-12)
    assert error(arch, X[0], NEAR["1e-7"]) < (5e-15 if last else 3e-8)


@pytest.mark.parametrize("name", [*FLAT, *POOLED])
def test_an_input_with_itself(name: str) -> None:
    arch = lnk.serial(*(FLAT | POOLED)[name])
    exact = image_oracle.kernels(arch, X[0], X[0])
    for value, true in zip(lnk.kernels(arch).diagonal(X[:1]), exact, strict=True):
        assert abs(float(value[0] / float(true)) - 1) < 3e-15
    matrix = lnk.ntk(arch)(X)
    np.testing.assert_array_equal(np.diagonal(matrix), lnk.ntk(arch).diagonal(X))
    np.testing.assert_array_equal(matrix, matrix.T)


BRANCH = (lnk.LayerNorm(scale=True, bias=True), R, conv())
STAGED = {
    "branches": (conv(), lnk.residual(*BRANCH), lnk.RMSNorm(), R, lnk.Flatten(), DENSE),
    "pooled branches": (
        conv(),
        lnk.parallel(lnk.serial(R, lnk.AvgPool((2, 2), 1, "SAME"), conv()), conv()),
        LN,
        R,
        lnk.GlobalAvgPool(),
        LN,
        DENSE,
    ),
    "odd": (
        conv(),
        lnk.Erf(),
        LN,
        lnk.Dense(8),
        lnk.Erf(),
        conv(padding="CIRCULAR"),
        lnk.Flatten(),
    ),
}
BY_OFFSETS = {
    "GAP, norms": (conv(), *BRANCH, lnk.RMSNorm(eps=0.1), R, lnk.GlobalAvgPool(), DENSE),
    "GAP, branches": (
        lnk.Conv(8, (3, 1), b_std=0.2),
        lnk.residual(*BRANCH),
        R,
        lnk.GlobalAvgPool(),
        lnk.Dense(8, b_std=0.3),
        R,
        DENSE,
    ),
    "GAP, circular": (
        conv(2, 2, padding="CIRCULAR"),
        LN,
        R,
        conv(3, 1, padding="CIRCULAR"),
        R,
        lnk.GlobalSumPool(),
        DENSE,
    ),
}
EVERY = FLAT | POOLED | STAGED | BY_OFFSETS
DEAR = {"average", "LN all behind", "sum, LN", "GAP, LN all", "no bias", "LN behind"}
DEAR |= {
    "odd",
    "pooled branches",
    "local",
    "crop",
    "crop, LN all",
    "GAP, crop",
    "nearest",
    "transposed",
}
DEAR |= {"larger, LN", "larger, no antialias"}


@pytest.mark.parametrize("name", cases.some_slow([*EVERY], DEAR))
def test_programs_compute_what_numpy_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arch, some = lnk.serial(*EVERY[name]), np.concatenate([X, -X, 2 * X])
    some[0, 0, 0] = 0.0  # a pixel without a direction
    both, rows = lnk.kernels(arch)(some), lnk.kernels(arch)(some[:4], some)
    monkeypatch.setattr(images, "MOST", 0)
    monkeypatch.setattr(images, "AT_ONCE", 300)  # several tiles, the last ones not full
    for mine, yours in ((both, lnk.kernels(arch)(some)), (rows, lnk.kernels(arch)(some[:4], some))):
        for one, two in zip(mine, yours, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-14, atol=1e-14 * np.abs(two).max())


def test_equal_layers_share_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a network goes layer by layer."""
    monkeypatch.setattr(images, "MOST", 0)
    layers = (lnk.Conv(8, (3, 3), b_std=0.2), R)
    some = RNG.normal(size=(2, 4, 4, 2))
    lnk.ntk(lnk.serial(*layers * 3, lnk.AvgPool((2, 2)), lnk.Flatten(), DENSE))(some)
    known = len(compiled._kept)
    lnk.ntk(lnk.serial(*layers * 9, lnk.AvgPool((2, 2)), lnk.Flatten(), DENSE))(some)
    assert len(compiled._kept) == known


@pytest.mark.parametrize("name", BY_OFFSETS)
def test_pooling_by_offsets(name: str) -> None:
    """These networks are computed by the offsets between positions, and others are not."""
    arch = lnk.serial(*BY_OFFSETS[name])
    assert frames.plan_for(arch, needs_of(arch), X.shape[1:3]) is not None


@pytest.mark.parametrize(
    "layers",
    [
        (conv(), R, lnk.AvgPool((2, 1)), conv(), R, lnk.GlobalAvgPool()),
        (conv(strides=2), R, lnk.GlobalAvgPool()),
        (conv(padding="VALID"), R, lnk.GlobalAvgPool()),
        (conv(), ALL, R, lnk.GlobalAvgPool()),
        (conv(), R, lnk.GlobalAvgPool(), LN),
        (conv(2, 2), R, conv(2, 2, padding="CIRCULAR"), R, lnk.GlobalAvgPool()),
        (conv(), lnk.Gelu(), lnk.GlobalAvgPool()),
        (conv(), R, local(), R, lnk.GlobalAvgPool()),
        (conv(), R, transposed(), R, lnk.GlobalAvgPool()),
        (conv(), R, lnk.Crop(1), lnk.GlobalAvgPool()),
        (conv(), R, lnk.Resize((4, 4)), lnk.GlobalAvgPool()),
    ],
)
def test_what_mixes_offsets(layers: tuple[lnk.Node, ...]) -> None:
    arch = lnk.serial(*layers, DENSE)
    assert frames.plan_for(arch, needs_of(arch), X.shape[1:3]) is None


def test_long_sequences_by_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """More offsets than lie side by side: some come twice, and count once."""
    arch = lnk.serial(lnk.Conv(8, 3, b_std=0.2), R, lnk.GlobalAvgPool(), DENSE)
    words = RNG.normal(size=(2, frames.MOST_LANES + 6, 2))
    usual = lnk.ntk(arch)(words)
    monkeypatch.setattr(images, "MOST", 0)
    np.testing.assert_allclose(lnk.ntk(arch)(words), usual, rtol=1e-14)


def test_diagonals_by_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    arch = lnk.serial(*BY_OFFSETS["GAP, norms"])
    some = np.concatenate([X, -X, 2 * X])
    usual = lnk.kernels(arch).diagonal(some)
    monkeypatch.setattr(images, "MOST", 0)
    monkeypatch.setattr(offsets, "IN_A_CALL", 3000)  # several calls, the last one not full
    for mine, yours in zip(lnk.kernels(arch).diagonal(some), usual, strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-14)


def test_a_readout_takes_kernels_as_they_are() -> None:
    """Dense layers behind a pooling: no image is compared with itself, and the numbers are those of the rules."""
    arch = lnk.serial(conv(), R, lnk.GlobalAvgPool(), lnk.Dense(8, W_std=1.3, b_std=0.4), DENSE)
    plan = frames.plan_for(arch, needs_of(arch), X.shape[1:3])
    assert plan is not None and not offsets.needs_lengths(plan)
    bare = lnk.kernels(lnk.serial(conv(), R, lnk.GlobalAvgPool()))(X)
    found = readout.read_out(lnk.serial(*arch.layers[3:]), bare)
    for mine, yours in zip(found, lnk.kernels(arch)(X), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-14)
    with_more = lnk.serial(*arch.layers, R, DENSE)
    plan = frames.plan_for(with_more, needs_of(with_more), X.shape[1:3])
    assert plan is not None and offsets.needs_lengths(plan)


def test_sequences_and_volumes() -> None:
    """A volume that is one pixel deep is an image, and an image one pixel high a sequence."""
    image = RNG.normal(size=(2, 1, 5, 3))
    layers = (R, lnk.GlobalAvgPool(), DENSE)
    found = [
        lnk.ntk(lnk.serial(conv(*filter), *layers))(x)
        for filter, x in (((3,), image[:, 0]), ((1, 3), image), ((1, 1, 3), image[:, None]))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-14)


def test_without_pooling_nobody_knows_whether_weights_are_shared() -> None:
    """Kernels of equal positions are the same numbers; a pooling tells the two apart."""
    for end in (lnk.Flatten(), lnk.GlobalAvgPool()):
        made = [lnk.kernels(lnk.serial(first, R, end, DENSE))(X) for first in (conv(), local())]
        alike = [(one == two).all() for one, two in zip(*made, strict=True)]
        assert all(alike) if end == lnk.Flatten() else not any(alike)


def test_a_shared_bias_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle tells biases of each position's own from one for all."""
    arch = lnk.serial(*POOLED["GAP, local"])
    right = local_convolution.independent

    def wrong(num: Any, state: Any) -> Any:
        made = right(num, state)
        c = made.total.c + 1e-6 * (made.total.c == 0)
        return dataclasses.replace(made, total=dataclasses.replace(made.total, c=c, w=(1 - c) / 2))

    monkeypatch.setattr(local_convolution, "independent", wrong)
    assert error(arch, X[0], X[1]) > 1e-9


def test_wrong_places_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle tells a transposed convolution from one whose positions are moved by one, and so of resized images."""
    for name, layer in (("GAP, transposed", lnk.ConvTranspose), ("nearest", lnk.Resize)):
        arch, right = lnk.serial(*(FLAT | POOLED)[name]), layer.over
        with monkeypatch.context() as patch:
            patch.setattr(
                layer, "over", lambda self, shape, f=right: tuple(map(np.flip, f(self, shape)))
            )
            assert error(arch, X[0], X[1]) > 1e-6
    with monkeypatch.context() as patch:
        patch.setattr(lnk.Resize, "weights", lambda self, shape: [np.full((2, 3), 0.3), np.eye(2)])
        assert error(lnk.serial(*POOLED["smaller"]), X[0], X[1]) > 1e-6


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3", "lanczos5"])
def test_images_of_another_size_are_those_of_jax(method: str, antialias: bool) -> None:
    """For all lengths, and with a linear network, for which resizing after it is the same as before it."""
    layer = lnk.Resize((5, -1), method, antialias)
    assert layer.behind((3, 2)) == (5, 2)
    for n in range(1, 8):
        for m in range(1, 12):
            with jax.enable_x64(True):
                theirs = jax.image.resize(np.eye(n), (m, n), method, antialias=antialias)
            if method == "nearest":
                made = np.eye(n)[lnk.Resize((m,), method).over((n,))[0]]
            else:
                made = lnk.Resize((m,), method, antialias).weights((n,))[0]
            np.testing.assert_allclose(made, theirs, atol=1e-14)
    with jax.enable_x64(True):
        other = np.asarray(jax.image.resize(X, (3, 5, 2, 2), method, antialias=antialias))
    linear, ends = lnk.Dense(8, 1.3), (lnk.Dense(8), lnk.Flatten(), DENSE)
    both = (
        lnk.kernels(lnk.serial(linear, layer, *ends))(X),
        lnk.kernels(lnk.serial(linear, *ends))(other),
    )
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
@pytest.mark.parametrize("act", [R, lnk.RectifiedPower(2), lnk.Gelu(), lnk.Cos(2.0)], ids=repr)
def test_half_the_size_is_a_pooling(act: lnk.Node, end: lnk.Node) -> None:
    """Also with lengths of more digits or a wider range than float64's, which some activations need."""
    some = RNG.normal(size=(2, 4, 4, 2))
    pool, smaller = lnk.AvgPool((2, 2)), lnk.Resize((2, 2), antialias=False)
    both = [
        lnk.kernels(lnk.serial(conv(2, 2), act, LN, half, conv(2, 2), act, end, DENSE))(some)
        for half in (pool, smaller)
    ]
    for mine, yours in zip(*both, strict=True):
        np.testing.assert_allclose(mine, yours, rtol=5e-15)


def test_crops_are_those_of_python() -> None:
    body = conv(), R, lnk.Flatten(), DENSE
    for start, stop, step in (
        (1, None, None),
        (None, -1, 1),
        (None, None, -1),
        (-1, 0, -1),
        (0, 9, 2),
    ):
        found = lnk.ntk(lnk.serial(lnk.Crop(start, stop, step), *body))(X)
        np.testing.assert_array_equal(found, lnk.ntk(lnk.serial(*body))(X[:, start:stop:step]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: lnk.Crop(1.5), "start must be a whole number or None, got 1.5"),
        (lambda: lnk.Crop(step=0), "step must not be 0"),
        (lambda: lnk.Crop(axis=3), "axis must be a whole number from -3 to 2"),
        (lambda: lnk.Crop(axis=2).over((3, 2)), "its axis 2 is not among the 2"),
        (lambda: lnk.Crop(5).over((3, 2)), "none of the 3 positions along axis 0 stays"),
        (lambda: lnk.Resize((0, 3)), "shape must have whole numbers from 1 on, or -1"),
        (lambda: lnk.Resize((3, 3), "spline"), "method='spline' is not known. Use one of nearest"),
        (lambda: lnk.Resize((3, 3), antialias=1), "antialias must be True or False"),
        (lambda: lnk.ConvTranspose(8, (3, 3), 0), "ConvTranspose: strides must be a whole number"),
        (lambda: lnk.serial(lnk.Flatten(), lnk.Crop(1)), "Crop at layer 1: it acts on positions"),
        (lambda: lnk.serial(lnk.Conv(8, 3), lnk.Resize((3, 3))), "Resize at layer 1.*2 axes"),
        (lambda: lnk.serial(lnk.Conv(8, 3), lnk.ConvTranspose(8, (3, 3))), "2 axes"),
        (lambda: lnk.ntk(lnk.serial(conv(), lnk.Crop(1))), "an output at every position"),
    ],
)
def test_layers_of_places_that_cannot_be(make: Any, reason: str) -> None:
    with pytest.raises(ArchitectureError, match=reason):
        make()


def test_dense_networks_on_flat_images() -> None:
    arch = lnk.mlp(hidden=2, norm="first")
    flat = X.reshape(3, -1)
    np.testing.assert_allclose(
        lnk.ntk(lnk.serial(lnk.Flatten(), arch))(X), lnk.ntk(arch)(flat), rtol=2e-15
    )


@pytest.mark.slow  # to compile the derivatives takes half a minute
@pytest.mark.parametrize("end", [lnk.Flatten(), lnk.GlobalAvgPool()])
def test_derivatives(end: lnk.Node) -> None:
    def theta(x: jax.Array, W_std: jax.Array) -> jax.Array:
        first = lnk.Conv(8, (2, 2), W_std=W_std, b_std=0.2)
        return lnk.ntk(lnk.serial(first, R, end, DENSE))(x[None], X[1:2])[0, 0]

    with jax.enable_x64(True):
        x = jnp.asarray(X[0])
        value, (dx, dW) = jax.jit(jax.value_and_grad(theta, (0, 1)))(x, 1.4)
        step = 1e-5 * STEP
        there, back = (float(theta(X[0] + s * step, 1.4)) for s in (1, -1))
        assert abs(float(value) / float(theta(X[0], 1.4)) - 1) < 1e-14
        assert abs(float((dx * step).sum()) / ((there - back) / 2) - 1) < 1e-7
        changed = [float(theta(X[0], 1.4 + s)) for s in (1e-5, -1e-5)]
        assert abs(float(dW) / ((changed[0] - changed[1]) / 2e-5) - 1) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(
    "layers",
    [
        (conv(), R, transposed(), R, lnk.Crop(1, 4), lnk.Flatten(), DENSE),
        (local(), R, lnk.Resize((4, 3)), lnk.GlobalAvgPool(), DENSE),
    ],
)
def test_derivatives_behind_other_places(layers: tuple[lnk.Node, ...]) -> None:
    theta, step = lnk.ntk(lnk.serial(*layers)), 1e-5 * STEP
    with jax.enable_x64(True):
        value, dx = jax.jit(jax.value_and_grad(lambda x: theta(x[None], X[1:2])[0, 0]))(X[0])
    there, back = (float(theta((X[0] + s * step)[None], X[1:2])[0, 0]) for s in (1, -1))
    assert float(value) == pytest.approx(float(theta(X[:1], X[1:2])[0, 0]), rel=1e-14)
    assert float((np.asarray(dx) * step).sum()) == pytest.approx((there - back) / 2, rel=1e-7)


def test_single_images_of_a_vmap() -> None:
    """They have no axis of points, and the remedy says how to give them one."""
    theta = lnk.ntk(lnk.serial(conv(2, 2), R, lnk.Flatten(), DENSE))
    for call in (theta, theta.diagonal):
        with (
            jax.enable_x64(True),
            pytest.raises(InputError, match=r"lambda x: f\(x\[None\]\)\[0\]"),
        ):
            jax.vmap(call)(X)


@pytest.mark.slow
def test_vmap() -> None:
    arch = lnk.serial(conv(2, 2), R, lnk.Flatten(), DENSE)
    with jax.enable_x64(True):
        at_once = jax.vmap(lambda x: lnk.ntk(arch)(x[None], X[:1])[0, 0])(jnp.asarray(X))
    np.testing.assert_allclose(at_once, lnk.ntk(arch)(X, X[:1])[:, 0], rtol=1e-13)


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ((lnk.Conv(8, (3, 3)), R), "ends here with an output at every position"),
        ((lnk.Conv(8, (3, 3)), lnk.Flatten(), R), "its input is not Gaussian, because Flatten"),
        ((lnk.Conv(8, (3, 3)), lnk.Flatten(), LN), "it follows Flatten"),
        ((lnk.Conv(8, (3, 3)), lnk.Flatten(), lnk.Conv(8, (3, 3))), "has left none"),
        ((lnk.Conv(8, (3, 3)), lnk.AvgPool(2), lnk.Flatten()), "its window has 1 axes"),
        ((ALL, lnk.Conv(8, 3), lnk.Flatten()), "acts on the raw images"),
        ((lnk.Conv(8, 3), lnk.GroupNorm(4), lnk.Flatten()), "its groups hold all positions"),
        (
            (lnk.Conv(8, 3), lambda: lnk.parallel(lnk.Flatten(), lnk.Dense(8))),
            "one branch ends in Fl",
        ),
        ((lnk.Conv(8, 3), R, lnk.AvgPool(2), lnk.Abs(), lnk.Flatten()), "because Relu"),
    ],
)
def test_what_has_no_rule(layers: tuple[lnk.Node, ...], reason: str) -> None:
    with pytest.raises(ArchitectureError, match=reason):
        lnk.ntk(lnk.serial(*(layer() if callable(layer) else layer for layer in layers)))


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_sizes_whose_squares_leave_float64_are_refused(size: float) -> None:
    """They were wrong in the third digit, or NaN, without a word."""
    one = X.copy()
    one[1, 0, 1] *= size
    for layers in ((conv(), LN, R, lnk.Flatten()), (conv(), R, lnk.GlobalAvgPool(), LN)):
        theta = lnk.ntk(lnk.serial(*layers, DENSE))
        with pytest.raises(InputError, match=r"at position \(0, 1\) of input 1"):
            theta(X, one)
        assert np.isfinite(theta(1e-130 * X)).all() and np.isfinite(theta(1e130 * X)).all()


def test_wrong_inputs() -> None:
    flat = lnk.ntk(lnk.serial(conv(), R, lnk.Flatten(), DENSE))
    for x in (X[0], X[..., 0], X.reshape(3, -1)):
        with pytest.raises(
            InputError, match=r"\(n, height, width, channels\), because the network acts on pos"
        ):
            flat(x)
    with pytest.raises(InputError, match="inputs of the shape of those in x"):
        flat(X, X[:, :2])
    with pytest.raises(InputError, match="2-D array of shape"):
        lnk.ntk(lnk.mlp())(X)
    with pytest.raises(ArchitectureError, match="does not fit into the 2"):
        lnk.ntk(lnk.serial(conv(3, 3, padding="VALID"), lnk.Flatten(), DENSE))(X)
    for wrong in (
        {"filter": 0},
        {"filter": (3, 3), "strides": (2,)},
        {"filter": 3, "padding": "REFLECT"},
    ):
        with pytest.raises(ArchitectureError, match="Conv: "):
            lnk.Conv(8, **wrong)
