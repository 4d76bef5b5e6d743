"""Half of the Gram matrix in place of the whole: the same numbers, in half the memory."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy

import lnkernel as lnk
from lnkernel.gp import fit, packed
from lnkernel.gp.packed import PackedCholesky
from lnkernel.gp.rectangular_packed import MOST, diagonal_of, make_array, write_rows
from lnkernel.gram import memory

ARCH = lnk.mlp(hidden=1, norm="first")
N = 131
RNG = np.random.default_rng(3)
X, Y, NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2)), RNG.normal(size=(7, 3))


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for half of a matrix of N points and not for the whole; rows come a few at a time."""
    monkeypatch.setattr(packed, "ENTRIES", 1000)
    monkeypatch.setattr(fit, "_ENTRIES", 1000)
    monkeypatch.setattr(memory, "available_memory", lambda: 7 * N * N)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 20, 21])
@pytest.mark.parametrize("height", [1, 4, 30])
def test_the_layout_is_that_of_lapack(n: int, height: int) -> None:
    matrix = np.random.default_rng(n).normal(size=(n, n))
    matrix += matrix.T
    made = make_array(n)
    for start in range(0, n, height):
        stop = min(n, start + height)
        write_rows(made, start, matrix[start:stop, :stop])
    expected, _ = scipy.linalg.lapack.dtrttf(np.asfortranarray(matrix), uplo="L")
    np.testing.assert_array_equal(made.reshape(-1, order="F"), expected)
    np.testing.assert_array_equal(diagonal_of(made), np.diagonal(matrix))


@pytest.mark.parametrize("n", [N, N - 1])
@pytest.mark.parametrize("each", [False, True], ids=["one noise", "noise of each"])
def test_a_posterior_of_half_a_matrix(n: int, each: bool, little_memory: None) -> None:
    noise = np.linspace(0.01, 0.1, n) if each else 0.0
    half = lnk.posterior(ARCH, X[:n], Y[:n], noise=noise)
    with pytest.MonkeyPatch.context() as plenty:
        plenty.setattr(memory, "available_memory", lambda: 2**40)
        whole = lnk.posterior(ARCH, X[:n], Y[:n], noise=noise)
        bound = lnk.bound(whole)
    assert isinstance(half._fit.factor, PackedCholesky)
    assert not isinstance(whole._fit.factor, PackedCholesky)
    scale = np.abs(whole.mean(NEW)).max()
    np.testing.assert_allclose(half.mean(NEW), whole.mean(NEW), atol=1e-12 * scale)
    for name in ("variance", "ensemble_variance", "covariance"):
        got, expected = (getattr(post, name)(NEW) for post in (half, whole))
        np.testing.assert_allclose(got, expected, atol=1e-12)
    likelihoods = (post.log_marginal_likelihood() for post in (half, whole))
    assert next(likelihoods) == pytest.approx(next(likelihoods), rel=1e-12, abs=0)
    found = lnk.bound(half)
    assert found.rkhs == pytest.approx(bound.rkhs, rel=1e-11)
    assert abs(found.lambda_min - bound.lambda_min) <= found.lambda_error + bound.lambda_error


def test_products_are_of_the_matrix_itself(little_memory: None) -> None:
    factor = lnk.posterior(ARCH, X, Y, noise=0.5)._fit.factor
    with pytest.MonkeyPatch.context() as plenty:
        plenty.setattr(memory, "available_memory", lambda: 2**40)
        matrix = np.asarray(lnk.ntk(ARCH)(X)) + 0.5 * np.eye(N)
    np.testing.assert_allclose(factor.times(Y), matrix @ Y, atol=1e-12)
    lower = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(factor.half_solve(Y), np.linalg.solve(lower, Y), atol=1e-12)
    assert factor.frobenius() == pytest.approx(np.linalg.norm(matrix), rel=1e-14, abs=0)
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12, abs=0)


def test_refinement_repairs_a_wrong_factor(little_memory: None) -> None:
    factor = lnk.posterior(ARCH, X, Y, noise=0.5)._fit.factor
    assert isinstance(factor, PackedCholesky)
    factor.packed[:] *= 1 + 1e-7
    roughly, refined = factor.solve_roughly(Y), factor.solve(Y)
    errors = [np.abs(factor.times(solution) - Y).max() for solution in (roughly, refined)]
    assert errors[1] < 1e-5 * errors[0]


def test_a_singular_half_is_diagnosed(little_memory: None) -> None:
    x = X.copy()
    x[40] = x[90] * (1 + 1e-15)
    with pytest.raises(lnk.errors.SingularGramError) as caught:
        lnk.posterior(ARCH, x, Y)
    assert caught.value.nearest is not None and caught.value.alike is not None
    assert caught.value.nearest[:2] == (40, 90) == caught.value.alike[:2]
    assert abs(caught.value.lambda_min) < caught.value.resolution
    assert not caught.value.scaled
    with pytest.raises(lnk.errors.SingularGramError) as caught:
        lnk.posterior(lnk.mlp(hidden=1), x, Y)
    assert caught.value.scaled and abs(caught.value.lambda_min) < caught.value.resolution


def test_what_takes_the_whole_matrix_says_so(little_memory: None) -> None:
    post = lnk.posterior(ARCH, X, Y)
    again = jax.tree.map(lambda leaf: leaf, post)
    np.testing.assert_array_equal(again.mean(NEW), post.mean(NEW))
    with pytest.raises(lnk.errors.HalfMatrixError, match=f"{N} points"), jax.enable_x64(True):
        jax.jit(lambda x: post.variance(x))(NEW)
    with pytest.raises(lnk.errors.NotEnoughMemoryError, match=f"{N} points"):
        post.at(1.0).mean(NEW)
    with pytest.MonkeyPatch.context() as plenty:
        plenty.setattr(memory, "available_memory", lambda: 2**40)
        with pytest.raises(lnk.errors.HalfMatrixError, match="holds half"):
            post.at(1.0).mean(NEW)


def test_more_points_than_lapack_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 7 * MOST**2)
    x = np.arange(MOST + 1.0)[:, None]
    with pytest.raises(lnk.errors.TooManyPointsError, match=r"at most 46340 points, got 46341"):
        lnk.posterior(ARCH, x, x[:, 0])
