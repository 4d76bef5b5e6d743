"""B(D): its ingredients against 50 digits, its forms, the counterexample, and bad input."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax
import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp
from own_process import warned_lines

import lnkernel as lnk
from lnkernel.errors import (
    DuplicateInputsError,
    InputError,
    NotATheoremWarning,
    NotEnoughMemoryError,
    SingularGramError,
    UnresolvedEigenvalueError,
)

FIRST = lnk.mlp(hidden=2, norm="first")
PLAIN = lnk.mlp(hidden=2)
# one shape for all small data sets: a program is compiled once per network
RNG = np.random.default_rng(7)
X6, Y6 = RNG.normal(size=(6, 3)), RNG.normal(size=6)


def exact(arch: lnk.Node, X: np.ndarray, y: np.ndarray, noise: float) -> tuple[float, float]:
    """The smallest eigenvalue of Θ + noise I, and aᵀΘa, with 50 digits."""
    n = len(X)
    with mp.workdps(50):
        theta = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(i + 1):
                theta[i, j] = theta[j, i] = oracle.kernels(arch, X[i], X[j])[1]
        noisy = theta + mpmath.eye(n) * mpmath.mpf(noise)
        a = mpmath.lu_solve(noisy, mpmath.matrix(y.tolist()))
        least = min(mpmath.eigsy(noisy, eigvals_only=True))
        return float(least), float((a.T * theta * a)[0])


@pytest.fixture(scope="module")
def sine() -> lnk.Bound:
    X = np.linspace(-5, 5, 100)[:, None]
    return lnk.bound(FIRST, X, np.sin(X[:, 0]))


def test_the_example(sine: lnk.Bound) -> None:
    assert sine.lambda_min == pytest.approx(1.59644e-4, rel=1e-5)
    assert pytest.approx(3.03, rel=1e-14, abs=0) == sine.C
    assert sine.rkhs**2 / sine.C == pytest.approx(241.535, rel=1e-5)
    assert sine.rkhs == pytest.approx(27.05, rel=1e-3)
    assert sine.value == float(sine) == pytest.approx(1377.7, rel=1e-4)
    assert (sine.n, sine.noise, sine.form) == (100, 0.0, "sharp")
    assert sine.is_theorem and not sine.certified and sine.certificate is None


def test_words(sine: lnk.Bound) -> None:
    text = str(sine)
    for part in ("at most 1377.66", "3.03", "0.000159644", "100 points", "27.05", "s = 7.25"):
        assert part in text
    assert "A theorem, evaluated in float64" in text


@pytest.mark.parametrize("noise", [0.0, 1e-3, 50.0])
def test_ingredients_to_50_digits(noise: float) -> None:
    least, quadratic = exact(FIRST, X6, Y6, noise)
    b = lnk.bound(FIRST, X6, Y6, noise=noise)
    assert b.lambda_min == pytest.approx(least, rel=1e-12, abs=0)
    assert abs(b.lambda_min - least) <= b.lambda_error
    assert b.rkhs == pytest.approx(math.sqrt(b.C * quadratic), rel=1e-12, abs=0)
    assert b.rkhs <= math.sqrt(b.C) * np.linalg.norm(Y6) / math.sqrt(least) <= b.sharp


def test_every_form_is_the_one_formula_with_its_own_s() -> None:
    expected = {
        "sharp": lambda b: b.max_abs_y * math.sqrt(b.C * b.n / b.lambda_min),
        "paper": lambda b: b.n * b.max_abs_y * math.sqrt(b.C / b.lambda_min),
        "norms": lambda b: b.n * b.max_abs_y * b.C / b.lambda_min,
    }
    for name, formula in expected.items():
        b = lnk.bound(FIRST, X6, Y6, s=name)
        literal = b.s * b.C * b.max_abs_y / (b.lambda_min * b.n)
        assert b.value == pytest.approx(formula(b), rel=1e-14, abs=0)
        assert b.value == pytest.approx(literal, rel=1e-14, abs=0)
        assert b.value == pytest.approx(getattr(b, name), rel=1e-14, abs=0)
        assert b.is_theorem and b.form == name


def test_a_number_is_used_as_it_is() -> None:
    sharp = lnk.bound(FIRST, X6, Y6)
    again = lnk.bound(FIRST, X6, Y6, s=sharp.s)
    assert again.is_theorem and again.value == pytest.approx(sharp.value, rel=1e-14, abs=0)
    with pytest.warns(NotATheoremWarning, match=f"s >= {sharp.s:.6g}"):
        low = lnk.bound(FIRST, X6, Y6, s=0.99 * sharp.s)
    assert not low.is_theorem and "NOT A THEOREM" in str(low)
    assert low.value == pytest.approx(0.99 * sharp.value, rel=1e-14, abs=0)


def test_the_warning_points_at_the_caller(tmp_path: Path) -> None:
    script = "import lnkernel as lnk\n\nlnk.bound(lnk.mlp(norm='first'), [[1.0]], [1.0], s=1e-9)\n"
    assert warned_lines(tmp_path, script, "NotATheoremWarning") == [3]


def test_s_equal_to_1_is_false() -> None:
    """Linear network with LayerNorm, orthonormal inputs, all targets 1: Θ(x, x') = 2 cos(x, x')."""
    arch = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Dense(1))
    X, y = np.eye(100), np.ones(100)
    with pytest.warns(NotATheoremWarning):
        literal = lnk.bound(arch, X, y, s=1)
    assert literal.value == pytest.approx(0.01, rel=1e-12, abs=0) and not literal.is_theorem
    assert pytest.approx(2) == literal.C and literal.lambda_min == pytest.approx(2)
    # the mean at the sum of all inputs is 10: a thousand times more, and exactly the sharp bound
    mean = lnk.posterior(arch, X, y).mean(np.ones((1, 100)))
    assert mean[0] == pytest.approx(10, rel=1e-12, abs=0)
    sharp = lnk.bound(arch, X, y)
    assert sharp.s == pytest.approx(1000, rel=1e-12, abs=0)
    assert sharp.value == pytest.approx(10, rel=1e-12, abs=0)
    assert sharp.rkhs == pytest.approx(10, rel=1e-12, abs=0)


def test_s_equal_to_1_is_false_for_relu() -> None:
    """The example's network contradicts it at its own data: f(x_i) = 1."""
    X, y = 10 * np.eye(100), np.ones(100)  # |x|²/d = 1
    with pytest.warns(NotATheoremWarning):
        literal = lnk.bound(FIRST, X, y, s=1)
    assert literal.lambda_min == pytest.approx(2.31365, rel=1e-5)
    assert literal.value == pytest.approx(0.0131, rel=1e-2)
    assert literal.rkhs == pytest.approx(2.02, rel=1e-2)
    assert literal.sharp == pytest.approx(11.4, rel=1e-2)


def test_large_noise() -> None:
    """λ_min + noise > C: then n² is the smaller s, and what it gives is still proved."""
    b = lnk.bound(FIRST, X6, Y6, s="norms", noise=1e4)
    assert b.lambda_min > b.C
    assert b.is_theorem and b.value < b.sharp
    inputs = np.concatenate([X6, 1e3 * X6, -X6, 1e-3 * X6])
    assert np.abs(lnk.posterior(FIRST, X6, Y6, noise=1e4).mean(inputs)).max() <= b.value
    assert b.rkhs <= b.value


def test_several_outputs_have_the_bound_of_the_largest() -> None:
    outputs = np.stack([Y6, -3 * Y6[::-1], 0 * Y6], axis=1)
    single = [lnk.bound(FIRST, X6, column) for column in outputs.T]
    b = lnk.bound(FIRST, X6, outputs)
    assert b.rkhs == pytest.approx(max(s.rkhs for s in single), rel=1e-14, abs=0)
    assert b.value == pytest.approx(max(s.value for s in single), rel=1e-14, abs=0)


def test_scales_with_the_targets() -> None:
    """Also where their squares overflow or vanish."""
    b = lnk.bound(FIRST, X6, Y6)
    for factor in (2.0**-900, 2.0**900):
        scaled = lnk.bound(FIRST, X6, factor * Y6)
        assert scaled.value == pytest.approx(factor * b.value, rel=1e-14, abs=0)
        assert scaled.rkhs == pytest.approx(factor * b.rkhs, rel=1e-14, abs=0)


def test_at_a_point() -> None:
    b = lnk.bound(PLAIN, X6, Y6)
    quadratic = exact(PLAIN, X6, Y6, 0.0)[1]
    at = b.at(X6)
    assert isinstance(at, np.ndarray) and at.dtype == np.float64
    assert at == pytest.approx(np.sqrt(lnk.ntk(PLAIN).diagonal(X6) * quadratic), rel=1e-11)
    assert (np.abs(Y6) <= at).all()
    with pytest.raises(InputError, match="dimension of the training inputs, 3"):
        b.at([[1.0]])


def test_without_normalisation() -> None:
    b = lnk.bound(PLAIN, X6, Y6)
    assert b.value == b.C == b.rkhs == b.sharp == b.norms == math.inf
    assert b.is_theorem
    assert "(|x|/√d)^2" in str(b) and "infinite" in str(b)


def test_all_targets_zero() -> None:
    for arch in (FIRST, PLAIN):
        b = lnk.bound(arch, X6, 0 * Y6)
        assert b.value == b.rkhs == b.sharp == b.norms == 0
        assert b.is_theorem and "the bound is 0" in str(b)


def test_one_point() -> None:
    """Θ is the number C, so every form but n² is |y|."""
    b = lnk.bound(FIRST, [[2.0, 1.0, 0.0]], [-5.0])
    assert b.value == pytest.approx(5, rel=1e-14) and b.rkhs == pytest.approx(5, rel=1e-14, abs=0)


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        lnk.bound(FIRST, X6, Y6).value = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("s", [0, -1.0, math.inf, math.nan, "shrap", None, True, [1.0], 1j])
def test_bad_s(s: object) -> None:
    with pytest.raises(InputError, match=r'^s: expected .* Use "sharp", "paper" or "norms"'):
        lnk.bound(FIRST, X6, Y6, s=s)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [-1e-3, math.inf, math.nan, "0.1", None])
def test_bad_noise(noise: object) -> None:
    with pytest.raises(InputError, match=r"^noise: expected a variance, at least 0"):
        lnk.bound(FIRST, X6, Y6, noise=noise)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "X, y, message",
    [
        (np.zeros((0, 3)), np.zeros(0), "at least one point"),
        (X6, Y6[:5], r"shape \(6,\) or \(6, k\)"),
        (X6, np.where(Y6 > 0, np.nan, Y6), "finite"),
        (np.where(X6 > 1, np.inf, X6), Y6, "finite"),
        (X6[0], Y6, "2-D"),
    ],
)
def test_bad_data(X: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lnk.bound(FIRST, X, y)


def test_duplicates() -> None:
    X = np.concatenate([X6[:5], X6[:1]])
    for y, word in ((np.ones(6), "equal targets"), (np.arange(6.0), "different targets")):
        with pytest.raises(DuplicateInputsError, match=rf"0 = 5 \({word}\)"):
            lnk.bound(FIRST, X, y)
        assert lnk.bound(FIRST, X, y, noise=0.1).is_theorem


@pytest.mark.parametrize("certify", [False, True])
def test_more_points_than_memory_holds(certify: bool) -> None:
    X = np.arange(400_000.0)[:, None]
    with pytest.raises(NotEnoughMemoryError, match=r"400000 points needs \d+\.\d GiB"):
        lnk.bound(FIRST, X, X[:, 0], certify=certify)


def test_collinear_points() -> None:
    """Without biases the network sees their direction only."""
    X = np.outer(np.arange(1.0, 7.0), X6[0])
    with pytest.raises(SingularGramError):
        lnk.bound(lnk.mlp(hidden=2, norm="first", b_std=0.0), X, Y6)
    assert lnk.bound(FIRST, X, Y6).is_theorem


def test_rounding_noise_is_no_eigenvalue() -> None:
    """Norms 1 and 1e10 without LayerNorm: the matrix is fine, scaled; its eigenvalue is not."""
    X = X6 * np.array([1, 1, 1, 1, 1, 1e10])[:, None]
    with pytest.raises(UnresolvedEigenvalueError, match="rounding noise"):
        lnk.bound(PLAIN, X, Y6)


def test_in_64_bit_mode() -> None:
    b = lnk.bound(FIRST, X6, Y6)
    with jax.enable_x64(True):
        again = lnk.bound(FIRST, jax.numpy.asarray(X6), jax.numpy.asarray(Y6))
        at = again.at(X6)
    assert isinstance(at, np.ndarray) and at.dtype == np.float64
    assert again.value == b.value and np.array_equal(np.asarray(at), b.at(X6))


def test_what_cannot_be_certified() -> None:
    with pytest.raises(InputError, match=r"^certify: expected .* certify=False"):
        lnk.bound(PLAIN, X6, Y6, certify=True)


@pytest.mark.parametrize("noise", [1e17, 1e20, 1e35, 1e60, 1e200, 1e308])
def test_noise_that_hides_the_kernel(noise: float) -> None:
    """Beside a noise that leaves nothing of Θ in A the bounds keep their digits, as the mean does."""
    square = exact_norm_of_scaled(noise)
    plain = lnk.bound(FIRST, X6, Y6, noise=noise)
    assert plain.rkhs == pytest.approx(math.sqrt(plain.C) * square, rel=1e-13, abs=0)
    proved = lnk.bound(FIRST, X6, Y6, noise=noise, certify=True)
    assert square * (1 - 1e-15) <= proved.native_norm <= square * (1 + 1e-9)
    assert proved.certificate is not None and proved.certificate.verify()


def exact_norm_of_scaled(noise: float) -> float:
    """√(aᵀΘa) with 50 digits, whose square is below float64's range."""
    with mp.workdps(50):
        theta = mpmath.matrix([[oracle.kernels(FIRST, x, z)[1] for z in X6] for x in X6])
        noisy = theta + mpmath.eye(6) * mpmath.mpf(noise)
        a = mpmath.lu_solve(noisy, mpmath.matrix(Y6.tolist()))
        return float(mpmath.sqrt((a.T * theta * a)[0]))


def test_noise_that_hides_the_kernel_by_iteration() -> None:
    exact = lnk.bound(FIRST, X6, Y6, noise=1e20)
    post = lnk.posterior(FIRST, X6, Y6, noise=1e20, tolerance=1e-24)
    assert lnk.bound(post).rkhs == pytest.approx(exact.rkhs, rel=1e-6, abs=0)


@pytest.mark.parametrize("noise", [1e-9, 0.1, 1e6])
def test_certified_with_noise(noise: float, tmp_path: Path) -> None:
    """Every number is on the safe side of the one with 50 digits, and near it."""
    least, square = exact(FIRST, X6, Y6, noise)
    made = lnk.bound(FIRST, X6, Y6, noise=noise, certify=True)
    certificate = made.certificate
    assert made.certified and certificate is not None
    assert least * (1 - 1e-9) <= made.lambda_min <= least * (1 + 1e-15)
    assert math.sqrt(square) * (1 - 1e-15) <= made.native_norm <= math.sqrt(square) * (1 + 1e-9)
    assert made.rkhs >= math.sqrt(made.C * square) * (1 - 1e-15)
    certificate.save(tmp_path / "c.json")
    again = lnk.Certificate.load(tmp_path / "c.json")
    assert again.verify() and np.array_equal(again.noise, np.full(6, noise))
    for wrong in ({"norm_upper": certificate.norm_upper * (1 - 1e-9)}, {"noise": again.noise / 2}):
        assert not dataclasses.replace(certificate, **wrong).verify()


def test_certified_with_noise_of_each_point() -> None:
    """Where equal inputs have noise, and where nothing but the noise keeps the matrix from being singular."""
    twice, targets = np.concatenate([X6, X6[:2]]), np.concatenate([Y6, Y6[:2] + 1])
    noise = np.linspace(0.1, 1.0, 8)
    made = lnk.bound(FIRST, twice, targets, noise=noise, certify=True)
    assert made.certificate is not None and made.certificate.verify()
    plain = lnk.bound(FIRST, twice, targets, noise=noise)
    assert plain.rkhs * (1 - 1e-12) <= made.rkhs <= plain.rkhs * (1 + 1e-8)
    assert 0.1 <= made.lambda_min <= plain.lambda_min * (1 + 1e-12)


@pytest.mark.parametrize("scale", [4e307, 1e-300])
def test_targets_at_the_ends_of_float64(scale: float) -> None:
    """No square of a target overflows or vanishes."""
    x, y = [[1.0], [-1.0]], np.array([1.0, 0.5]) * scale
    plain, proved = lnk.bound(FIRST, x, y), lnk.bound(FIRST, x, y, certify=True)
    assert 0 < plain.rkhs <= proved.rkhs * (1 + 1e-12) < math.inf
    assert proved.rkhs == pytest.approx(plain.rkhs, rel=1e-8)
    assert lnk.bound(FIRST, x, y / 1e7 if scale > 1 else y).at([[1e308]])[0] > 0
