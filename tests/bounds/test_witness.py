"""Diverging witnesses: they are what they say, or there is none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.bounds import witness
from lnkernel.errors import (
    ActivationRangeError,
    ArchitectureError,
    BoundedNetworkError,
    InputError,
)

X = np.array([[-2.0], [-0.5], [1.0], [3.0]])
Y = np.array([1.0, -1.0, 0.5, 2.0])


@pytest.mark.parametrize(
    "arch",
    [lnk.mlp(hidden=2), lnk.mlp(hidden=1, activation=lnk.RectifiedPower(2))],
    ids=["relu", "squares"],
)
@pytest.mark.parametrize("above", [1e6, 1e30])
def test_is_beyond(arch: lnk.Node, above: float) -> None:
    w = lnk.diverging_witness(arch, X, Y, above=above)
    assert w.is_given_data and np.array_equal(w.X, X) and np.array_equal(w.y, Y)
    mean = lnk.posterior(arch, w.X, w.y).mean(w.x[None])
    assert abs(mean[0]) > above
    assert abs(mean[0] - w.value) <= w.error < 0.1 * abs(w.value)
    assert "your data" in str(w)


@pytest.mark.slow
@pytest.mark.parametrize("act", [lnk.Silu(), lnk.Softplus(2.0), lnk.Elu()], ids=repr)
def test_activations_that_become_straight(act: lnk.Elementwise) -> None:
    """Where they are integrated: the mean goes on growing, in proportion to |x|."""
    arch = lnk.mlp(hidden=1, activation=act)
    w = lnk.diverging_witness(arch, X, Y, above=1e5)
    assert w.is_given_data
    mean = np.asarray(lnk.posterior(arch, X, Y).mean([w.x, 10 * w.x]))
    assert abs(mean[0]) > 1e5 and abs(mean[0] - w.value) <= w.error < 1e-6 * abs(w.value)
    assert mean[1] / mean[0] == pytest.approx(10, rel=1e-3)


def test_beyond_what_is_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the range of an activation ends, so does the search."""

    def refuse(*arguments: Any) -> None:
        raise ActivationRangeError("Elu", 2e8, 1e8)

    monkeypatch.setattr(witness, "_first_hit", refuse)
    with pytest.raises(InputError, match="not computed for inputs so long"):
        lnk.diverging_witness(lnk.mlp(hidden=2), X, Y)


@pytest.mark.slow
def test_far_out_elu_is_straight() -> None:
    w = lnk.diverging_witness(lnk.mlp(hidden=1, activation=lnk.Elu()), X, Y, above=1e30)
    assert abs(w.value) > 1e30
    twice = lnk.posterior(lnk.mlp(hidden=1, activation=lnk.Elu()), w.X, w.y).mean([2 * w.x, w.x])
    assert twice == pytest.approx([2 * w.value, w.value], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("act", [lnk.Silu(), lnk.Elu()], ids=repr)
def test_activations_that_become_straight_with_other_data(act: lnk.Elementwise) -> None:
    """All targets 0, in the plane: one point takes the place of the data."""
    points = np.array([[1.0, 0.5], [-0.3, 1.0], [0.2, -2.0]])
    w = lnk.diverging_witness(lnk.mlp(hidden=2, activation=act), points, np.zeros(3))
    assert not w.is_given_data and abs(w.value) > 1e6


def test_only_what_can_exceed_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """|mean|² ≤ Θ(x, x)·aᵀΘa rules out all nearer inputs, and no others."""
    arch, norms = lnk.mlp(hidden=2), []
    plain = witness._first_hit

    def noted(mean: Any, x: np.ndarray, above: float) -> Any:
        norms.append(np.abs(x).max())
        return plain(mean, x, above)

    monkeypatch.setattr(witness, "_first_hit", noted)
    found = lnk.diverging_witness(arch, X, Y, above=1e20)
    assert 1 <= len(norms) <= 3 and norms[-1] == np.abs(found.x).max()
    monkeypatch.setattr(witness._Mean, "most", lambda self, x: math.inf)
    assert np.array_equal(lnk.diverging_witness(arch, X, Y, above=1e20).x, found.x)


def test_all_targets_zero_need_other_data() -> None:
    arch = lnk.mlp(hidden=2)
    w = lnk.diverging_witness(arch, X, 0 * Y)
    assert not w.is_given_data and len(w.X) == 1
    theta = lnk.ntk(arch)
    mean = theta(w.x[None], w.X)[0, 0] / theta.diagonal(w.X)[0] * w.y[0]
    assert mean > 1e6 and mean == pytest.approx(w.value, rel=1e-12, abs=0)
    assert "single point" in str(w)


def test_several_outputs() -> None:
    w = lnk.diverging_witness(lnk.mlp(hidden=2), X, np.stack([0 * Y, Y], axis=1))
    assert w.is_given_data and abs(w.value) > 1e6


def test_rounding_is_no_witness() -> None:
    """An even function learnt by an even network: bounded targets leave |x| with a slope, and
    targets that a constant explains leave nothing but rounding errors far out."""
    arch = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.Dense(1, b_std=1.0))  # linear: f = a x + b
    points = np.array([[-1.0], [1.0]])
    w = lnk.diverging_witness(arch, points, np.array([-1.0, 1.0]))
    assert w.is_given_data
    # Symmetric data: the slope is exactly 0, and the mean a constant.
    flat = lnk.diverging_witness(arch, points, np.array([1.0, 1.0]))
    assert not flat.is_given_data


@pytest.mark.parametrize("norm", ["first", "last"])
def test_refuses_where_there_is_a_bound(norm: str) -> None:
    arch = lnk.mlp(hidden=2, norm=norm)
    with pytest.raises(BoundedNetworkError, match="for every x") as caught:
        lnk.diverging_witness(arch, X, Y)
    b = lnk.bound(arch, X, Y)
    assert (caught.value.C, caught.value.rkhs) == (b.C, b.rkhs)
    assert f"{b.rkhs:.6g}" in str(caught.value)


@pytest.mark.parametrize("above", [0, -1.0, math.inf, math.nan, "1e6", None])
def test_bad_above(above: object) -> None:
    with pytest.raises(InputError, match=r"^above: expected a positive, finite number"):
        lnk.diverging_witness(lnk.mlp(), X, Y, above=above)  # type: ignore[arg-type]


def test_out_of_reach() -> None:
    """A ReLU network's mean grows like |x|, whose square is in range up to 1e154."""
    with pytest.raises(InputError, match="smaller one"):
        lnk.diverging_witness(lnk.mlp(hidden=2), X, Y, above=1e200)


@pytest.mark.parametrize("pool", [False, True])
def test_images_of_a_network_without_norms(pool: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 3, 3, 2)), rng.normal(size=4)
    arch = lnk.cnn(hidden=1, channels=8, pool=pool)
    w = lnk.diverging_witness(arch, X, y)
    assert w.x.shape == (3, 3, 2) and w.is_given_data
    mean = float(lnk.posterior(arch, X, y).mean(w.x[None])[0])
    assert abs(mean) > 1e6 and abs(mean / w.value - 1) < 1e-6
    small = lnk.diverging_witness(arch, X, np.zeros(4))
    assert not small.is_given_data and small.X.shape == (1, 3, 3, 2)
    with pytest.raises(lnk.errors.BoundedNetworkError):
        lnk.diverging_witness(lnk.cnn(hidden=1, norm="first", pool=pool), X, y)


def test_images_without_a_proof() -> None:
    """A large mean needs no proof of C: residual networks and sums over positions have witnesses, too."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(3, 3, 3, 2)), rng.normal(size=3)
    summed = lnk.serial(lnk.Conv(8, (3, 3)), lnk.Relu(), lnk.GlobalSumPool(), lnk.Dense(1))
    for arch in (lnk.resnet(blocks=1, channels=8), summed):
        w = lnk.diverging_witness(arch, X, y)
        mean = float(lnk.posterior(arch, X, y).mean(w.x[None])[0])
        assert abs(mean) > 1e6 and abs(mean / w.value - 1) < 1e-6 and "contrast" in str(w)
    bounded = lnk.resnet(blocks=1, channels=8, norm="all")
    with pytest.raises(lnk.errors.BoundedNetworkError):  # by an upper bound of C
        lnk.diverging_witness(bounded, X, y)
    tanh = lnk.resnet(blocks=1, channels=8, norm="all", activation=lnk.Tanh())
    with pytest.raises(ArchitectureError, match="is proved for it here"):  # nothing is known
        lnk.diverging_witness(tanh, X, y)
