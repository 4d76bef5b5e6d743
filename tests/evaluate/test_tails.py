"""The Gaussian expectations in float64 against mpmath's hypergeometric function and quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.evaluate.float64 import tables
from lnkernel.evaluate.float64.spherical import spherical
from lnkernel.evaluate.float64.tails import tails

SMALL = [1e-100, 1e-50, 1e-30, 1e-20, 1e-15, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
M = np.array([*SMALL, *np.linspace(0.02, 0.5, 25)])
DEGREES = [1, 2, 3, 5, 0.51, 0.6, 0.75, 0.9, 1.25, 1.5 - 1e-9, 1.5, 1.5 + 1e-9, 1.6, 2.5, 3.5, 6.25]


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True), mp.workdps(40):
        yield


def F(p: float, z: mp.mpf) -> mp.mpf:
    """E[u_+^p v_+^p]/E[u_+^2p] at correlation 2z - 1, by the hypergeometric series in z."""
    s = mp.mpf(p) + mp.mpf(1) / 2
    scale = mp.gamma(s + 1) * mp.gamma(s) / mp.gamma(s + mp.mpf(1) / 2) ** 2
    return z**s * mp.hyp2f1(0.5, 0.5, s + 1, z) / scale


def relative_error(value: float, exact: mp.mpf) -> float:
    return abs(float((mp.mpf(float(value)) - exact) / exact))


@pytest.mark.parametrize("p", [0.75, 1, 2.5])
@pytest.mark.parametrize("rho", [-0.6, 0.3])
def test_the_series_is_the_expectation(p: float, rho: float):
    """In polar coordinates E[u_+^p v_+^p] is an integral over the angle where both are positive."""
    theta = mp.acos(mp.mpf(rho))
    angle = mp.quad(
        lambda t: (mp.cos(t) * mp.cos(theta - t)) ** mp.mpf(p), [theta - mp.pi / 2, mp.pi / 2]
    )
    radius = mp.mpf(2) ** p * mp.gamma(p + 1)  # E r^2p for the Rayleigh distribution
    unit = mp.mpf(2) ** (p - 1) * mp.gamma(mp.mpf(p) + 0.5) / mp.sqrt(mp.pi)
    exact = radius * angle / (2 * mp.pi) / unit
    assert abs(F(p, (1 + mp.mpf(rho)) / 2) / exact - 1) < 1e-15


@pytest.mark.parametrize("p", DEGREES)
def test_tails_of_every_degree(p: float):
    """`far`, `gap` relatively; the slopes, which enter as factors of order 1, absolutely.

    `far` of other degrees is exp(s log m), which loses |s log m| roundings: as many as its
    own smallness, so that nothing of it is seen next to numbers of order 1.
    """
    values = tails(p, jnp.asarray(M))
    for i, m in enumerate(M):
        with mp.workdps(250 if m < 1e-6 else 40):  # 1 - F cancels
            m = mp.mpf(m)
            far, gap = F(p, m), 1 - F(p, 1 - m)
            far_slope, near_slope = F(p - 1, m), F(p - 1, 1 - m)
            assert relative_error(values.gap[i], gap) < 2e-15
            if far > 1e-290:
                lost = 0.0 if float(p).is_integer() else 4e-16 * abs(mp.log(far))
                assert relative_error(values.far[i], far) < max(lost, 2e-15)
            assert abs(float(values.far_slope[i]) - far_slope) < 5e-16
            assert abs(float(values.near_slope[i]) - near_slope) < 5e-16


def test_tails_at_equal_inputs():
    for p in DEGREES:
        far, gap, far_slope, near_slope = tails(p, jnp.zeros(1))
        assert far[0] < 1e-290 and gap[0] == 0.0
        assert far_slope[0] == 0.0 and near_slope[0] == 1.0


@pytest.mark.parametrize("p", [1, 2, 3])
def test_elementary_forms(p: int):
    """Cho and Saul 2009: 2 pi f_p in sines and cosines."""
    theta = np.linspace(0.2, 3.0, 15)
    t, s, c = np.pi - theta, np.sin(theta), np.cos(theta)
    forms = {
        1: s + t * c,
        2: 3 * s * c + t * (1 + 2 * c**2),
        3: 15 * s - 11 * s**3 + t * (9 * c + 6 * c**3),
    }
    moment = {1: 0.5, 2: 1.5, 3: 7.5}[p]
    m = jnp.asarray(np.minimum(np.sin(theta / 2) ** 2, np.cos(theta / 2) ** 2))
    far, gap, *_ = tails(p, m)
    mine = np.where(theta < np.pi / 2, 1 - gap, far)
    np.testing.assert_allclose(mine, forms[p] / (2 * np.pi * moment), atol=2e-15)


@pytest.mark.parametrize("p", [0.75, 1, 1.5, 2, 2.5])
def test_derivative_is_prices_theorem(p: float):
    """dF_p/d rho = p^2/(2p - 1) F_{p-1}, and d rho = -2 dm on the near side."""
    for m in (1e-3, 0.1, 0.4):
        slope = jax.grad(lambda m: tails(p, m).gap)(m)
        expected = 2 * p**2 / (2 * p - 1) * tails(p, jnp.asarray(m)).near_slope
        np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize("nu", [1, 3, 4, 5, 7, 8, 12, 15, 16, 31, 64, 200, 999])
def test_spherical_kernel(nu: int):
    values = spherical(nu, jnp.asarray(M))
    for i, m in enumerate(M):
        with mp.workdps(130):
            factor = mp.mpf(2) / nu * (mp.gamma(mp.mpf(nu + 1) / 2) / mp.gamma(mp.mpf(nu) / 2)) ** 2
            rho = 1 - 2 * mp.mpf(m)
            kappa = factor * rho * mp.hyp2f1(0.5, 0.5, mp.mpf(nu) / 2 + 1, rho**2)
            assert relative_error(values.gap[i], 1 - kappa) < 2e-15
            assert abs(float(values.value[i]) - kappa) < 3e-16
            if nu > 1:
                slope = factor * mp.hyp2f1(0.5, 1.5, mp.mpf(nu) / 2 + 1, rho**2)
                assert relative_error(values.slope[i], slope) < 2e-15


def test_groups_of_one_degree_of_freedom_pass_no_derivative():
    assert spherical(1, jnp.asarray([0.0, 0.2])).slope.tolist() == [0.0, 0.0]


def test_tables_are_as_short_as_they_can_be():
    assert len(tables.far_factor(0)) <= 21
    assert len(tables.far_factor(1)) <= 19


def test_compiling_is_silent(capfd: pytest.CaptureFixture[str]):
    """XLA complains on the standard error about chains of more than 50 dependent steps."""
    network = lnk.serial(lnk.Dense(8), lnk.GroupNorm(6), lnk.Dense(1))
    lnk.ntk(network)(np.arange(11.0)[:, None])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("p", [1, 2, 3])
def test_derivatives_of_integer_degrees(p: int):
    """The first two, where they are finite; by mpmath's own differentiation of the series."""
    for m in (1e-12, 1e-3, 0.2, 0.45):
        for number, exact in ((0, lambda z: F(p, z)), (2, lambda z: F(p - 1, z))):  # far, far_slope
            first = jax.grad(lambda v, number=number: tails(p, v)[number])
            for order, slope in ((1, first), (2, jax.grad(first))):
                wanted = mp.diff(exact, mp.mpf(m), order, h=mp.mpf(m) * mp.mpf(10) ** -12)
                assert relative_error(slope(m), wanted) < 4e-15, (m, number, order)
