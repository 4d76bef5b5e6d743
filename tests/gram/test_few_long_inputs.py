"""Inputs parted by their lengths: moderate pairs by series, pairs with a long input integrated."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.gram import long_inputs

RNG = np.random.default_rng(5)
X, X2 = RNG.normal(size=(40, 3)), RNG.normal(size=(30, 3))
X[[3, 7]] *= 50
X2[[0, 29]] *= 70


def plain(x: np.ndarray, x2: np.ndarray) -> tuple[Any, Any, Any]:
    """Not by `@`, which rounds otherwise for matrices of other shapes."""
    ends = [(np.square(side).sum(axis=1), np.ones(len(side))) for side in (x, x2)]
    products = (x[:, None] * x2).sum(axis=-1)
    return (products, np.exp(-np.abs(products))), *ends


def shorter_than_ten(*inputs: np.ndarray) -> bool:
    return all(np.abs(x).max() < 10 for x in inputs)


def test_parts_of_a_symmetric_matrix() -> None:
    found = long_inputs.moderate_among((X,), shorter_than_ten)
    assert found is not None and np.flatnonzero(~found[0]).tolist() == [3, 7]
    asked: list[tuple[int, int]] = []

    def integrate(x: np.ndarray, x2: np.ndarray) -> tuple[Any, Any, Any]:
        asked.append((len(x), len(x2)))
        return plain(x, x2)

    out, ends = long_inputs.symmetric(X, found[0], lambda x: plain(x, x)[:2], integrate)
    (first, second), diagonals, _ = plain(X, X)
    for made, exact, end in zip(out, (first, second), diagonals, strict=True):
        np.fill_diagonal(exact, end)
        np.testing.assert_allclose(made, exact, rtol=1e-15)
        np.testing.assert_array_equal(made, made.T)
    for made, exact in zip(ends, diagonals, strict=True):
        np.testing.assert_array_equal(made, exact)
    assert asked == [(2, 40)]


@pytest.mark.parametrize(("x", "x2"), [(X, X2), (X[8:], X2), (X, X2[1:29]), (X[8:], X2[1:29])])
def test_parts_of_a_rectangular_matrix(x: np.ndarray, x2: np.ndarray) -> None:
    masks = [np.abs(side).max(axis=1) < 10 for side in (x, x2)]
    made = long_inputs.rectangular((x, masks[0]), (x2, masks[1]), plain, plain)
    for parts, exact in zip(made, plain(x, x2), strict=True):
        for one, other in zip(parts, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-15)


def test_where_it_does_not_pay() -> None:
    few = np.concatenate([X[:1] * 100, X[8 : 8 + long_inputs.FEW - 1]])
    assert long_inputs.moderate_among((few,), shorter_than_ten) is None
    assert long_inputs.moderate_among((X,), lambda *_: False) is None


@pytest.mark.slow
def test_a_few_long_inputs_of_tanh() -> None:
    """Without the parting all pairs would be integrated; each kind of pair beside the oracle."""
    arch = lnk.mlp(hidden=1, activation=lnk.Tanh(), W_std=1.0)
    x = RNG.normal(size=(22, 2))
    x[[4, 9]] *= 6 / np.abs(x[[4, 9]])
    theta = lnk.ntk(arch)
    matrix = theta(x)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(theta(x, x[:20]), matrix[:, :20], rtol=1e-12)
    for row, column in [(0, 1), (4, 2), (9, 4), (9, 9)]:
        exact = oracle.pair(arch, x[row], x[column], 30)
        error = abs(float((matrix[row, column] - exact.Theta) / exact.Theta_scale))
        assert error <= min(1e-13, theta.error_estimate(x)), (row, column)
