"""Polynomials as activations: against 40 digits and balls, at every length."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from test_kinked import BEHIND, POINTS, D, X, errors_of

import lnkernel as lnk
from lnkernel.arch import facts
from lnkernel.bounds.certified.description import describe, rebuild
from lnkernel.evaluate.balls import entries

AFFINE = lnk.LayerNorm(0.1, scale=True, bias=True)
# of the second one the mean, q - 1, has different signs for short and for long inputs
ALL = [lnk.Polynomial((0.3, -1.0, 0.5, 0.2)), lnk.Polynomial((-1.0, 0.5, 1.0)), lnk.Hermite(4)]


@pytest.mark.parametrize(
    "act", [ALL[0], pytest.param(ALL[1], marks=pytest.mark.slow), ALL[2]], ids=repr
)
@pytest.mark.parametrize(
    "norms", [(), pytest.param((AFFINE,), marks=pytest.mark.slow)], ids=["plain", "affine"]
)
def test_delicate_pairs(act: lnk.Elementwise, norms: tuple[lnk.Node, ...]) -> None:
    assert max(errors_of(lnk.serial(D, *norms, act, *BEHIND), POINTS)) < 1e-14


def test_balls_hold_the_exact_value() -> None:
    for act in ALL:
        arch = lnk.serial(D, act, lnk.LayerNorm(), D)
        made = entries.ntk_balls(arch, POINTS[[0, 7]], 192)
        exact = oracle.pair(arch, POINTS[0], POINTS[7], dps=40).Theta
        ball = made[0, 1]
        assert float(ball.rad()) < 1e-30 * abs(float(exact))
        assert abs(_fraction(exact) - _middle(ball)) < Fraction(1, 10**36)


def _fraction(number: Any) -> Fraction:
    sign, mantissa, exponent, _ = number._mpf_
    return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** int(exponent)


def _middle(ball: Any) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def test_every_length() -> None:
    """Of 1 + u + u² the constant is left for short inputs, the square for long ones."""
    arch = lnk.serial(lnk.Dense(8), lnk.Polynomial((1.0, 1.0, 1.0)), lnk.Dense(1))
    k = np.asarray(lnk.nngp(arch).diagonal([[1e-150], [1e70]]))
    np.testing.assert_allclose(k, [1.0, 3e280], rtol=1e-14)
    normed = lnk.serial(*arch.layers[:2], lnk.LayerNorm(), *arch.layers[2:])
    assert np.asarray(lnk.nngp(normed)([[1e-150], [1e150]]))[0, 1] == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(lnk.errors.KernelOverflowError):
        lnk.nngp(arch)([[1e100]])


def test_growth_and_certificate() -> None:
    """Θ = K + q(1 + q) with K = q + 3/4 q² for u + u²/2."""
    act = lnk.Polynomial((0.0, 1.0, 0.5))
    found = lnk.sup_diagonal(lnk.serial(lnk.Dense(8), act, lnk.Dense(1)))
    assert found.growth.exponent == 4.0 and found.growth.coefficient == pytest.approx(1.75)
    normed = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), act, lnk.Dense(1))
    assert lnk.sup_diagonal(normed, certify=True).enclosure == pytest.approx((3.75, 3.75))
    assert facts.steepness(normed) == 2.0
    assert rebuild(describe(normed)) == normed  # as certificates are saved


@pytest.mark.slow
def test_derivative_by_a_coefficient() -> None:
    def total(c: Any) -> Any:
        return lnk.ntk(lnk.serial(D, lnk.Polynomial((0.1, c, 0.3)), D))(X[:3]).sum()

    with jax.enable_x64(True):
        slope = float(jax.grad(total)(0.7))
        ahead, behind = (float(total(jnp.asarray(0.7 + h))) for h in (1e-6, -1e-6))
    assert slope == pytest.approx((ahead - behind) / 2e-6, rel=1e-7)


def test_random_networks_and_names() -> None:
    for act in ALL[1:]:
        arch = lnk.serial(lnk.Dense(8, 0.9, 0.2), act, lnk.Dense(1, 1.2, 0.3))
        net = lnk.finite.network(arch, 3, rngs=0)
        assert lnk.finite.from_flax(net) == arch == lnk.parse(repr(arch))
    found = lnk.finite.empirical_ntk_over_seeds(arch, 0.5 * X[:3], width=1024, seeds=60)
    away = np.abs(found.mean - np.asarray(lnk.ntk(arch)(0.5 * X[:3]))) / found.standard_error
    assert away.max() < 4.5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: lnk.Polynomial((1.0, 0.0)), "it is constant"),
        (lambda: lnk.Polynomial(()), "a tuple of finite numbers"),
        (lambda: lnk.Polynomial((1.0, float("nan"))), "a tuple of finite numbers"),
        (lambda: lnk.Polynomial([1.0] * 30), "at most 20, got 29"),
        (lambda: lnk.Hermite(0), "degree must be an integer, at least 1"),
        (lambda: lnk.Hermite(21), "at most 20, got 21"),
    ],
)
def test_what_is_refused(make: Any, said: str) -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match=said):
        make()
