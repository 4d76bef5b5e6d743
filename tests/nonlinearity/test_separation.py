"""Sums of squares in exact fractions, and the infimum over linear maps by eigenvalues and by search."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

from lnkernel.errors import InputError
from lnkernel.nonlinearity import lssr, ssr

RNG = np.random.default_rng(0)
X1, X2 = RNG.integers(-9, 9, (7, 3)).astype(float), RNG.integers(-5, 12, (5, 3)).astype(float)


def squares(points: np.ndarray) -> Fraction:
    columns = [[Fraction(v) for v in column] for column in points.T.tolist()]
    means = [sum(column) / len(column) for column in columns]
    return sum(
        ((v - m) ** 2 for column, m in zip(columns, means, strict=True) for v in column),
        Fraction(0),
    )


def test_ssr_in_fractions() -> None:
    exact = (squares(X1) + squares(X2)) / squares(np.concatenate([X1, X2]))
    assert ssr(X1, X2) == pytest.approx(float(exact), rel=1e-15, abs=0)
    assert ssr(X1 * 2.0**600 + 0.0, X2 * 2.0**600) == pytest.approx(float(exact), rel=1e-14, abs=0)


def test_lssr_is_the_smallest_eigenvalue() -> None:
    def scatter(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(0)).T @ (x - x.mean(0))

    within, total = scatter(X1) + scatter(X2), scatter(np.concatenate([X1, X2]))
    values, vectors = scipy.linalg.eigh(within, total)
    np.testing.assert_allclose(values[1:], 1.0, rtol=1e-12)
    assert lssr(X1, X2) == pytest.approx(values[0], rel=1e-12, abs=0)
    w = vectors[:, :1]  # one neuron attains it, and no linear map does better
    assert ssr(X1 @ w, X2 @ w) == pytest.approx(values[0], rel=1e-12, abs=0)
    for _ in range(200):
        maps = RNG.normal(size=(3, 2))
        assert ssr(X1 @ maps, X2 @ maps) >= values[0] - 1e-12


def test_lssr_does_not_change_by_linear_maps() -> None:
    maps = RNG.normal(size=(3, 3))
    assert lssr(X1 @ maps, X2 @ maps) == pytest.approx(lssr(X1, X2), rel=1e-10)
    twice = np.hstack([X1, X1]), np.hstack([X2, X2])  # a singular scatter matrix
    assert lssr(*twice) == pytest.approx(lssr(X1, X2), rel=1e-10)


def test_one_layer_norm_breaks_xor() -> None:
    a, b = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert lssr(a, b) == 1.0

    def layer(x: np.ndarray) -> np.ndarray:
        """Three neurons: the diagonal of the square as a line, bent to an arc."""
        t = x.sum(1) - 1
        h = np.outer(t, [1.0, -1.0, 0.0]) + 0.5 * np.array([1.0, 1.0, -2.0])
        return (h - h.mean(1, keepdims=True)) / h.std(1, keepdims=True)

    assert lssr(layer(a), layer(b)) < 1e-12


def test_one_point_has_no_ratio() -> None:
    with pytest.raises(InputError, match="3 times one point"):
        ssr([[1.0], [1.0]], [[1.0]])
