"""Closed forms in float64, with all care."""

from __future__ import annotations

import mpmath
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.forms import ErfForm, GeluForm
from lnkernel.evaluate.float64 import closed, own_moments
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.gathered import FEW
from lnkernel.evaluate.float64.precise import Precise, as_precise
from lnkernel.gram import eager, pairs
from lnkernel.gram.program import dissect_numbers, program_for


@pytest.mark.parametrize("q", [0.07, 1.0, 30.0])
def test_slope_of_erf_has_more_digits_than_float64_at_small_angles(q: float) -> None:
    """In equal layers its errors lean the same way; rounded to float64 it is off by 1e-17 or more of these."""
    w = np.array([1e-18, 3e-17, 1e-16, 1e-15])
    length = Length(as_precise(np.full(w.shape, q)))
    slope = closed.dual(
        ErfForm(), Covariance(length, length, w, 1 - w, 1 - 2 * w, 0.0), EagerFloat64()
    ).slope
    assert isinstance(slope, Precise)
    with mpmath.workdps(50):
        for k, angle in enumerate(map(float, w)):
            rho, square = 1 - 2 * mpmath.mpf(angle), 1 + 2 * mpmath.mpf(q)
            derivative = 4 / mpmath.pi / mpmath.sqrt(square**2 - (2 * q * rho) ** 2)
            exact = q * derivative / (2 / mpmath.pi * mpmath.asin(2 * mpmath.mpf(q) / square))
            found = mpmath.mpf(float(slope.high[k])) + mpmath.mpf(float(slope.low[k]))
            assert abs(found / exact - 1) < 3e-18


@pytest.mark.parametrize("form", [ErfForm(), GeluForm()])
def test_moments_of_many_inputs_are_kept_until_they_are_asked_for_again(
    form: ErfForm | GeluForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(*arguments: object) -> object:
        asked.append(arguments)
        return usual(*arguments)

    usual = own_moments.own_moments
    monkeypatch.setattr(own_moments, "own_moments", counted)
    own_moments._latest.clear()  # of other tests
    square = np.linspace(0.1, 3.0, FEW + 1)
    first = own_moments.kept_moments(form, as_precise(square[:, None]))
    for count in (1, 2):  # the second time they are no longer kept
        again = own_moments.kept_moments(form, as_precise(square), again=True)
        assert len(asked) == count
        for part, same in zip(first, again, strict=True):
            np.testing.assert_array_equal(part.high[:, 0], same.high)
            np.testing.assert_array_equal(part.low[:, 0], same.low)
    assert not own_moments._latest


@pytest.mark.parametrize("act", [lnk.Erf(), lnk.Sin(), lnk.Gelu()])
def test_careful_pairs_of_deep_networks(act: lnk.Node) -> None:
    """Angles that are small at first become large, and what their sines and cosines differ by must not."""
    arch = lnk.mlp(hidden=50, activation=act)
    x = np.array([[1.0, 0.2], [-1.1, -0.05], [0.3, 0.31], [0.9, 0.7]])
    program = program_for(dissect_numbers(arch), ("nngp", "ntk"), x)
    points = pairs.prepare(program.needs, x)
    rows, columns = np.triu_indices(len(x), 1)
    found = eager.carefully(program, points, points, rows, columns)
    for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
        exact = oracle.pair(arch, list(x[i]), list(x[j]))
        assert abs(mpmath.mpf(float(found[0][k])) - exact.K) < 2e-14 * exact.K_scale
        assert abs(mpmath.mpf(float(found[1][k])) - exact.Theta) < 2e-14 * exact.Theta_scale
