"""Growth, suprema and bounded means of ELU, SELU and clips: against the textbook's recursion in many digits."""

from __future__ import annotations

import math

import kinked_oracle
import numpy as np
import pytest
from moments_of_kinks import closed_clip, closed_elu
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.bounds.reach import reach
from lnkernel.errors import ArchitectureError, BoundedMeanError
from lnkernel.evaluate.leading.growth import at_zero, far, growth, near
from lnkernel.evaluate.leading.terms import Term


def dense(weight: float = 2.0, bias: float = 0.01) -> lnk.Dense:
    """By the variances."""
    return lnk.Dense(8, W_std=weight**0.5, b_std=bias**0.5)


def textbook(arch: lnk.Serial, square: mpf) -> mpf:
    """Θ(x, x) at |x|²/d = `square`, layer by layer, from K, the mean square of the features, and their mean."""
    k, mean, theta = square, mpf(0), mpf(0)
    for layer in arch.layers:
        if isinstance(layer, lnk.Dense):
            weight = mpf(layer.W_std) ** 2
            k, mean = weight * k + mpf(layer.b_std) ** 2, mpf(0)
            theta = k + weight * theta
        elif isinstance(layer, lnk.LayerNorm):
            variance = k - mean**2 + mpf(layer.eps)
            k, mean, theta = (k - mean**2) / variance, mpf(0), theta / variance
        else:
            closed = closed_clip if isinstance(layer, lnk.Clip) else closed_elu
            found = closed(layer, mp.sqrt(k))
            k, mean, theta = found.square, found.mean, theta * found.slopes
    return theta


def at(term: Term, square: float) -> float:
    return term.coefficient * square**term.power


# ---------------------------------------------------------------- leading terms


@pytest.mark.parametrize(
    "act",
    [
        *(lnk.Selu(), lnk.Clip(-1.0, 2.0)),
        *(
            pytest.param(act, marks=pytest.mark.slow)
            for act in (lnk.Elu(), lnk.Elu(-0.3), lnk.Clip(), lnk.Clip(0.0, 6.0))
        ),
    ],
    ids=repr,
)
@pytest.mark.parametrize("bias", [0.0, 0.01])
def test_both_ends_along_a_ray(act: lnk.Piecewise, bias: float) -> None:
    """Of a norm directly behind the features, and of one behind the next Dense; and lengths in between."""
    d = dense(2.0, bias)
    arch = lnk.serial(d, act, lnk.LayerNorm(), d, act, d, lnk.LayerNorm(), d)
    norms = [1e-60, 1e-3, 0.5, 7.0, 1e4, 1e60]
    found = np.asarray(lnk.ntk(arch).diagonal([[norm] for norm in (*norms, 0.0)]))
    with mp.workdps(400):
        exact = [float(textbook(arch, mpf(norm) ** 2)) for norm in norms]
    np.testing.assert_allclose(found[:-1], exact, rtol=2e-14)
    assert at(near(arch), 1e120) == pytest.approx(exact[0], rel=2e-14)
    assert at(far(arch), 1e120) == pytest.approx(exact[-1], rel=2e-14)
    assert at_zero(arch) == pytest.approx(found[-1], rel=2e-14)


@pytest.mark.parametrize(
    ("act", "width"), [(lnk.Clip(), 2), (lnk.Clip(0.0, 6.0), 6), (lnk.Clip(0.5, 2.0), 1.5)]
)
def test_constants_of_clips(act: lnk.Clip, width: float) -> None:
    """One hidden layer, no bias: Θ ~ (∫φ'²)/√(2π)·|x|/√d."""
    law = growth(lnk.serial(dense(1, 0), act, dense(1, 0)))
    assert law == pytest.approx((1.0, width / math.sqrt(2 * math.pi)), rel=4e-15)


@pytest.mark.parametrize(("act", "scale"), [(lnk.Elu(0.4), 1.0), (lnk.Selu(), lnk.Selu.scale)])
def test_elu_grows_like_relu(act: lnk.Piecewise, scale: float) -> None:
    law = growth(lnk.serial(dense(2, 0.1), act, dense(2, 0.1)))
    assert law == pytest.approx((2.0, 2 * 2 * scale**2), rel=4e-15)


# ---------------------------------------------------------------- the supremum


def test_elu_has_its_maximum_inside() -> None:
    """Behind the LayerNorm Θ = 1 + R, and sup R = 1.0546 was found elsewhere, at q near 6."""
    arch = lnk.serial(dense(1, 0), lnk.Elu(), dense(1, 0), lnk.LayerNorm())
    c = lnk.sup_diagonal(arch)
    assert c.method == "search" and c.cause is None
    assert c.value == pytest.approx(2.0546, abs=5e-5) and 5 < c.attained_at**2 < 7
    assert (c.limit_at_zero, c.limit_at_infinity) == pytest.approx((2.0, 2.0), rel=1e-14, abs=0)
    with mp.workdps(50):
        place = mpf(c.attained_at)
        near_by = [textbook(arch, (place * factor) ** 2) for factor in (1, 0.999, 1.001)]
    assert c.value == pytest.approx(float(near_by[0]), rel=4e-15)
    assert near_by[0] > max(near_by[1:])


@pytest.mark.slow
def test_a_layernorm_directly_behind_elu() -> None:
    """sup R_c is the limit of a ReLU, π/(π - 1) = 1.4669."""
    c = lnk.sup_diagonal(lnk.serial(dense(1, 0), lnk.Elu(), lnk.LayerNorm()))
    assert c.value == pytest.approx(math.pi / (math.pi - 1), rel=4e-15)
    assert c.attained_at == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("act", [lnk.Elu(), lnk.Elu(0.3), lnk.Selu()], ids=repr)
@pytest.mark.parametrize("norm", ["last", "all"])
def test_one_layernorm_bounds_elu(act: lnk.Piecewise, norm: str) -> None:
    c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm=norm, activation=act))
    assert math.isfinite(c.value)
    assert c.value >= c.profile(np.geomspace(1e-9, 1e9, 3000)).max() * (1 - 1e-14)
    assert c.value >= max(c.limit_at_zero, c.limit_at_infinity)


@pytest.mark.parametrize("act", [lnk.Clip(), lnk.Clip(0.0, 6.0)], ids=repr)
def test_a_layernorm_behind_a_clip_comes_too_late(act: lnk.Clip) -> None:
    late = lnk.sup_diagonal(lnk.mlp(norm="last", activation=act))
    assert late.value == math.inf and late.growth is not None and late.growth.exponent == 1
    assert str(late.cause) == "Clip at layer 1" and "kernel saturates" in str(late)
    assert lnk.sup_diagonal(lnk.mlp(norm="first", activation=act)).is_constant


@pytest.mark.slow
def test_a_layernorm_with_eps_before_a_clip() -> None:
    c = lnk.sup_diagonal(lnk.serial(dense(), lnk.LayerNorm(0.1), lnk.Clip(), dense()))
    assert c.method == "search" and c.cause is None and math.isfinite(c.value)
    assert c.value >= c.profile(np.geomspace(1e-5, 1e5, 100)).max() * (1 - 1e-14)


def test_a_function_that_is_constant_at_zero() -> None:
    """Its variance underflows next to 0, where a LayerNorm would divide by it; a Dense between them helps."""
    act, d = lnk.Clip(0.5, 2.0), dense(2, 0)
    with pytest.raises(ArchitectureError, match=r"LayerNorm: .*constant on short .* Dense between"):
        near(lnk.serial(d, lnk.LayerNorm(0.1), act, lnk.LayerNorm(), d))
    arch = lnk.serial(d, lnk.LayerNorm(0.1), act, d, lnk.LayerNorm(), d)
    assert near(arch).limit == pytest.approx(4, rel=1e-15, abs=0)  # 1 + 1, twice
    bare, direct = lnk.serial(d, act, d), lnk.serial(d, act, lnk.LayerNorm(), d)
    assert lnk.ntk(bare).diagonal([[1e-3]])[0] == pytest.approx(0.5, rel=1e-15, abs=0)  # 2·0.5²
    with mp.workdps(400):
        exact = float(textbook(direct, mpf(0.02) ** 2))
    theta = lnk.ntk(direct)
    assert theta.diagonal([[0.02], [0.0]]) == pytest.approx([exact, 0.0], rel=1e-12, abs=0)


# ---------------------------------------------------------------- the mean without C


X = np.array(
    [[0.3, -0.5], [1.0, 0.2], [-0.7, 0.9]]
)  # with few inputs: 64 pairs are computed at a time
Y = np.array([1.0, -1.0, 0.5])


def test_how_far_a_point_is_felt_through_a_clip() -> None:
    """One hidden layer, along a ray, by 30 digits: never beyond the reach, and not far below it."""
    act = lnk.Clip(-1.0, 2.0)
    point = mpf(0.7)
    most = mpf(0)
    with mp.workdps(40):
        for exponent in range(-8, 25):
            other = mpf(2) ** (mpf(exponent) / 2)
            pair = kinked_oracle.expectations(act, other**2, point**2, mpf(1))
            most = max(most, pair.product + other * point * pair.slopes)
    size = reach(lnk.serial(dense(1, 0), act, dense(1, 0)), np.array([[0.7]]))[0]
    assert most <= size < 2.5 * most


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [1, 2])
def test_a_clip_has_a_bounded_mean(hidden: int) -> None:
    arch = lnk.mlp(hidden=hidden, activation=lnk.Clip(-1.0, 2.0))
    sizes = reach(arch, X)
    rays = np.concatenate([X, -X, np.ones((1, 2))])
    inputs = np.concatenate([rays * norm for norm in (1.0, 10.0, 1e4)])
    theta = np.abs(np.asarray(lnk.ntk(arch)(inputs, X))).max(axis=0)
    assert (theta <= sizes).all() and (sizes < 2.5 * theta).all()
    with pytest.raises(BoundedMeanError):
        lnk.diverging_witness(arch, X, Y)
    assert lnk.bound(arch, X, Y).value == math.inf
