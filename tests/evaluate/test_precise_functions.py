"""Functions of numbers with twice the digits, and the moments made of them, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus.forms import form_of
from lnkernel.calculus.polynomial import exact_squares
from lnkernel.evaluate.float64 import precise_functions as functions
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.closed import SERIES
from lnkernel.evaluate.float64.elementary import divided_difference
from lnkernel.evaluate.float64.own_moments import own_moments
from lnkernel.evaluate.float64.precise import Precise, normalised

mp.mp.dps = 50
ENOUGH = 1e-18  # relative errors: a hundredth of a unit in the last place


def exact(x: Precise) -> list[mp.mpf]:
    exponents = np.zeros(len(x.high), int) if x.exponent is None else np.asarray(x.exponent)
    parts = zip(np.asarray(x.high), np.asarray(x.low), exponents, strict=True)
    return [(mp.mpf(float(h)) + mp.mpf(float(low))) * mp.mpf(2) ** int(k) for h, low, k in parts]


def numbers(largest: float = 1.0, smallest: float = 1e-8) -> Precise:
    rng = np.random.default_rng(0)
    high = 10.0 ** rng.uniform(np.log10(smallest), np.log10(largest), 60)
    return Precise(high, high * 1e-17 * rng.uniform(-1, 1, 60))


def worst(f: Callable[[Precise], Precise], g: Callable[[Any], Any], x: Precise) -> float:
    pairs = zip(exact(f(x)), exact(x), strict=True)
    return max(float(abs(found / g(t) - 1)) for found, t in pairs)


WITH_ARRAYS = [
    ("numpy", lambda x: x),
    ("jax", lambda x: jax.tree.map(jnp.asarray, x)),
    ("exponents", normalised),
]


@pytest.mark.parametrize(("name", "made"), WITH_ARRAYS, ids=[name for name, _ in WITH_ARRAYS])
def test_functions(name: str, made: Callable[[Precise], Precise]) -> None:
    with jax.enable_x64(True):
        x, long = made(numbers()), made(numbers(600.0))
        assert worst(functions.arctangent, mp.atan, x) < ENOUGH
        assert worst(functions.root, mp.sqrt, long) < 1e-30
        assert (
            worst(
                lambda t: functions.ratio(t + 1.0, t * t + 3.0), lambda t: (1 + t) / (t * t + 3), x
            )
            < 1e-30
        )
        assert worst(functions.falling, lambda t: mp.exp(-t), long) < ENOUGH
        assert (
            worst(lambda t: functions.falling_and_fallen(t)[1], lambda t: -mp.expm1(-t), long)
            < ENOUGH
        )


def test_ends() -> None:
    with np.errstate(all="ignore"):
        zero = Precise(np.zeros(1), np.zeros(1))
        assert functions.ratio(zero, zero).high == 0 and functions.root(zero).high == 0
        assert functions.falling(Precise(np.array([1e9]), np.zeros(1))).high == 0


def by_hand(act: lnk.Elementwise, q: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """E phi², the variance and q E phi'²/E phi², by quadrature."""
    omega, phase = mp.mpf(1.3), mp.mpf(0.4)
    phi, slope = {
        "Erf": (mp.erf, lambda u: 2 / mp.sqrt(mp.pi) * mp.exp(-u * u)),
        "Gelu": (lambda u: u * mp.ncdf(u), lambda u: mp.ncdf(u) + u * mp.npdf(u)),
        "Gaussian": (lambda u: mp.exp(-u * u), lambda u: -2 * u * mp.exp(-u * u)),
        "Sin": (
            lambda u: mp.sin(omega * u + phase),
            lambda u: omega * mp.cos(omega * u + phase),
        ),
    }[type(act).__name__]
    r = mp.sqrt(q)

    def mean(f: Callable[[Any], Any]) -> Any:
        return mp.quad(lambda t: f(r * t) * mp.npdf(t), [-14, -6, -2, 0, 2, 6, 14])

    square, slopes = mean(lambda u: phi(u) ** 2), mean(lambda u: slope(u) ** 2)
    return square, square - mean(phi) ** 2, q * slopes / square


@pytest.mark.parametrize(
    "act", [lnk.Erf(), lnk.Gelu(), lnk.Gaussian(), lnk.Sin(1.3, 0.4)], ids=repr
)
def test_moments_of_one_input(act: lnk.Elementwise) -> None:
    form = form_of(act, EagerFloat64())
    assert form is not None
    # the sine and the cosine of a phase are float64 numbers, with the rounding errors of these
    enough = 2e-16 if isinstance(act, lnk.Sin) else ENOUGH
    for q in (0.03, 1.7):
        with mp.workdps(24):
            wanted = by_hand(act, mp.mpf(q))
        found = own_moments(form, Precise(np.array([q]), np.zeros(1)))
        assert found is not None
        for number, value in zip(found, wanted, strict=True):
            assert abs(exact(number)[0] / value - 1) < enough


def test_a_wrong_moment_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths of pairs come from it, and an error of 1e-13 shows."""
    monkeypatch.setattr(functions, "HALVINGS", 0)  # the series of the arctangent is too short then
    found = functions.arctangent(numbers(1.0, 0.3))
    assert (
        max(
            float(abs(a / mp.atan(b) - 1))
            for a, b in zip(exact(found), exact(numbers(1.0, 0.3)), strict=True)
        )
        > 1e-6
    )


def test_squares_behind_a_polynomial() -> None:
    """(0.3 - u + u²/2 + u³/5)², by the moments 1, q, 3q², 15q³ of a Gaussian."""
    c, q = [mp.mpf(v) for v in (0.3, -1.0, 0.5, 0.2)], mp.mpf(1.7)
    moment = {0: mp.mpf(1), 2: q, 4: 3 * q**2, 6: 15 * q**3}
    square = sum(
        a * b * moment[i + j] for i, a in enumerate(c) for j, b in enumerate(c) if (i + j) % 2 == 0
    )
    mean = c[0] + c[2] * q
    one = Precise(np.array([1.7]), np.zeros(1))
    found = exact_squares(EagerFloat64(), (0.3, -1.0, 0.5, 0.2), one, 6)
    assert found is not None
    for number, value in zip(found, (square / 6, (square - mean**2) / 6), strict=True):
        assert abs(exact(number)[0] / value - 1) < 1e-29


def test_divided_difference() -> None:
    """(p(x) - p(y))/(x - y), also where x = y and where they agree in most digits."""
    for x, y in ((0.2, 0.1), (0.2, 0.2), (0.2, 0.2 * (1 + 1e-12)), (0.0, 0.25)):
        wanted = sum(
            mp.mpf(c) * sum(mp.mpf(x) ** i * mp.mpf(y) ** (n - 1 - i) for i in range(n))
            for n, c in enumerate(SERIES)
        )
        found = divided_difference(SERIES, np.array(x), np.array(y))
        assert abs(mp.mpf(float(found)) / wanted - 1) < 1e-15
    assert float(divided_difference((1.0, 2.0, 3.0), np.array(2.0), np.array(5.0))) == 2 + 3 * 7


def test_difference_of_arcsine_ratios() -> None:
    """asin(s)/s at two sines that are close, both small, both large, and far apart."""
    from lnkernel.calculus.elementary import arcsine_ratio_gap

    def ratio(s: Any) -> Any:
        return mp.asin(s) / s

    for one, other in ((0.3, 0.3 - 1e-9), (0.3, 0.01), (0.9, 0.9 - 1e-9), (0.9, 0.2)):
        gap = mp.mpf(one) - mp.mpf(other)
        wanted = ratio(mp.mpf(one)) - ratio(mp.mpf(other))
        turned = mp.asin(mp.mpf(one)) - mp.asin(mp.mpf(other)) - ratio(mp.mpf(other)) * gap
        given = [np.array(float(v)) for v in (one, other, gap, turned / one, wanted)]
        found = arcsine_ratio_gap(EagerFloat64(), *given)
        assert abs(mp.mpf(float(found)) / wanted - 1) < 1e-14
