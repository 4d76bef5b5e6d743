"""Squared lengths with twice the digits and any size, against mpmath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import gamma, mp, mpf, pi, sqrt, workdps

from lnkernel.evaluate.float64 import geometry, tables
from lnkernel.evaluate.float64.powers import power
from lnkernel.evaluate.float64.precise import Precise, as_precise, normalised, plain, quotient

SIZES = np.concatenate([10.0 ** np.linspace(-300, 300, 13), 1 + np.linspace(0, 1, 7)[:-1]])
EXACT = 1e-30  # of numbers with twice the digits of float64, 2^-106 = 1e-32


def value(x: Precise, i: int) -> mpf:
    exponent = 0 if x.exponent is None else int(x.exponent[i])
    return (mpf(float(x.high[i])) + mpf(float(x.low[i]))) * mpf(2) ** exponent


def worst(x: Precise, exact: list[mpf]) -> mpf:
    return max(abs(value(x, i) / e - 1) for i, e in enumerate(exact))


@pytest.fixture(autouse=True, params=["numpy", "jax"])
def array(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Both kinds of arrays, with 60 digits for mpmath and 64 bits for JAX; NumPy's warnings are not ours."""
    with workdps(60), jax.enable_x64(True), np.errstate(all="ignore"):
        yield np.asarray if request.param == "numpy" else jnp.asarray


@pytest.fixture
def sized(array: Callable[[Any], Any]) -> Callable[[], Precise]:
    return lambda: normalised(as_precise(array(SIZES)))


def exactly() -> list[mpf]:
    return [mpf(float(s)) for s in SIZES]


def test_products_and_sums_keep_all_digits(
    sized: Callable[[], Precise], array: Callable[[Any], Any]
) -> None:
    other = normalised(as_precise(array(SIZES[::-1] / 3)))
    pairs = list(zip(exactly(), (mpf(float(s)) for s in SIZES[::-1] / 3), strict=True))
    assert worst(sized() * other, [x * y for x, y in pairs]) < EXACT
    assert worst(sized() + other, [x + y for x, y in pairs]) < EXACT


def test_a_difference_keeps_the_digits_that_are_left(array: Callable[[Any], Any]) -> None:
    third = as_precise(array([1.0])) * (1 / 3) * 3.0
    left = third + -1.0
    assert worst(left, [mpf(1 / 3) * 3 - 1]) < 1e-14  # 1e-30 of what has cancelled


def test_what_is_out_of_range_comes_back(sized: Callable[[], Precise]) -> None:
    cube = sized() * sized() * sized()
    assert worst(cube, [x**3 for x in exactly()]) < EXACT
    assert np.array_equal(np.asarray(plain(cube))[[0, 12]], [0.0, np.inf])
    ratio = np.asarray(quotient(cube, sized() * sized()))
    assert np.abs(ratio / SIZES - 1).max() < 4e-16


def test_roots(sized: Callable[[], Precise]) -> None:
    root = np.asarray((sized() * sized() * 0.1).root())
    exact = [x * sqrt(mpf(0.1)) for x in exactly()]
    assert max(abs(mpf(float(r)) / e - 1) for r, e in zip(root, exact, strict=True)) < 2.3e-16


@pytest.mark.parametrize("degree", [1.5, 0.75, 2.5, 0.25, 1.3, 3.7, 2, 3, 7, 8])
def test_powers_to_twice_the_digits(degree: float, sized: Callable[[], Precise]) -> None:
    """Quarters by a fourth root. Other degrees above 1 go by logarithms: 2e-22 was seen at 3.7, and
    1e-20 is enough, because ten such layers multiply it by less than 1e6."""
    found = power(sized(), degree)
    limit = EXACT if float(4 * degree).is_integer() else 1e-20
    assert worst(found, [x ** mpf(degree) for x in exactly()]) < limit


@pytest.mark.parametrize("degree", [0.6, 0.9, -0.4, -0.25])
def test_powers_below_1_shrink_errors_and_are_rounded(
    degree: float, sized: Callable[[], Precise]
) -> None:
    found = power(sized(), degree)
    assert worst(found, [x ** mpf(degree) for x in exactly()]) < 3e-16


def test_powers_of_the_ends(array: Callable[[Any], Any]) -> None:
    ends = as_precise(array([0.0, np.inf]))
    for degree in (0.6, 1.3, 1.5, 2.0):
        assert np.array_equal(plain(power(ends, degree)), [0.0, np.inf])
    assert np.array_equal(plain(power(ends, 0)), [1.0, 1.0])


@pytest.mark.parametrize("degree", [0.6, 1.3, 1.5, 3.0])
def test_derivatives_of_powers(degree: float) -> None:
    def f(t: float) -> jax.Array:
        return plain(power(normalised(as_precise(t)) * t, degree))  # t^(2p)

    p, t = 2 * degree, 1.7
    assert jax.grad(f)(t) == pytest.approx(p * t ** (p - 1), rel=1e-14, abs=0)
    assert jax.grad(jax.grad(f))(t) == pytest.approx(p * (p - 1) * t ** (p - 2), rel=1e-14, abs=0)
    assert jax.grad(f)(0.0) == 0


@pytest.mark.parametrize("degree", [0.6, 1.5, -0.4, 2.3])
def test_constants(degree: float) -> None:
    p = mpf(degree)
    moment = mpf(2) ** (p - 1) * gamma(p + 0.5) / sqrt(pi)
    high, low = tables.moment(degree)
    assert abs((mpf(high) + mpf(low)) / moment - 1) < EXACT
    if degree > 0:
        share = gamma((p + 1) / 2) / sqrt(2 * sqrt(pi) * gamma(p + 0.5))
        assert abs(mpf(tables.mean_share(degree)) / share - 1) < 2 * mpf(2) ** -53
        by_quadrature = mp.quad(lambda u: u**p * mp.npdf(u), [0, 1, 4, mp.inf])
        assert abs(share**2 * moment / by_quadrature**2 - 1) < 1e-20


def test_squared_lengths_of_inputs() -> None:
    x = np.random.default_rng(0).normal(size=(5, 7)) * 10.0 ** np.arange(-150, 151, 75)[:, None]
    square = geometry.prepare(jnp.asarray(x), centre=False, with_range=True).square
    exact = [sum(mpf(float(t)) ** 2 for t in row) / 7 for row in x]
    assert worst(square, exact) < EXACT
