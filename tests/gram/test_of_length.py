"""Numbers of single inputs as functions of their length."""

from __future__ import annotations

import jax
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.gram import of_length, prepared
from lnkernel.gram.by_length import dissect_for
from lnkernel.gram.of_length import MANY, Range, diagonals_of, range_for
from lnkernel.gram.pairs import prepare
from lnkernel.gram.program import dissect_numbers, program_for

NTK = ("ntk",)


def network(activation: lnk.Elementwise) -> lnk.Node:
    return lnk.mlp(hidden=2, activation=activation, W_std=1.0)


def points(n: int = MANY + 88, d: int = 9) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(n, d))


def range_of(arch: lnk.Node, x: np.ndarray) -> Range | None:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        program = program_for(dissect_for(dissect_numbers(arch), NTK, x), NTK, x)
        return range_for(program, prepare(program.needs, x))


@pytest.mark.parametrize(
    "activation",
    [lnk.Silu(), *(pytest.param(a, marks=pytest.mark.slow) for a in (lnk.Tanh(), lnk.Softplus()))],
)
def test_the_matrix_is_that_of_the_rules(
    activation: lnk.Elementwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the rules for each input; and pairs beside the oracle, with errors below the estimate."""
    arch, x = network(activation), points()
    found = lnk.kernels(arch)(x)
    assert of_length._record_functions.cache_info().currsize
    monkeypatch.setattr(prepared, "range_for", lambda *_: None)
    for one, other in zip(found, lnk.kernels(arch)(x), strict=True):
        scale = np.sqrt(np.diag(other))
        assert 0 < np.abs((one - other) / scale / scale[:, None]).max() < 4e-15
    lengths = np.linalg.norm(x, axis=1)
    ends = int(lengths.argmin()), int(lengths.argmax())
    for row, column in [ends, (ends[0], 5), (7, ends[1]), (2, 2)]:
        exact = oracle.pair(arch, x[row], x[column], 30)
        error = abs(float((found.ntk[row, column] - exact.Theta) / exact.Theta_scale))
        assert error < 1e-14
        assert error <= lnk.ntk(arch).error_estimate(x[[row, column]])


def test_which_inputs_suit() -> None:
    arch, x = network(lnk.Silu()), points()
    assert range_of(arch, x) is not None
    assert range_of(arch, x[: MANY - 1]) is None
    assert range_of(arch, x * np.geomspace(1e-3, 1.0, len(x))[:, None]) is None  # a wide range
    assert range_of(arch, np.r_[x, np.zeros((1, 9))]) is None
    assert range_of(lnk.mlp(hidden=2, norm="first", activation=lnk.Silu()), x) is None


def test_the_diagonal_to_the_digits_of_float64() -> None:
    arch, x = network(lnk.Silu()), points()
    of = range_of(arch, x)
    assert of is not None
    with jax.enable_x64(True), np.errstate(all="ignore"):
        (made,) = diagonals_of(of, np.sqrt(np.mean(x * x, axis=1))) or ((),)
    np.testing.assert_allclose(made, lnk.ntk(arch).diagonal(x), rtol=3e-15)


def test_functions_that_few_lengths_do_not_tell() -> None:
    """A kink, a jump, and something infinite are found out; a power is told, and so is a function that is 0."""
    of = range_of(network(lnk.Silu()), points())
    assert of is not None
    r = of.nodes
    for values in (np.abs(r - 1), np.where(r < 1, 0.0, 1.0), np.full_like(r, np.inf)):
        assert of_length._functions_through(of, values[None]) is None
    made = of_length._functions_through(of, np.array([r**3, 0 * r, np.tanh(r)]))
    assert made is not None
    at = np.linspace(*of.ends, 50)
    np.testing.assert_allclose(made.at(at), [at**3, 0 * at, np.tanh(at)], rtol=1e-15)
