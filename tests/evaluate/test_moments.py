"""Moments of analytic activations at lengths from 1e-150 to 1e150, against 40 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import smooth_oracle
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.float64.asymptotes import Asymptotes, Line, asymptotes_of
from lnkernel.evaluate.float64.functions import Function, function_of
from lnkernel.evaluate.float64.moments import (
    Moments,
    by_quadrature,
    moments_at,
    moments_of,
    moments_rule,
)

LENGTHS = np.array([1e-150, 1e-70, 1e-8, 1e-3, 0.3, 0.9, 1.0, 1.2, 4.0, 30.0, 1e3, 1e8, 1e150])
FAMILIES = [
    *(lnk.Gelu(), lnk.Gelu(approximate=True), lnk.Silu(2.0), lnk.Silu(-1.0), lnk.Tanh()),
    *(lnk.Sigmoid(), lnk.Softplus(), lnk.Sin(1.5, 0.4), lnk.Cos(1.2), lnk.Gaussian()),
]


def errors(found: Moments, exact: Moments) -> list[float]:
    """Relative ones; of the mean relative to the root of E phi²."""
    scales = [mp.sqrt(exact.square), *exact[1:]]
    return [
        float(abs(mpf(float(x)) - y) / scale)
        for x, y, scale in zip(found, exact, scales, strict=True)
    ]


def closed_erf(q: mpf) -> Moments:
    square = 2 / mp.pi * mp.atan2(2 * q, mp.sqrt(1 + 4 * q))
    slopes = 4 / mp.pi / mp.sqrt(1 + 4 * q)
    return Moments(mpf(0), square, square, slopes, q * slopes / (1 + 4 * q))


def closed_gaussian(q: mpf) -> Moments:
    d, mean = 1 + 4 * q, 1 / mp.sqrt(1 + 2 * q)
    square = 1 / mp.sqrt(d)
    slopes = 4 * q * d ** mpf(-1.5)
    return Moments(mean, square, square - mean**2, slopes, 12 * q * q * d ** mpf(-2.5))


def closed_gelu(q: mpf) -> Moments:
    s, d = 1 + q, 1 + 2 * q
    root, angle = mp.sqrt(d), mp.atan2(mp.sqrt(1 + 2 * q), -q)
    square = (q * angle + (q / s) ** 2 * (1 + d) / root) / (2 * mp.pi)
    slopes = (angle + q / root * (1 / d + 2 / s)) / (2 * mp.pi)
    cross = (q * q * d + q * q * (s + d)) / (2 * mp.pi * s * s * root**3)
    euler = square + 2 * cross + 3 * q * q / (2 * mp.pi * root**5)
    mean = q / mp.sqrt(2 * mp.pi * s)
    return Moments(mean, square, square - mean**2, slopes, euler)


@pytest.mark.parametrize(
    ("act", "closed"),
    [
        (lnk.Erf(), closed_erf),
        (lnk.Gaussian(), closed_gaussian),
        (lnk.Gelu(), closed_gelu),
    ],
    ids=["erf", "gaussian", "gelu"],
)
def test_closed_forms_at_all_lengths(act: lnk.Smooth, closed: Callable[[mpf], Moments]) -> None:
    lengths = LENGTHS[1:] if isinstance(act, lnk.Gaussian) else LENGTHS  # r⁴ = 1e-600 is no float64
    found = moments_at(act, lengths)
    with mp.workdps(700):
        for number, length in enumerate(lengths):
            exact = closed(mpf(float(length)) ** 2)
            here = Moments(*(part[number] for part in found))
            assert max(errors(here, exact)) < (2e-15 if length > 1e-100 else 1e-6), length


@pytest.mark.parametrize("act", FAMILIES, ids=repr)
def test_against_forty_digits(act: lnk.Smooth) -> None:
    with mp.workdps(40):
        for r in (1e-3, 0.7, 1.5, 9.0):
            q = mpf(r) ** 2
            exact = smooth_oracle.expectations(act, q, q, mpf(1))
            variance = exact.product - exact.mean**2
            known = Moments(exact.mean, exact.product, variance, exact.slopes, exact.euler)
            assert max(errors(moments_of(act, r), known)) < 3e-15, r


@pytest.mark.parametrize(
    ("act", "slopes"),
    [(lnk.Tanh(), 4 / 3), (lnk.Erf(), 2 * math.sqrt(2 / math.pi)), (lnk.Sigmoid(), 1 / 6)],
    ids=repr,
)
def test_saturation(act: lnk.Smooth, slopes: float) -> None:
    """E phi'² ~ (∫ phi'²)/(r √(2π)): 0.5319/r for tanh."""
    found = moments_of(act, 1e100)
    assert found.slopes * 1e100 == pytest.approx(slopes / math.sqrt(2 * math.pi), rel=2e-15)


def test_kinks() -> None:
    """clip(u, -1, 2) by its two kinks; without them the quadrature is off."""
    clip = Function(0.0, lambda u: jnp.clip(u, -1.0, 2.0))
    lines = Asymptotes(Line(0.0, -1.0), Line(0.0, 2.0), 3.1)  # no panel ends at a kink by chance
    aware, blind = (
        jax.jit(partial(by_quadrature, clip, lines, kinks=kinks)) for kinks in ((-1.0, 2.0), ())
    )
    with jax.enable_x64(True), mp.workdps(30):
        for r in (0.2, 1.0, 50.0):
            inside = float(mp.ncdf(2 / mpf(r)) - mp.ncdf(-1 / mpf(r)))
            assert float(aware(jnp.asarray(r)).slopes) == pytest.approx(inside, rel=1e-15, abs=0)
        inside = float(mp.ncdf(2) - mp.ncdf(-1))
        assert float(blind(jnp.asarray(1.0)).slopes) != pytest.approx(inside, rel=1e-6)


def test_derivatives() -> None:
    """By the length, also through the change from phi - phi(0) to phi."""
    with jax.enable_x64(True):
        for act in (lnk.Softplus(2.0), lnk.Sin(1.5, 0.4)):
            rule = moments_rule(act)
            assert rule is not None
            variance = jax.jit(jax.value_and_grad(lambda r, rule=rule: rule(r).variance))
            for r in (0.5, 1.3):
                h = 1e-5 * r
                ends = [float(variance(jnp.asarray(r + side))[0]) for side in (h, -h)]
                slope = float(variance(jnp.asarray(r))[1])
                assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7)


@pytest.mark.parametrize("act", [lnk.Gelu(), lnk.Silu(-2.0), lnk.Tanh(), lnk.Gaussian()], ids=repr)
def test_asymptotes(act: lnk.Smooth) -> None:
    """Beyond its reach the function is its lines."""
    lines, phi = asymptotes_of(act), function_of(act)
    assert lines is not None
    with jax.enable_x64(True):
        for line, side in ((lines.right, 1.0), (lines.left, -1.0)):
            u = jnp.asarray(side * float(lines.reach))
            assert float(phi(u)) == pytest.approx(float(line.slope * u + line.level), abs=1e-17)


def test_softplus_far_to_the_left() -> None:
    """phi - phi(0) is -log 2 there, without the digits that v/2 + log cosh(v/2) loses."""
    with jax.enable_x64(True):
        assert float(function_of(lnk.Softplus()).rest(jnp.asarray(-3e7))) == -math.log(2)
