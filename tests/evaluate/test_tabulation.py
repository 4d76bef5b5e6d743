"""Tables of activations with kinks, from closed forms of their slopes: beside double integrals, and limits by hand.
The kernels that come from them are held against 20 digits and more in tests/test_kinked.py."""

from __future__ import annotations

import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp

import lnkernel as lnk
from lnkernel.evaluate.float64 import tabulation
from lnkernel.evaluate.float64.tabulation import table_of
from lnkernel.gram import careful, tiled

LAYERS = [lnk.Elu(), lnk.Elu(-2.0), lnk.Selu(), lnk.Clip(), lnk.Clip(0.0, 1.0), lnk.Clip(0.0, 6.0)]


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_both_ways_to_a_table_agree(layer: lnk.Elementwise) -> None:
    """Double integrals lose digits at their least angles, where the slopes do not; elsewhere both have all."""
    ours = tabulation._values_by_slopes(tabulation.MOST, layer, tabulation.closed_pair(layer), 1.0)
    with tabulation.jax.enable_x64(True):
        theirs = [np.asarray(part) for part in tabulation._values(layer, 1.0)]
    assert np.allclose(ours[1], theirs[1], rtol=0, atol=2e-15 * np.abs(theirs[1]).max())
    wide = tabulation._places() > 0.05
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

    def refuse(*_: object) -> None:
        raise AssertionError("a program")

    monkeypatch.setattr(careful, "compiled", refuse)
    monkeypatch.setattr(tiled, "compiled", refuse)
    arch = lnk.mlp(hidden=3, norm=norm, activation=act, W_std=1.2, b_std=0.3)
    line = np.linspace(-5, 5, 40)
    x = np.column_stack([line, line + 1.0])
    kernel = lnk.ntk(arch)(x)
    assert np.isfinite(kernel).all() and np.linalg.eigvalsh(kernel).min() > 0


def test_a_wrong_table_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes in place of their means below m, in a network that no other test has: 20 digits disagree."""
    monkeypatch.setattr(
        tabulation,
        "_means_below",
        lambda slopes, root: np.pad(slopes, ((0, 0), (0, 1)), mode="edge"),
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
