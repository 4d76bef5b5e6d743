"""Networks that are prepared for a range of lengths, and those among them that ask for no more care."""

from __future__ import annotations

import jax
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.arch import Node
from lnkernel.calculus.covariance import Covariance, Length, with_bias
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.expansion import expand
from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.gram import eager, pairs, tiled
from lnkernel.gram.by_length import dissect_for
from lnkernel.gram.prepared import diagonal_of, prepare
from lnkernel.gram.program import Dissected, dissect_numbers, program_for

NTK = ("ntk",)


def points(n: int, d: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(0).normal(size=(n, d))


def prepared(arch: Node, *inputs: np.ndarray) -> Dissected:
    with jax.enable_x64(True):
        return dissect_for(dissect_numbers(arch), NTK, *inputs)


def test_what_was_found_is_kept_for_inputs_of_such_lengths() -> None:
    arch, x = lnk.mlp(activation=lnk.Tanh()), points(100, 5)
    assert prepared(arch, x) is prepared(arch, x[::-1] * (1 + 1e-9))
    assert prepared(arch, x) is not prepared(arch, 1.2 * x)


@pytest.mark.parametrize(
    ("arch", "scale", "gentle"),
    [
        (lnk.mlp(activation=lnk.Erf(), W_std=1.0), 1.0, True),
        (lnk.mlp(activation=lnk.Gelu()), 1.0, True),
        (lnk.mlp(activation=lnk.Tanh(), W_std=1.0), 1.0, True),
        # long vectors, between which a small angle becomes a large one
        (lnk.mlp(activation=lnk.Erf(), W_std=1.0), 10.0, False),
        # a kink behind or inside, to which a rounding error of the cosine is its root
        (
            lnk.serial(lnk.Dense(8), lnk.Gelu(), lnk.Dense(8), lnk.Relu(), lnk.Dense(1)),
            1.0,
            False,
        ),
        (lnk.mlp(activation=lnk.Elu()), 1.0, False),
        (lnk.mlp(activation=lnk.Clip(-1.0, 1.0)), 0.01, False),
    ],
)
def test_which_networks_are_gentle(arch: Node, scale: float, gentle: bool) -> None:
    assert prepared(arch, points(100, 5, scale)).needs.gentle is gentle


def near_pairs(n: int, d: int) -> np.ndarray:
    """Points, and the same again: turned by angles from 0 to 0.2, partly longer, partly opposite."""
    x, rng = points(n, d), np.random.default_rng(1)
    apart = np.resize([0.0, 1e-15, 1e-12, 1e-8, 1e-5, 1e-3, 0.01, 0.1, 0.2], n)[:, None]
    factor = np.resize([1.0, 1.1, -1.0, -0.9], n)[:, None]
    return np.concatenate([x, factor * x + apart * rng.normal(size=x.shape)])


@pytest.mark.parametrize(
    ("activation", "tolerance"),
    [(lnk.Erf(), 2e-15), (lnk.Gelu(), 2e-15), (lnk.Silu(), 1e-14)],
)
def test_small_angles_without_more_care(activation: lnk.Elementwise, tolerance: float) -> None:
    """Beside the careful rules, which the oracle has tested to 50 digits. By a rounded cosine the small angles
    themselves have no digit left, yet the kernels are exact."""
    arch, n = lnk.mlp(hidden=2, activation=activation, W_std=1.0), 80
    x = near_pairs(n, 9)
    theta = lnk.ntk(arch)
    with jax.enable_x64(True):
        program = program_for(prepared(arch, x), NTK, x)
        assert program.needs.gentle
        matrix, given = theta(x), pairs.prepare(program.needs, x)
        rows = np.arange(n)
        (exact,) = eager.carefully(program, given, given, rows, rows + n)
        (end,) = diagonal_of(program, given)
    error = np.abs(matrix[rows, rows + n] - exact) / np.sqrt(end[:n] * end[n:])
    assert error.max() < tolerance
    assert np.array_equal(matrix, matrix.T)


@pytest.mark.parametrize(
    ("activation", "tolerance", "hidden"),
    [
        (lnk.Erf(), 2e-15, 2),
        (lnk.Silu(), 1e-14, 1),
        *(
            pytest.param(activation, tolerance, hidden, marks=pytest.mark.slow)
            for activation, tolerance, hidden in [
                (lnk.Erf(), 2e-15, 5),
                (lnk.Gelu(), 2e-15, 2),
                (lnk.Silu(), 1e-14, 2),
                (lnk.Tanh(), 2e-14, 1),
                (lnk.Tanh(), 2e-14, 2),
                (lnk.Softplus(), 2e-14, 1),
                (lnk.Sigmoid(), 2e-14, 1),
                (lnk.Sin(), 2e-14, 1),
            ]
        ),
    ],
)
def test_quick_pairs_to_50_digits(
    activation: lnk.Elementwise, tolerance: float, hidden: int
) -> None:
    """Near, antipodal and ordinary pairs beside the oracle; the estimate is never below the error."""
    arch, n = lnk.mlp(hidden=hidden, activation=activation, W_std=1.0), 80
    x = near_pairs(n, 9)
    with jax.enable_x64(True):
        program = program_for(prepared(arch, x), NTK, x)
        assert program.needs.gentle
        (matrix,), _ = tiled.symmetric(program, x)
    near = [(row, n + row) for row in (0, 2, 4, 6, 8)]
    for row, column in [*near, (1, 7), (3, n + 40)]:
        exact = oracle.pair(arch, x[row], x[column], 30)
        error = abs(float((matrix[row, column] - exact.Theta) / exact.Theta_scale))
        assert error < tolerance, (row, column)
        assert error <= lnk.ntk(arch).error_estimate(x[[row, column]]), (row, column)


def test_angles_behind_a_bias_from_their_cosines() -> None:
    """By hand: the vectors (r, 0, b) and (s cos, s sin, b)."""
    angles, r, s, bias = np.linspace(0.0, np.pi, 9), 0.7, 1.9, 0.3
    lengths = Length(as_precise(np.full(9, r * r))), Length(as_precise(np.full(9, s * s)))
    w, z = np.sin(angles / 2) ** 2, np.cos(angles / 2) ** 2
    pair = Covariance(*lengths, w, z, np.cos(angles), None)
    num = EagerFloat64(quick=True, delicate=NOTHING_DELICATE)
    assert num.rounds_angles
    assert not EagerFloat64(delicate=NOTHING_DELICATE).rounds_angles  # the careful way never
    made, _ = with_bias(num, pair, bias)
    expected = (r * s * np.cos(angles) + bias**2) / np.sqrt((r * r + bias**2) * (s * s + bias**2))
    np.testing.assert_allclose(made.c, expected, rtol=0, atol=3e-16)
    np.testing.assert_allclose(made.w, (1 - expected) / 2, rtol=0, atol=3e-16)
    np.testing.assert_allclose(made.z, (1 + expected) / 2, rtol=0, atol=3e-16)


def test_inputs_longer_than_all_that_a_network_is_prepared_for() -> None:
    """Their factors are NaN, which is noticed although no pair is delicate."""
    arch, x, few = lnk.mlp(hidden=1, activation=lnk.Silu(), W_std=1.0), points(120, 5), 90
    with jax.enable_x64(True):
        parts = dissect_numbers(expand(arch, 0.9 * x))
        parts = parts._replace(needs=parts.needs._replace(gentle=True))
        program = program_for(parts, NTK, x)
        assert np.isnan(prepare(program, x, len(x)).sides[0].numbers).any()
        (matrix,), _ = tiled.symmetric(program, x)
    assert np.isfinite(matrix).all()
    # few points are compared by NumPy, prepared for lengths that suffice
    assert np.abs(matrix[:few, :few] - lnk.ntk(arch)(x[:few])).max() < 1e-14 * matrix.max()
