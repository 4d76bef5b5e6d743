"""The factor in single precision: full accuracy where it is used, and used only where it converges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.gp import mixed_precision
from lnkernel.gp.cholesky import cholesky_in_place

N = 120


@pytest.fixture(autouse=True)
def _for_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_precision, "FEWEST", 10)


def with_spectrum(values: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    matrix = (vectors * values) @ vectors.T
    return 0.5 * (matrix + matrix.T)


def solved_in_long_double(matrix: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's LU, with residuals in long double until nothing changes any more."""
    solution = np.zeros(b.shape, dtype=np.longdouble)
    for _ in range(20):
        residual = b - matrix.astype(np.longdouble) @ solution
        solution += np.linalg.solve(matrix, residual.astype(np.float64))
    return solution.astype(np.float64)


@pytest.mark.parametrize("columns", [1, 3, 7])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_solves_to_the_accuracy_of_float64(condition: float, columns: int) -> None:
    matrix = with_spectrum(np.geomspace(1.0, condition, N))
    b = np.random.default_rng(1).normal(size=(N, columns))
    made = mixed_precision.single_precision(matrix.copy())
    assert made is not None
    exact = solved_in_long_double(matrix, b)
    error = np.abs(made.solve(b) - exact).max() / np.abs(exact).max()
    # one rounding of each entry of the matrix changes the solution by condition * 1.1e-16
    assert error < 1.1e-16 * condition * 4 + 1e-15


def test_one_that_float32_cannot_factorise_is_left_to_float64() -> None:
    assert mixed_precision.single_precision(with_spectrum(np.geomspace(1e-9, 1.0, N))) is None


def test_one_where_refinement_would_not_converge_is_left_to_float64() -> None:
    """Wherever float32 finds a factor and it is accepted, the error is that of float64."""
    accepted = []
    for condition in np.geomspace(1e4, 1e9, 21):
        matrix = with_spectrum(np.geomspace(1.0, condition, N))
        made = mixed_precision.single_precision(matrix.copy())
        accepted.append(made is not None)
        if made is not None:
            b = np.ones((N, 1))
            residual = b - matrix @ made.solve(b)
            assert np.abs(residual).max() < 1e-15 * condition
    assert accepted[0] and not accepted[-1]


@pytest.mark.parametrize("size", [1e-280, 1e280])
def test_lengths_of_all_sizes(size: float) -> None:
    """Float32 ends at 3e38: the matrix is scaled to unit diagonal first."""
    scale = np.geomspace(1.0, size, N)
    plain = with_spectrum(np.linspace(1.0, 3.0, N))
    root = np.sqrt(scale)
    made = mixed_precision.single_precision(plain * root[:, None] * root)
    assert made is not None
    found = made.solve(root[:, None] * np.ones((N, 1)))
    wanted = solved_in_long_double(plain, np.ones((N, 1))) / root[:, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_zero_column() -> None:
    made = mixed_precision.single_precision(with_spectrum(np.linspace(1.0, 2.0, N)))
    assert made is not None
    found = made.solve(np.stack([np.zeros(N), np.ones(N)], axis=1))
    assert (found[:, 0] == 0).all() and np.isfinite(found).all()


def test_few_and_very_many_points_are_not_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for limits in ((N + 1, 10_000), (1, N - 1)):
        monkeypatch.setattr(mixed_precision, "FEWEST", limits[0])
        monkeypatch.setattr(mixed_precision, "MOST", limits[1])
        assert mixed_precision.single_precision(np.eye(N)) is None


def test_goes_on_working_beside_the_factor_in_float64() -> None:
    matrix = with_spectrum(np.linspace(1.0, 9.0, N))
    b = np.ones((N, 1))
    made = mixed_precision.single_precision(matrix.copy())
    assert made is not None
    before = made.solve(b)
    factor = made.in_double()
    reference = cholesky_in_place(matrix)
    assert reference is not None
    np.testing.assert_array_equal(factor.solve(b), reference.solve(b))
    # the diagonal of A is now told by a correction, which is rounded
    np.testing.assert_allclose(made.solve(b), before, rtol=0, atol=1e-14)


def data(n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5))
    return x, np.stack([np.sin(x.sum(axis=1)), x[:, 0]], axis=1), rng.normal(size=(30, 5))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_posterior_is_the_same_by_either(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    x, y, x2 = data()
    arch = lnk.mlp(hidden=2, norm="first")
    quick = lnk.posterior(arch, x, y, noise=noise)
    assert isinstance(quick._fit.solver, mixed_precision.SinglePrecision)
    monkeypatch.setattr(mixed_precision, "FEWEST", N + 1)
    usual = lnk.posterior(arch, x, y, noise=noise)
    assert not isinstance(usual._fit.solver, mixed_precision.SinglePrecision)
    np.testing.assert_allclose(quick.mean(x2), usual.mean(x2), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(quick.variance(x2), usual.variance(x2))
    np.testing.assert_allclose(
        quick.log_marginal_likelihood(), usual.log_marginal_likelihood(), rtol=1e-13
    )
    np.testing.assert_allclose(quick.mean(x2), usual.mean(x2), rtol=0, atol=1e-13)


def test_singular_matrices_are_refused_as_ever() -> None:
    x, y, _ = data()
    x[1] = x[0] * (1 + 1e-15)
    with pytest.raises(lnk.errors.SingularGramError):
        lnk.posterior(lnk.mlp(hidden=2, norm="first"), x, y)
