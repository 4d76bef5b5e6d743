"""Tables that equal layers of one network share, where pairs are few."""

from __future__ import annotations

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus.series import Expanded
from lnkernel.evaluate.float64 import separated
from lnkernel.evaluate.float64.alone import ALONE, multiply_alone
from lnkernel.evaluate.float64.expansion import expand
from lnkernel.evaluate.float64.hermite_features import _integrate, nodes_and_weights

X = np.random.default_rng(0).normal(size=(60, 6))
DEEP = lnk.mlp(hidden=12, activation=lnk.Silu())


def longest_of(arch: lnk.Node) -> list[float]:
    return [layer.longest for layer in arch.layers if isinstance(layer, Expanded)]


def test_tables_are_shared_within_a_factor_of_two() -> None:
    own, shared = (longest_of(expand(DEEP, X, few=few)) for few in (False, True))
    assert len(set(shared)) < len(set(own)) / 2
    for one, other in zip(own, shared, strict=True):
        assert one <= other < 2 * one
    assert max(own) == max(shared)


def test_layers_with_very_many_terms_share_nothing() -> None:
    """Of vectors so long there may be no table."""
    arch = lnk.mlp(hidden=3, activation=lnk.Tanh(), W_std=2.5)
    own, shared = (longest_of(expand(arch, 1.5 * X, few=few)) for few in (False, True))
    assert own[0] == shared[0] > max(own[1:]) and max(shared[1:]) < own[0]


@pytest.mark.parametrize("act", [lnk.Silu(), lnk.Tanh(), lnk.Softplus()])
def test_the_same_kernels(act: lnk.Node, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = lnk.mlp(hidden=4, activation=act)
    few = np.array(lnk.kernels(arch)(X))
    monkeypatch.setattr("lnkernel.evaluate.float64.expansion.MOST_SHARED", 0)
    monkeypatch.setattr(
        "lnkernel.gram.by_length._dissect_within",
        lnk.gram.by_length._dissect_within.__wrapped__,
    )
    own = np.array(lnk.kernels(arch)(X))
    scale = np.sqrt(np.einsum("kii->ki", own))
    assert (np.abs(few - own) / (scale[:, :, None] * scale[:, None, :])).max() < 1e-14
    assert not np.array_equal(few, own)


def test_a_shared_table_has_the_terms_of_its_longest_vectors() -> None:
    act = lnk.Tanh()
    assert separated.table_for(act, 64, 2.0)[1] == 1024
    assert separated.table_for(act, 1024, 2.0)[1] == 1024


@pytest.mark.parametrize(
    "shape",
    [(1, 5, 3), (9, 7, 1), (33, 300, 200), (2, 521, 2050), (3, 4, 0), (0, 3, 4), (3, 0, 4)],
)
def test_products_in_pieces(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=shape[:2]), rng.normal(size=shape[1:])
    assert ALONE < 33 * 300 * 200  # pieces
    np.testing.assert_allclose(multiply_alone(left, right), left @ right, rtol=0, atol=1e-12)


def test_features_of_many_lengths_have_all_digits() -> None:
    x, weights = nodes_and_weights(130)
    values = np.exp(np.tanh(np.linspace(0.1, 2.0, 7)[:, None] * x))
    exact = values.astype(np.longdouble) @ weights.astype(np.longdouble)
    assert np.abs(_integrate(values, weights) - exact).max() < 1e-15
