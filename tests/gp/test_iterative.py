"""Posteriors by conjugate gradients: within the tolerance of the factorised ones, at every input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError, NotConvergedError, SpreadMatrixError
from lnkernel.gp import iterates, matrix_free, strips
from lnkernel.gp.conjugate_gradients import PATIENCE, Preconditioner, conjugate_gradients
from lnkernel.gp.pivoted import LowRank, pivoted_cholesky
from lnkernel.gram import memory

ARCH = lnk.mlp(hidden=2, norm="first")
RNG = np.random.default_rng(5)
N = 140
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2))
NEW = np.concatenate([RNG.normal(size=(20, 3)), 1e6 * RNG.normal(size=(20, 3))])
EACH = np.linspace(0.05, 0.2, N)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize("noise", [0.05, EACH], ids=["one noise", "noise of each"])
def test_the_mean_is_within_the_error_everywhere(tolerance: float, noise: object) -> None:
    near = lnk.posterior(ARCH, X, Y, noise=noise, tolerance=tolerance, rank=20)
    exact = lnk.posterior(ARCH, X, Y, noise=noise)
    off = np.abs(near.mean(NEW) - exact.mean(NEW)).max()
    assert 1e-13 < off <= near.error <= tolerance
    assert exact.error < 1e-11
    assert f"error={near.error:.2g})" in repr(near)
    assert "At every input, however far from the data, the mean is within" in str(near)


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_variances_and_spread(kernel: str) -> None:
    near = lnk.posterior(ARCH, X, Y, kernel=kernel, noise=0.05, tolerance=1e-7)
    exact = lnk.posterior(ARCH, X, Y, kernel=kernel, noise=0.05)
    for name in ("variance", "covariance", "ensemble_variance"):
        found, expected = getattr(near, name)(NEW), getattr(exact, name)(NEW)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(SpreadMatrixError, match="never stored"):
        near.at(1.0).mean(NEW)


@pytest.mark.parametrize("rank", [5, 60, N])
def test_the_likelihood_is_enclosed(rank: int) -> None:
    near = lnk.posterior(ARCH, X, Y, noise=EACH, tolerance=1e-2, rank=rank)
    exact = lnk.posterior(ARCH, X, Y, noise=EACH)
    low, high = near.log_marginal_likelihood_bounds()
    value = exact.log_marginal_likelihood()
    assert low - 1e-9 <= value <= high + 1e-9
    if rank == N:  # nothing is left of the matrix but the error of the solution
        assert high - low < 1e-3
    with pytest.raises(InputError, match="log_marginal_likelihood_bounds"):
        near.log_marginal_likelihood()
    assert exact.log_marginal_likelihood_bounds() == (value, value)


def test_the_bound_holds_for_the_exact_mean() -> None:
    near = lnk.posterior(ARCH, X, Y, noise=0.05, tolerance=0.1, rank=20)
    exact = lnk.posterior(ARCH, X, Y, noise=0.05)
    found, expected = lnk.bound(near), lnk.bound(exact)
    assert expected.rkhs <= found.rkhs <= expected.rkhs + 2 * near.error + 0.1
    assert found.lambda_min == 0.05 <= expected.lambda_min + 1e-12
    assert found.value >= expected.value * (1 - 1e-9)
    assert np.abs(exact.mean(NEW)).max() <= found.rkhs
    assert "at least" in str(found) and "λ_min" in str(found)


def test_without_room_the_matrix_is_computed_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = lnk.posterior(ARCH, X, Y, noise=0.5, tolerance=1e-6)
    monkeypatch.setattr(memory, "available_memory", lambda: 40 * 8 * N * N // 4)
    monkeypatch.setattr(strips.StripLayout, "bytes_of_device", lambda self: 2**60)
    monkeypatch.setattr(matrix_free, "TILE", 48)
    never = lnk.posterior(ARCH, X, Y, noise=0.5, tolerance=1e-6)
    assert usual._fit.solver.stored_strips is not None and never._fit.solver.stored_strips is None
    np.testing.assert_allclose(never.mean(NEW), usual.mean(NEW), atol=1e-12)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(lnk.errors.NotEnoughMemoryError, match="preconditioner of rank 35"):
        lnk.posterior(ARCH, X, Y, noise=0.5, tolerance=1e-6)


def test_what_it_refuses() -> None:
    with pytest.raises(InputError, match="a positive variance of the noise of each point"):
        lnk.posterior(ARCH, X, Y, tolerance=1e-3)
    with pytest.raises(InputError, match="a network with a finite C"):
        lnk.posterior(lnk.mlp(), X, Y, noise=0.1, tolerance=1e-3)
    for wrong in (0, -1.0, float("inf")):
        with pytest.raises(InputError, match="tolerance: expected a positive number"):
            lnk.posterior(ARCH, X, Y, noise=0.1, tolerance=wrong)
    with pytest.raises(InputError, match="with noise at every point"):
        _ = lnk.posterior(ARCH, X, Y).error


def test_a_tolerance_beyond_float64_is_refused() -> None:
    with pytest.raises(NotConvergedError, match="float64 allows for no smaller one"):
        lnk.posterior(ARCH, X, Y, noise=1e-6, tolerance=1e-13)


def test_too_few_iterations_are_said() -> None:
    matrix = np.diag(np.arange(1.0, 60.0))
    with pytest.raises(NotConvergedError, match=r"after 5 iterations of conjugate gradients. Ask"):
        conjugate_gradients(lambda b: matrix @ b, lambda b: b, np.ones((59, 1)), 1e-9, most=5)


def chain(v: np.ndarray) -> np.ndarray:
    """A v, where A is tridiagonal with 2 on the diagonal, 1 at its end, and -1 beside it."""
    out = 2 * v
    out[0] -= v[0]
    out[1:] -= v[:-1]
    out[:-1] -= v[1:]
    return out


def test_a_plateau_is_not_the_end() -> None:
    """The residual of e_1 is e_2, e_3, ...: as long as at the start until the last iteration, which is exact."""
    n = 3 * PATIENCE // 2
    b = np.zeros((n, 1))
    b[0] = 1.0
    found = conjugate_gradients(chain, lambda r: r, b, 1e-9, most=n + 1)
    assert found.iterations == n
    np.testing.assert_allclose(found.solution[:, 0], np.arange(n, 0, -1.0), rtol=1e-12)


def test_rounding_is_told_from_a_plateau() -> None:
    """Products with errors of 1e-3: the residual of the recurrence is soon not that of the solution."""
    rng = np.random.default_rng(0)
    matrix = np.diag(np.geomspace(1.0, 1e3, N))

    def rough(v: np.ndarray) -> np.ndarray:
        exact = matrix @ v
        return exact + 1e-3 * np.linalg.norm(exact) * rng.normal(size=v.shape) / np.sqrt(N)

    with pytest.raises(NotConvergedError, match="float64 allows for no smaller one") as caught:
        conjugate_gradients(rough, lambda r: r, np.ones((N, 1)), 1e-9, most=10**5)
    assert PATIENCE <= caught.value.iterations < 10**4


def test_an_interrupted_iteration_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterates, "EVERY", 0.0)
    options = {"noise": 0.01, "rank": 5, "tiles": tmp_path}
    first = lnk.posterior(ARCH, X, Y, tolerance=1e-2, **options)._fit.iterated
    on = lnk.posterior(ARCH, X, Y, tolerance=1e-6, **options)
    whole = lnk.posterior(ARCH, X, Y, tolerance=1e-6, noise=0.01, rank=5)
    assert first is not None and on._fit.iterated is not None and whole._fit.iterated is not None
    assert 0 < on._fit.iterated.iterations < whole._fit.iterated.iterations
    np.testing.assert_allclose(on.mean(NEW), whole.mean(NEW), atol=2e-6)
    damaged = next(tmp_path.rglob("iterate-*.npy"))
    damaged.write_bytes(damaged.read_bytes()[:200])
    again = lnk.posterior(ARCH, X, Y, tolerance=1e-6, **options)
    np.testing.assert_allclose(again.mean(NEW), whole.mean(NEW), atol=2e-6)


def test_a_matrix_of_low_rank_lies_below() -> None:
    kernel = lnk.ntk(ARCH)(X)
    for rank in (1, 10, 70):
        found = pivoted_cholesky(np.diagonal(kernel), lambda some: kernel[:, some], rank)
        rest = kernel - found.factor @ found.factor.T
        assert found.factor.shape == (N, rank)
        assert np.linalg.eigvalsh(rest)[0] > -1e-12
        np.testing.assert_allclose(np.diagonal(rest), found.left, atol=1e-12)


def test_the_preconditioner_beside_numpy() -> None:
    factor = RNG.normal(size=(N, 7))
    made = Preconditioner(LowRank(factor, np.zeros(N)), EACH)
    matrix = factor @ factor.T + np.diag(EACH)
    np.testing.assert_allclose(made.solve(Y), np.linalg.solve(matrix, Y), atol=1e-11)
    assert made.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12, abs=0)
    assert made.log_determinant_gap() == 0


def test_the_preconditioner_saves_iterations() -> None:
    few, many = (
        lnk.posterior(ARCH, X, Y, noise=0.01, tolerance=1e-6, rank=rank)._fit.iterated
        for rank in (1, 100)
    )
    assert few is not None and many is not None and many.iterations < few.iterations / 2
