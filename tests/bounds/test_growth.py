"""The leading terms of Θ(x, x) at both ends, against the oracle at absurd norms."""

from __future__ import annotations

import math
from fractions import Fraction

import cases
import pytest
from exact_diagonal import exact_diagonal
from mpmath import mpf

import lnkernel as lnk
from lnkernel.evaluate.leading.growth import at_zero, far, growth, near
from lnkernel.evaluate.leading.terms import Term

ARCHITECTURES = {name: case.arch for name, case in cases.architectures().items()}
# The terms left out fall like R^-(the smallest product of degrees): .6^10 = .006 is the worst,
# and 10^(-12/.006) = 1e-2000.
POWER = 4000
RTOL = 1e-12  # float64 through up to 50 layers


def value(term: Term, square: Fraction, at_zero: bool = False) -> mpf:
    R = 1 / square if at_zero else square
    return term.coefficient * (mpf(R.numerator) / R.denominator) ** term.power


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_far_out(name: str) -> None:
    arch, square = ARCHITECTURES[name], Fraction(10) ** POWER
    assert abs(value(far(arch), square) / exact_diagonal(arch, square) - 1) < RTOL


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_near_zero(name: str) -> None:
    arch, square = ARCHITECTURES[name], Fraction(10) ** -POWER
    assert abs(value(near(arch), square, at_zero=True) / exact_diagonal(arch, square) - 1) < RTOL


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_at_zero(name: str) -> None:
    """Not the limit, where there is no bias: LayerNorm leaves a zero vector zero."""
    arch = ARCHITECTURES[name]
    assert at_zero(arch) == pytest.approx(float(exact_diagonal(arch, Fraction(0))), rel=RTOL)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_whole_means_that_there_is_no_other_term(name: str) -> None:
    """In between, too; and where it does not say so there is one."""
    arch, square = ARCHITECTURES[name], Fraction(7, 3)
    term = far(arch)
    relative = abs(value(term, square) / exact_diagonal(arch, square) - 1)
    assert relative < RTOL if term.whole else relative > 1e-8


@pytest.mark.parametrize(
    "degrees, exponent", [((1.0,), 2), ((2.0, 3.0), 12), ((0.75, 2.0), 3), ((0.6, 1.5, 2.5), 4.5)]
)
def test_exponent_is_twice_the_product_of_the_degrees(
    degrees: tuple[float, ...], exponent: float
) -> None:
    arch = cases.chain(*map(lnk.RectifiedPower, degrees))
    assert growth(arch).exponent == pytest.approx(exponent, rel=1e-15, abs=0)


def test_of_several_branches_the_steepest_counts() -> None:
    def branch(degree: float) -> lnk.Node:
        return lnk.serial(lnk.Dense(8), lnk.RectifiedPower(degree), lnk.Dense(8))

    arch = lnk.serial(lnk.Dense(8), lnk.parallel(branch(0.75), branch(2), branch(1.5)))
    alone = lnk.serial(lnk.Dense(8), branch(2))
    assert growth(arch) == growth(alone)


def test_a_skip_around_every_norm_lets_it_grow() -> None:
    arch = lnk.serial(lnk.Dense(8), lnk.residual(lnk.LayerNorm(), lnk.Relu(), lnk.Dense(8)))
    assert growth(arch) == (2.0, 1.0)


def test_infinite_at_zero_alone() -> None:
    """The first LayerNorm leaves 0 and a Θ of 1 from its bias; the next one divides that by 0."""
    norm = lnk.LayerNorm(bias=True)
    arch = lnk.serial(lnk.Dense(8), norm, lnk.Relu(), lnk.Dense(8), norm, lnk.Dense(1))
    assert at_zero(arch) == math.inf
    assert near(arch).limit == far(arch).limit == 5
    assert lnk.sup_diagonal(arch).value == math.inf
    with pytest.raises(lnk.errors.KernelOverflowError):
        lnk.ntk(arch).diagonal([[0.0]])


def test_relu_by_hand() -> None:
    """Dense, ReLU, Dense without biases: Θ = 2 q W⁴/2 with q = |x|²/d."""
    arch = lnk.serial(lnk.Dense(8, W_std=3.0), lnk.Relu(), lnk.Dense(1, W_std=2.0))
    assert far(arch).whole
    assert growth(arch) == pytest.approx((2.0, 36.0), rel=1e-15, abs=0)
