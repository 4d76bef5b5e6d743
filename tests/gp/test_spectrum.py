"""The smallest eigenvalue: against known spectra and 50 digits, by both methods."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.gp import spectrum
from lnkernel.gp.cholesky import cholesky_in_place
from lnkernel.gp.spectrum import Eigenvalue, resolution, smallest_eigenvalue


def with_spectrum(values: np.ndarray, seed: int = 0) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    n = len(values)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    matrix = (turn * values) @ turn.T
    return (matrix + matrix.T) / 2


def exact_smallest(gram: np.ndarray) -> float:
    """By 50-digit arithmetic."""
    with mpmath.workdps(50):
        return float(min(mpmath.eigsy(mpmath.matrix(gram.tolist()), eigvals_only=True)))


def example() -> np.ndarray:
    x = np.linspace(-5, 5, 30)[:, None]
    return np.asarray(lnk.ntk(lnk.mlp(hidden=2, norm="first"))(x))


@pytest.fixture
def lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanczos for every size."""
    monkeypatch.setattr(spectrum, "DIRECT", 1)


def test_eigensolver_against_50_digits() -> None:
    gram = example()
    value, error = smallest_eigenvalue(gram)
    assert abs(value - exact_smallest(gram)) <= error <= resolution(gram)
    assert error < 1e-6 * value


@pytest.mark.usefixtures("lanczos")
def test_lanczos_against_50_digits() -> None:
    gram = example()
    value, error = smallest_eigenvalue(gram)
    assert abs(value - exact_smallest(gram)) <= error
    assert error < 1e-6 * value


@pytest.mark.usefixtures("lanczos")
def test_lanczos_with_a_factor() -> None:
    gram = example()
    made = cholesky_in_place(gram.copy())
    assert made is not None
    plain, with_factor = smallest_eigenvalue(gram), smallest_eigenvalue(made)
    assert with_factor.value == plain.value
    assert with_factor.error == pytest.approx(plain.error, rel=1e-14, abs=0)
    assert resolution(made) == resolution(gram)


@pytest.mark.parametrize("overwrite", [False, True])
def test_eigensolver_with_a_factor(overwrite: bool) -> None:
    gram = example()
    made = cholesky_in_place(gram.copy())
    assert made is not None
    before = made.both.copy()
    assert smallest_eigenvalue(made, overwrite=overwrite) == smallest_eigenvalue(gram)
    assert np.array_equal(made.both, before) is not overwrite


@pytest.mark.parametrize("n", [1, 255, 600])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_frobenius_norm(n: int, scale: float) -> None:
    gram = with_spectrum(np.linspace(1, 2, n))
    made = cholesky_in_place(gram * scale)
    assert made is not None
    assert made.frobenius() / scale == pytest.approx(np.linalg.norm(gram), rel=1e-14, abs=0)


@pytest.mark.usefixtures("lanczos")
@pytest.mark.parametrize("smallest", [-1e-3, -1e-16, 0.0, 1e-18])
def test_lanczos_where_there_is_no_factor(smallest: float) -> None:
    gram = with_spectrum(np.array([smallest, *np.linspace(1, 2, 29)]))
    value, error = smallest_eigenvalue(gram)
    assert abs(value - smallest) <= error + resolution(gram)


def test_the_example_of_the_mathematics() -> None:
    """100 points on [-5, 5]: 1.59644e-4, computed independently."""
    x = np.linspace(-5, 5, 100)[:, None]
    gram = np.asarray(lnk.ntk(lnk.mlp(hidden=2, norm="first"))(x))
    assert smallest_eigenvalue(gram).value == pytest.approx(1.59644e-4, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_scale(scale: float) -> None:
    """No overflow on the way: with the matrix scales all that is said of it."""
    gram = with_spectrum(np.array([0.25, 1.0, 2.0]))
    small = smallest_eigenvalue(gram)
    value, error = smallest_eigenvalue(gram * scale)
    assert abs(value / scale - small.value) <= 2 * small.error
    assert error / scale == pytest.approx(small.error)
    assert resolution(gram * scale) / scale == pytest.approx(resolution(gram))


def test_overwrite_is_asked_for() -> None:
    gram = example()
    before = gram.copy()
    smallest_eigenvalue(gram)
    assert np.array_equal(gram, before)


def test_rounding_noise_is_below_the_resolution() -> None:
    """A point given twice: the exact eigenvalue is 0, what is computed is noise."""
    x = np.linspace(-5, 5, 40)[:, None]
    gram = np.asarray(lnk.ntk(lnk.mlp(norm="first"))(np.concatenate([x, x[:1]])))
    value, error = smallest_eigenvalue(gram)
    assert abs(value) <= error <= resolution(gram)


def test_one_point() -> None:
    assert smallest_eigenvalue(np.array([[3.0]])) == Eigenvalue(
        3.0, pytest.approx(3 * 2.2e-16, 1e-2)
    )
