"""For which activations one LayerNorm makes Θ(x, x) bounded, and where the mean is bounded without it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.arch.node import node
from lnkernel.bounds.reach import reach
from lnkernel.errors import ArchitectureError, BoundedMeanError, GrowthError
from lnkernel.evaluate.leading import activations
from lnkernel.evaluate.leading.growth import at_zero, far, growth, near
from lnkernel.evaluate.leading.terms import Term


def dense(weight: float = 2.0, bias: float = 0.01) -> lnk.Dense:
    """By the variances."""
    return lnk.Dense(8, W_std=weight**0.5, b_std=bias**0.5)


def behind_layernorm(act: lnk.Smooth, blocks: int) -> lnk.Serial:
    return lnk.serial(*(dense(), act) * blocks, dense(), lnk.LayerNorm())


def last(act: lnk.Smooth, bias: float = 0.01) -> lnk.Serial:
    return lnk.serial(dense(2, bias), act, dense(2, bias), lnk.LayerNorm(), dense(2, bias))


# ---------------------------------------------------------------- the supremum


@pytest.mark.parametrize(
    ("blocks", "low", "high"),
    [
        (1, 2.059799, 2.059802),
        pytest.param(2, 3.182817, 3.182821, marks=pytest.mark.slow),
        pytest.param(3, 4.372516, 4.372522, marks=pytest.mark.slow),
    ],
)
def test_gelu_has_its_maximum_inside(blocks: int, low: float, high: float) -> None:
    """Within enclosures by ball arithmetic, made elsewhere."""
    c = lnk.sup_diagonal(behind_layernorm(lnk.Gelu(), blocks))
    assert c.method == "search" and low <= c.value <= high
    assert "found by a search, which is no proof" in str(c)
    assert 0.5 < c.attained_at < 1
    assert c.limit_at_infinity == pytest.approx(blocks + 1, rel=1e-14, abs=0)


def test_silu_is_above_its_limit() -> None:
    c = lnk.sup_diagonal(behind_layernorm(lnk.Silu(), 1))
    assert c.profile([math.sqrt((1.9 - 0.01) / 2)])[0] == pytest.approx(2.06148, abs=5e-6)
    assert 2.06148 < c.value < 2.0769 and c.limit_at_infinity == pytest.approx(2, rel=1e-14, abs=0)


def test_a_layernorm_with_eps_before_it_is_enough() -> None:
    c = lnk.sup_diagonal(lnk.serial(dense(), lnk.LayerNorm(0.1), lnk.Tanh(), dense()))
    assert c.method == "search" and c.cause is None
    assert c.value >= c.profile(np.geomspace(1e-5, 1e5, 100)).max() * (1 - 1e-14)


@pytest.mark.parametrize(
    ("act", "bias", "exponent"),
    [
        (lnk.Tanh(), 0.01, 1),
        (lnk.Sigmoid(), 0.01, 1),
        (lnk.Sin(1.3, 0.2), 0.01, 2),
        (lnk.Gaussian(), 0.0, 2),
        (lnk.Gaussian(), 0.01, 1),
    ],
    ids=repr,
)
def test_a_layernorm_behind_it_comes_too_late(act: lnk.Smooth, bias: float, exponent: int) -> None:
    c = lnk.sup_diagonal(last(act, bias))
    assert c.value == math.inf and c.growth is not None
    assert c.growth.exponent == exponent
    assert str(c.cause) == f"{type(act).__name__} at layer 1"
    for words in (str(c.cause), "kernel saturates", "R = q·E φ'²/E φ²", "LayerNorm without eps"):
        assert words in str(c)


def test_whose_fault_it_is() -> None:
    """A skip around the norm grows whatever the tanh does; and of several branches the first is named."""
    branch = lnk.serial(lnk.Erf(), dense())
    skip = lnk.sup_diagonal(lnk.serial(dense(), lnk.residual(branch), dense()))
    assert skip.cause is None and "passes no normalisation" in str(skip)
    both = lnk.serial(dense(), lnk.parallel(branch, branch), lnk.LayerNorm(), dense())
    assert str(lnk.sup_diagonal(both).cause) == "Erf at layer 1, branch 0, layer 0"


# ---------------------------------------------------------------- leading terms


LAWS = [
    *(lnk.Gelu(approximate=True), lnk.Softplus(2.0), lnk.Silu(-1.0), lnk.Sigmoid()),
    *(lnk.Sin(1.0, 0.3), lnk.Cos(), lnk.Gaussian()),
]


def at(term: Term, square: float) -> float:
    return term.coefficient * square**term.power


@pytest.mark.parametrize("act", LAWS, ids=repr)
def test_both_ends_along_a_ray(act: lnk.Smooth) -> None:
    """Of a norm directly behind the features, and of a sum of features, whose means add up."""
    features = lnk.parallel(lnk.serial(dense(1, 0), act), lnk.serial(dense(2, 0), lnk.Relu()))
    for layers in ((dense(2, 0), act), (dense(2, 0.1), features)):
        arch = lnk.serial(*layers, lnk.LayerNorm(), dense(2, 0), act, dense())
        found = np.asarray(lnk.ntk(arch).diagonal([[1e-60], [1e60], [0.0]]))
        assert at(near(arch), 1e120) == pytest.approx(found[0], rel=4e-14)
        assert at(far(arch), 1e120) == pytest.approx(found[1], rel=4e-14)
        assert at_zero(arch) == pytest.approx(found[2], rel=4e-14)


def test_constants() -> None:
    """One hidden layer, no bias: Θ ~ W⁴·∫phi'²/√(2π)·|x|/√d / W."""
    for act, constant in ((lnk.Tanh(), 0.5319230405352436), (lnk.Erf(), 2 / math.pi)):
        law = growth(lnk.serial(dense(1, 0), act, dense(1, 0)))
        assert law == pytest.approx((1.0, constant), rel=4e-15)


def test_a_wrong_law_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    arch = last(lnk.Tanh())
    ray = float(lnk.ntk(arch).diagonal([[1e60]])[0])
    assert at(far(arch), 1e120) == pytest.approx(ray, rel=1e-14, abs=0)
    right = activations._laws

    def wrong(layer: lnk.Smooth, lengths: tuple[float, float]) -> activations.Moments:
        laws = right(layer, lengths)
        return laws._replace(slopes=Term(laws.slopes.coefficient, laws.slopes.power + 1, False))

    monkeypatch.setattr(activations, "_laws", wrong)
    assert at(far(arch), 1e120) != pytest.approx(ray, rel=0.5)


def test_an_unknown_activation_is_refused() -> None:
    @node
    class Unknown(lnk.Smooth):
        """Nobody knows its asymptotes."""

    with pytest.raises(GrowthError, match=r"Unknown: how Θ.* Register its asymptotes"):
        growth(lnk.serial(dense(), Unknown(), dense()))


# ---------------------------------------------------------------- the mean without a LayerNorm


X = np.array([[0.3, -0.5], [1.0, 0.2], [-0.7, 0.9]])
Y = np.array([1.0, -1.0, 0.5])
RAYS = np.random.default_rng(1).normal(size=(200, 2))
RAYS = (
    np.concatenate([RAYS, X, -X]) / np.linalg.norm(np.concatenate([RAYS, X, -X]), axis=1)[:, None]
)


def erf_network(
    x: np.ndarray, x2: np.ndarray, weight: float, bias: float, depth: int
) -> np.ndarray:
    """Θ of `depth` erf layers by the textbook, at any length."""
    own, own2 = (weight * np.square(v).mean(axis=1) + bias for v in (x, x2))
    k = weight * x @ x2.T / x.shape[1] + bias
    theta = k
    for _ in range(depth):
        # (1 + 2q)(1 + 2q') - 4k², whose large terms cancel along a ray
        cross = np.maximum(np.outer(own, own2) - k * k, 0)
        delta = 1 + 2 * (own[:, None] + own2) + 4 * cross
        slopes = 4 / np.pi / np.sqrt(delta)
        k, theta = 2 / np.pi * np.arctan2(2 * k, np.sqrt(delta)), theta * slopes
        own, own2 = (2 / np.pi * np.arctan2(2 * q, np.sqrt(1 + 4 * q)) for q in (own, own2))
        own, own2, k = (weight * v + bias for v in (own, own2, k))
        theta = k + weight * theta
    return np.asarray(theta)


@pytest.mark.parametrize(("depth", "factor"), [(1, 1.25), (2, 2.0)])
def test_mean_bound_far_out(depth: int, factor: float) -> None:
    """Along 206 rays out to a norm of 1e6; and the reach of a point is not much larger than needed."""
    arch = lnk.serial(*(dense(1, 0.04), lnk.Erf()) * depth, dense(1, 0.04))
    b = lnk.mean_bound(arch, X, Y)
    inputs = np.concatenate([RAYS * norm for norm in np.geomspace(0.1, 1e6, 60)])
    theta = erf_network(inputs, X, 1, 0.04, depth)
    assert (np.abs(theta).max(axis=0) <= b.reach).all()
    assert (b.reach <= factor * np.abs(theta).max(axis=0)).all()
    assert np.abs(theta @ b.coefficients).max() <= b.value
    assert lnk.bound(arch, X, Y).value == math.inf
    mean = lnk.posterior(arch, X, Y).mean(RAYS)
    np.testing.assert_allclose(
        erf_network(RAYS, X, 1, 0.04, depth) @ b.coefficients[:, 0], mean, 1e-9
    )


@pytest.mark.parametrize(
    "arch",
    [
        lnk.serial(dense(1, 0), dense(1, 0.1), lnk.Tanh(), dense(1, 0.1), lnk.Sin(), dense(1)),
        lnk.serial(dense(1), lnk.Gaussian(), lnk.LayerNorm(0.1), dense(1), lnk.RMSNorm(), dense(1)),
        lnk.serial(dense(1), lnk.Cos(2.0), dense(1), lnk.LayerNorm(), lnk.Sigmoid(), dense(1)),
    ],
    ids=["linear first", "norms", "waves"],
)
def test_reach_of_other_networks(arch: lnk.Serial) -> None:
    inputs = np.concatenate([RAYS[::4] * norm for norm in (0.01, 0.1, 0.3, 1, 2, 3)])
    theta = np.abs(np.asarray(lnk.ntk(arch)(inputs, X))).max(axis=0)
    assert (theta <= reach(arch, X)).all()


def test_mean_bound_of_a_posterior_and_of_several_outputs() -> None:
    arch = lnk.mlp(hidden=1, activation=lnk.Tanh())
    b = lnk.mean_bound(arch, X, np.stack([Y, 2 * Y], axis=1))
    assert float(b) == pytest.approx(
        2 * lnk.mean_bound(lnk.posterior(arch, X, Y)).value, rel=1e-12, abs=0
    )
    assert "activations are bounded" in str(b)


@pytest.mark.parametrize(
    ("arch", "why"),
    [
        (lnk.mlp(activation=lnk.Gelu()), "Gelu at layer 1: .*one after another"),
        (lnk.serial(dense(), dense()), "Serial: .*without an activation"),
        (lnk.mlp(activation=lnk.Tanh(), norm="first"), "LayerNorm at layer 1: .*Θ.x, x. itself"),
        (lnk.serial(dense(), lnk.Erf(), lnk.LayerNorm(), dense()), "layer 2: .*as small as 0"),
        (lnk.serial(dense(), lnk.residual(lnk.Tanh(), dense())), "at layer 1: .*one after another"),
    ],
    ids=["gelu", "linear", "first", "by zero", "residual"],
)
def test_other_networks_are_refused(arch: lnk.Node, why: str) -> None:
    with pytest.raises(ArchitectureError, match=why):
        lnk.mean_bound(arch, X, Y)


def test_no_witness_where_the_mean_is_bounded() -> None:
    arch = lnk.mlp(activation=lnk.Erf(), norm="last")
    with pytest.raises(BoundedMeanError, match=r"\|mean\(x\)\| ≤ .*mean_bound") as caught:
        lnk.diverging_witness(arch, X, Y)
    assert caught.value.value == lnk.mean_bound(arch, X, Y).value
    said = str(lnk.bound(arch, X, Y))
    assert "Erf at layer 1" in said and "mean_bound" in said and "LayerNorm without eps" in said
