"""Balls: every enclosure contains the exact number, and is tight where its input is a point."""

from __future__ import annotations

from fractions import Fraction

import cases
import mpmath
import numpy as np
import oracle
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.balls import entries, homogeneous, spherical
from lnkernel.evaluate.balls.numbers import BITS, BallArray, Truth, balls, select, working_precision

DEGREES = (-0.49, -0.4, 0, 0.5, 0.51, 0.6, 1, 1.4999999999, 1.5, 2, 2.5, 3, 5, 7.3)
PLACES = (1e-30, 1e-16, 1e-5, 0.01, 0.2, 0.505, 0.9)
TIGHT = mpf(10) ** -25


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(150), working_precision(BITS):
        yield


def as_mpf(ball: arb) -> mpf:
    """The midpoint of a ball, exactly."""
    mantissa, exponent = ball.mid().man_exp()
    return mpf(int(mantissa)) * mpf(2) ** int(exponent)


def holds(ball: arb, number: mpf) -> bool:
    return abs(as_mpf(ball) - number) <= as_mpf(ball.rad())


def expectation(p: float, z: mpf) -> mpf:
    """F_p at (1 + rho)/2 = z."""
    s = mpf(p) + mpf(1) / 2
    top = mpmath.gamma(s + 1) * mpmath.gamma(s) / mpmath.gamma(s + 0.5) ** 2
    return z**s * mpmath.hyp2f1(0.5, 0.5, s + 1, z) / top


@pytest.mark.parametrize("p", DEGREES)
def test_expectation_of_a_point(p: float) -> None:
    at = homogeneous.expectation(p, BITS)
    for m in PLACES:
        exact = expectation(p, mpf(m)), 1 - expectation(p, 1 - mpf(m))
        for ball, number in zip(at(arb(m)), exact, strict=True):
            assert holds(ball, number), (m, ball)
            assert as_mpf(ball.rad()) <= TIGHT * abs(number), (m, ball)


@pytest.mark.parametrize("p", (0, 0.6, 1, 1.5, 3))
@pytest.mark.parametrize("ends", ((0.0, 0.1), (0.2, 0.3), (0.3, 0.8), (0.0, 1.0)))
def test_expectation_of_a_wide_ball(p: float, ends: tuple[float, float]) -> None:
    far, gap = homogeneous.expectation(p, BITS)(arb(ends[0]).union(arb(ends[1])))
    for m in np.linspace(*ends, 4):
        assert holds(far, expectation(p, mpf(m))) and holds(gap, 1 - expectation(p, 1 - mpf(m)))


def test_at_the_ends_of_the_circle() -> None:
    far, gap = homogeneous.expectation(1.5, BITS)(arb(0))
    assert far.is_zero() and gap.is_zero()


@pytest.mark.parametrize("freedom", (1, 3, 4, 7, 16, 63))
def test_spherical(freedom: int) -> None:
    at, half = spherical.spherical(freedom, BITS), mpf(1) / 2
    nu = mpf(freedom)
    factor = 2 / nu * (mpmath.gamma((nu + 1) / 2) / mpmath.gamma(nu / 2)) ** 2
    for m in (1e-30, 1e-10, 0.1, 0.5, 0.7):
        rho = 1 - 2 * mpf(m)
        value = factor * rho * mpmath.hyp2f1(half, half, nu / 2 + 1, rho**2)
        slope = factor * mpmath.hyp2f1(half, 3 * half, nu / 2 + 1, rho**2) if freedom > 1 else 0
        for ball, number in zip(at(arb(m)), (1 - value, value, slope), strict=True):
            assert holds(ball, mpf(number)), (m, ball)
            assert as_mpf(ball.rad()) <= TIGHT * max(abs(number), mpf(10) ** -30)


def test_an_undecided_condition_gives_both_branches() -> None:
    condition = balls([arb(0, 1), arb(2), arb(-2)]) > 0
    assert isinstance(condition, Truth)
    chosen = select(condition, [1.0, 1.0, 1.0], [3.0, 3.0, 3.0])
    assert isinstance(chosen, BallArray)
    first, second, third = chosen.tolist()
    assert first.contains(arb(1)) and first.contains(arb(3))
    assert (second, third) == (1, 3)


def test_working_precision_comes_back() -> None:
    before = ctx.prec
    entries.gram(lnk.mlp(), np.ones((2, 1)), bits=200)
    assert ctx.prec == before


# ---------------------------------------------------------------- kernels


def points() -> np.ndarray:
    """Near-duplicates to the last bit, collinear, antipodal, orthogonal, zero, near and far."""
    x, y, step = np.random.default_rng(3).normal(size=(3, 3))
    near = x.copy()
    near[0] = np.nextafter(near[0], 9.0)
    turned = np.array([x[1], -x[0], 0.0])
    rows = [x, near, x + 1e-9 * step, -x, -x + 1e-5 * step, 2 * x, turned, 0 * x, y, 30 * y]
    return np.array(rows)


def excess(kernel: np.ndarray, ball: entries.Enclosed) -> float:
    """How far a kernel lies outside its ball, relative to sqrt(K(x,x) K(x2,x2))."""
    ends = np.sqrt(np.diag(kernel))
    scale = np.outer(ends, ends)
    outside = np.abs(kernel - ball.middle) - ball.radius
    return float((outside / np.where(scale > 0, scale, 1)).max())


def stated_error(case: cases.Case) -> float:
    return cases.BOUNDS["shallow" if case.depth <= cases.SHALLOW else "deep"]


def agree(case: cases.Case, matrices: lnk.Kernels) -> None:
    grams, lines = (f(case.arch, points()) for f in (entries.gram, entries.diagonal))
    for kernel, ball, line in zip(matrices, grams, lines, strict=True):
        assert excess(np.asarray(kernel), ball) <= stated_error(case)
        assert (np.abs(line.middle - np.diag(ball.middle)) <= line.radius + ball.radius.max()).all()


TABLE = cases.architectures()


SOME = (
    "degrees 3, .75, linear",
    "LN after, eps",
    "LN on the input",
    "RMS after, LN",
    "scale and bias",
    "GroupNorm 4",
    "parallel, degrees 1 and 2",
)


@pytest.mark.parametrize("name", cases.some_slow(SOME, {"degrees 3, .75, linear"}))
def test_float64_lies_in_the_ball(name: str) -> None:
    """Within the error that float64 is stated to have."""
    arch = TABLE[name].arch
    agree(TABLE[name], cases.uncompiled(arch, points()))


def test_a_zero_input_in_a_sum_of_branches() -> None:
    """Without biases, whether a sum is zero is asked of both branches, and its answer is used as a number."""
    case = TABLE["residual, no bias"]
    agree(case, lnk.kernels(case.arch)(points()))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_float64_lies_in_the_ball_for_all(name: str) -> None:
    """The public functions, matrix and diagonal."""
    both = lnk.kernels(TABLE[name].arch)
    agree(TABLE[name], both(points()))
    for ends, line in zip(
        both.diagonal(points()), entries.diagonal(both.arch, points()), strict=True
    ):
        bound = stated_error(TABLE[name])
        assert (np.abs(ends - line.middle) <= line.radius + bound * line.middle).all()


@pytest.mark.parametrize("name", cases.FEW)
def test_balls_hold_the_exact_kernel(name: str) -> None:
    """The oracle has 50 digits and shares no formula with the rules."""
    arch, x = TABLE[name].arch, points()
    matrix = entries.ntk_balls(arch, x, 160)
    for i, j in ((0, 1), (0, 4), (0, 6), (2, 9), (8, 9)):
        exact = oracle.pair(arch, x[i], x[j], dps=50)
        ball, size = matrix[i, j], exact.Theta_scale
        assert abs(as_mpf(ball) - exact.Theta) <= as_mpf(ball.rad()) + mpf(10) ** -48 * size
        assert as_mpf(ball.rad()) <= TIGHT * size


def test_tight_at_depth() -> None:
    """Fifty layers do not widen the balls of near-duplicates."""
    matrix = entries.ntk_balls(TABLE["relu 50"].arch, points()[:3], BITS)
    assert max(float(b.rad() / abs(b.mid())) for b in matrix.ravel()) < 1e-25


def test_zero_dimensions_of_difference() -> None:
    """On a line the angle is 0 or pi exactly, whatever the norms."""
    x = np.array([[1.0], [3.0], [-1e-150], [1e150]])
    ball = entries.gram(lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1)), x).ntk
    side = np.sign(x) @ np.sign(x).T
    assert np.array_equal(ball.middle[side > 0], np.full(10, ball.middle[0, 0]))
    assert Fraction(ball.middle[0, 0]) == 1 and (ball.middle[side < 0] == 0).all()


def test_beyond_the_range_of_float64() -> None:
    """A kernel of 1e400 is not enclosed by any number, and says so."""
    ball = entries.gram(lnk.mlp(), np.array([[1.0], [1e200]])).ntk
    assert np.isfinite(ball.radius[0, 0]) and ball.radius[1, 1] == np.inf
