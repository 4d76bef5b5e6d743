"""Tables of activations with kinks, from closed forms of their slopes: beside double integrals, and limits by hand.
The kernels that come from them are held against 20 digits and more in tests/test_kinked.py."""

from __future__ import annotations

import jax.numpy as jnp
import kinked_oracle
import mpmath
import numpy as np
import oracle
import pytest
from listed_pairs import refuse_programs
from mpmath import mp

import lnkernel as lnk
from lnkernel.evaluate.float64 import chebyshev_points, quadrature, tabulation
from lnkernel.evaluate.float64.tabulation import table_of

LAYERS = [lnk.Elu(), lnk.Elu(-2.0), lnk.Selu(), lnk.Clip(), lnk.Clip(0.0, 1.0), lnk.Clip(0.0, 6.0)]


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_both_ways_to_a_table_agree(layer: lnk.Elementwise) -> None:
    """Double integrals lose digits at their least angles, where the slopes do not; elsewhere both have all."""
    ours = tabulation._values_by_slopes(tabulation.MOST, layer, tabulation.closed_pair(layer), 1.0)
    with tabulation.jax.enable_x64(True):
        theirs = [np.asarray(part) for part in tabulation._values(layer, 1.0)]
    assert np.allclose(ours[1], theirs[1], rtol=0, atol=2e-15 * np.abs(theirs[1]).max())
    wide = chebyshev_points.points(tabulation.MOST, tabulation.END) > 0.05
    for mine, other in zip(ours[0], theirs[0], strict=True):
        scale = np.abs(theirs[0]).max()
        assert np.abs(mine - other)[wide].max() < 1e-14 * scale
        assert np.abs(mine - other).max() < 1e-12 * scale


def test_the_gap_of_nearly_equal_inputs_is_the_slope() -> None:
    """At angle 0 the gap over m is the slope, and the slope E phi'², here by hand: of ELU
    1/2 + E exp(2u) below 0 = 1/2 + e² P(u > 2)."""
    *rows, _ = table_of(lnk.Elu())
    at_zero = [np.polynomial.chebyshev.chebval(-1.0, row) for row in rows]
    with mp.workdps(30):
        slope = 0.5 + mpmath.exp(2) * mpmath.ncdf(-2)
    assert at_zero[0] + at_zero[1] == pytest.approx(float(slope), rel=1e-15)
    assert at_zero[2] + at_zero[3] == pytest.approx(float(slope), rel=1e-15)


@pytest.mark.parametrize("norm", ["first", "all"])
@pytest.mark.parametrize("act", [lnk.Elu(), lnk.Selu(), lnk.Clip()], ids=repr)
def test_nothing_is_compiled_behind_a_norm(
    act: lnk.Elementwise, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of points on a line, most pairs of which are at small angles."""
    refuse_programs(monkeypatch)
    arch = lnk.mlp(hidden=3, norm=norm, activation=act, W_std=1.2, b_std=0.3)
    line = np.linspace(-5, 5, 40)
    x = np.column_stack([line, line + 1.0])
    kernel = lnk.ntk(arch)(x)
    assert np.isfinite(kernel).all() and np.linalg.eigvalsh(kernel).min() > 0


def test_a_wrong_table_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes in place of their means below m, in a network that no other test has: 20 digits disagree."""
    monkeypatch.setattr(
        tabulation,
        "means_below",
        lambda slopes, root, end: np.pad(slopes, ((0, 0), (0, 1)), mode="edge"),
    )
    table_of.cache_clear()
    arch = lnk.serial(
        lnk.Dense(8), lnk.LayerNorm(), lnk.Dense(8, 1.37, 0.21), lnk.Elu(), lnk.Dense(1)
    )
    x = np.random.default_rng(0).normal(size=(2, 3))
    wrong = float(lnk.nngp(arch)(x[:1], x[1:])[0, 0])
    table_of.cache_clear()
    right = oracle.pair(arch, x[0], x[1], dps=20)
    assert abs(wrong - right.K) / right.K_scale > 1e-3


DENSE = lnk.Dense(8)
BEHIND = DENSE, lnk.Relu(), lnk.Dense(1)  # a lost digit of a small angle becomes 1e-8 here


def errors_of(arch: lnk.Node, x: list[float], x2: list[float]) -> list[float]:
    """Of both kernels, by 30 digits, relative to the root of the product of the diagonals."""
    exact = oracle.pair(arch, np.array(x), np.array(x2), dps=30)
    both = lnk.kernels(arch)([x, x2])
    found = (both.nngp, exact.K, exact.K_scale), (both.ntk, exact.Theta, exact.Theta_scale)
    return [float(abs(made[0, 1] - right) / scale) for made, right, scale in found]


@pytest.mark.parametrize("std", [1.0, 1.3, 3.0])
@pytest.mark.parametrize("apart", [0.0, 1e-7])
def test_opposite_inputs_behind_an_odd_function(std: float, apart: float) -> None:
    """Its even part is 0, and not a rounding error: without a bias the angle is all that is left."""
    arch = lnk.serial(DENSE, lnk.LayerNorm(), lnk.Dense(8, std), lnk.Clip(), *BEHIND)
    assert max(errors_of(arch, [1.0, 2.0, 0.3], [-1.0, -2.0, -0.3 + apart])) < 1e-15


@pytest.mark.parametrize("std", [0.08, 0.1])
def test_obtuse_pairs_beside_a_large_mean(std: float) -> None:
    arch = lnk.serial(DENSE, lnk.LayerNorm(), lnk.Dense(8, std), lnk.Clip(0.5, 1.0), *BEHIND)
    assert max(errors_of(arch, [1.0, 2.0, 0.3], [-1.0, -1.0, 0.3])) < 1e-15


@pytest.mark.parametrize("act", [lnk.Tanh(), lnk.Silu(3.0)], ids=repr)
@pytest.mark.parametrize("kinked", [lnk.Elu(), lnk.Clip()], ids=repr)
def test_the_length_behind_a_smooth_activation(act: lnk.Node, kinked: lnk.Node) -> None:
    """It is known to the last digits before a table is made for it."""
    norm, second = lnk.LayerNorm(), lnk.Dense(8, 1.2, 0.1)
    arch = lnk.serial(DENSE, norm, lnk.Dense(8, 1.99), act, second, kinked, lnk.Dense(1))
    assert max(errors_of(arch, [1.0, 2.0, 0.3], [-1.0, 0.4, 0.7])) < 2e-15


def test_a_length_that_is_known_roughly_has_no_table() -> None:
    """Behind a function of one's own, beside the same function in the library."""
    layers = [DENSE, lnk.LayerNorm(), lnk.Dense(8, 1.3, 0.2), DENSE, lnk.Elu(), lnk.Dense(1)]
    x = [[1.0, 2.0, 0.3], [-1.0, 0.4, 0.7]]
    own, ours = (
        lnk.kernels(lnk.serial(*layers[:3], act, *layers[3:]))(x)
        for act in (lnk.Activate(jnp.tanh), lnk.Tanh())
    )
    assert own.ntk == pytest.approx(ours.ntk, rel=2e-15)
    assert own.nngp == pytest.approx(ours.nngp, rel=2e-15)


@pytest.mark.parametrize("act", [lnk.Elu(30.0), lnk.Selu(), lnk.Elu()], ids=repr)
def test_long_inputs_behind_a_norm(act: lnk.Node) -> None:
    arch = lnk.serial(DENSE, lnk.LayerNorm(), lnk.Dense(8, 11.9), act, *BEHIND)
    assert max(errors_of(arch, [1.0, 2.0, 0.3], [-1.0, 0.4, 0.7])) < 5e-15


@pytest.mark.parametrize("act", [lnk.Clip(0.0, 6.0), lnk.Elu(), lnk.Clip()], ids=repr)
def test_a_zero_vector_before_a_bias(act: lnk.Node) -> None:
    """Behind the norm of a zero vector there is the bias alone, so that lengths differ after all."""
    arch = lnk.serial(DENSE, act, lnk.LayerNorm(), lnk.Dense(8, 1.0, 0.1), act, lnk.Dense(1))
    x = np.array([[1.0, 0.3, 0.0], [0.0, 0.0, 0.0]])
    with mp.workdps(40):
        q, q0 = mp.mpf(1) + mp.mpf(0.1) ** 2, mp.mpf(0.1) ** 2
        rho = q0 / mpmath.sqrt(q * q0)
        exact = kinked_oracle.FUNCTIONS[type(act).__name__](act, q, q0, rho).product
    for made in (lnk.nngp(arch)(x), lnk.nngp(arch)(x, x.copy())):
        assert made[0, 1] == pytest.approx(float(exact), rel=1e-13)
        assert np.diag(made) == pytest.approx(lnk.nngp(arch).diagonal(x), rel=1e-14)


def test_images_take_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every length, at every position."""

    def refuse(*_: object) -> None:
        raise AssertionError("an integral")

    monkeypatch.setattr(quadrature, "integrate_pairs", refuse)
    images = np.random.default_rng(0).normal(size=(2, 3, 3, 2))
    conv = lnk.Conv(8, (3, 3), W_std=1.2)
    arch = lnk.serial(conv, lnk.LayerNorm(), lnk.Elu(), conv, lnk.LayerNorm(), lnk.Clip())
    kernel = lnk.nngp(lnk.serial(*arch.layers, lnk.Flatten(), lnk.Dense(1)))(images)
    assert np.isfinite(kernel).all()
