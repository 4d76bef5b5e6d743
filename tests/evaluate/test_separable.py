"""Products of numbers of single inputs, against the Hermite series that they replace, and against NumPy's way."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64 import hermite, on_diagonal, separable
from lnkernel.evaluate.float64.choice import choice_for
from lnkernel.evaluate.float64.elementary import arctangent_ratio
from lnkernel.evaluate.float64.hermite_features import features
from lnkernel.evaluate.float64.separated import euler_table, image_table

pytestmark = pytest.mark.usefixtures("programs_for_all_but_few")

RNG = np.random.default_rng(0)
ACTIVATIONS = [lnk.Silu(), lnk.Tanh(), lnk.Softplus()]


@pytest.mark.parametrize("act", ACTIVATIONS, ids=repr)
def test_sums_of_products(act: lnk.Smooth) -> None:
    """And their slopes, at all lengths from nearly 0, with long numbers on the other side."""
    choice = choice_for(act, 1.5)
    assert choice is not None and choice.longest is not None
    table = image_table(act, choice.terms, choice.longest)
    assert table is not None
    r1, r2 = RNG.uniform(0, choice.longest, (2, 24))
    r1[:3] = 1e-6
    rho = np.cos(RNG.uniform(0.1, np.pi - 0.1, (24, 24)))
    sides = table.at(r1[:, None])[1], table.at(r2[None, :])[1]
    value, slope = separable.sum_products(*sides, rho, 2 * rho**2 - 1)
    one, two = features(act, r1[:, None], choice.terms), features(act, r2[None, :], choice.terms)
    products = (one.unit / one.rest * (two.unit / two.rest)).astype(np.longdouble)
    products[0] = 0
    n, c = np.arange(choice.terms)[:, None, None], rho.astype(np.longdouble)
    assert np.abs(value - (products * c**n).sum(axis=0)).max() < 5e-15
    exact = (n * products * c ** np.maximum(n - 1, 0)).sum(axis=0)
    assert np.abs(slope - exact).max() < 2e-14
    eulers = euler_table(act, choice.terms, choice.longest)
    sides = eulers.at(r1[:, None])[1], eulers.at(r2[None, :])[1]
    value, _ = separable.sum_products(*sides, rho, 2 * rho**2 - 1)
    products = (one.euler * two.euler).astype(np.longdouble)
    assert np.abs(value - (products * c**n).sum(axis=0)).max() < 1e-14


def test_features_that_no_table_tells() -> None:
    """A series whose terms do not fall, beside one whose terms do."""
    assert not separable.is_told(np.ones((4096, separable.NODES)) / 4096**0.5)
    assert separable.is_told(0.5 ** np.arange(512)[:, None] * np.ones((1, separable.NODES)))


@pytest.mark.parametrize("shapes", [((40,), (40,)), ((5, 1), (1, 8)), ((), ())])
def test_careful_sums_without_a_loop(
    shapes: tuple[tuple[int, ...], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same digits of all angles, of tiny ones too, as by the loop over the Hermite polynomials."""
    w = 10.0 ** -RNG.uniform(0.1, 26, 40)
    w[::2] = 1 - w[::2]
    z = np.where(w < 0.5, 1 - w, 10.0 ** -RNG.uniform(0.1, 26, 40))
    w, z = (v.reshape((5, 8) if shapes[0] == (5, 1) else (40,)) for v in (w, z))
    r1, r2 = (np.asarray(RNG.uniform(0.2, 1.0, shape)) for shape in shapes)
    one, two = (features(lnk.Silu(), r, 128) for r in (r1, r2))
    cov = Covariance(Length(r1 * r1), Length(r2 * r2), w, z, z - w, None)
    at_once = jax.tree.leaves(hermite._sum_carefully(one, two, cov))
    monkeypatch.setattr(hermite, "AT_ONCE", 0)
    loop = jax.tree.leaves(hermite._sum_carefully(one, two, cov))
    cosines = (0, 1, 2, 5, 8)  # and their slopes, which may cancel; w and z may not
    for place, (found, expected) in enumerate(zip(at_once, loop, strict=True)):
        assert np.shape(found) == np.shape(expected)
        atol = 4e-15 if place in cosines else 0.0
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=atol)


def test_longer_vectors_are_no_numbers() -> None:
    found = image_table(lnk.Silu(), 128, 1.0)
    assert found is not None
    (size, *_), _ = found.at(np.array([[0.5, 1.0, 1.01]]))
    assert np.isfinite(size).tolist() == [[True, True, False]]


def test_moments_of_many_inputs() -> None:
    """By interpolation, and beyond the longest one as those of few."""
    r = np.concatenate([RNG.uniform(0, 2, 50), [1e-60, 2.5]])
    for act in ACTIVATIONS:
        many = on_diagonal._moments_of_many(act, 2.0, r)
        for found, exact in zip(many, on_diagonal.moments_at(act, r), strict=True):
            np.testing.assert_allclose(found, exact, rtol=4e-15, atol=1e-16)


def test_arctangent() -> None:
    t = np.linspace(0, 1, 1001)[1:].astype(np.longdouble)
    assert np.abs(arctangent_ratio((t * t).astype(float)) * t / np.arctan(t) - 1).max() < 6e-16


@pytest.mark.parametrize("scale", [False, True])
def test_matrix_of_many_points(scale: bool) -> None:
    """Compiled, beside the same pairs by NumPy, which sums Hermite series; with a trainable scale before SiLU."""
    norm = lnk.LayerNorm(0.3, scale=scale)
    arch = lnk.serial(
        lnk.Dense(8), norm, lnk.Silu(), lnk.Dense(8, b_std=0.2), lnk.Softplus(), lnk.Dense(1)
    )
    x = RNG.normal(size=(130, 4)) * RNG.uniform(0.01, 2, (130, 1))
    x[3], x[4] = x[5] * (1 + 1e-9), -x[5]
    theta = lnk.ntk(arch)
    few = np.arange(16)  # no more: NumPy would take products too
    ends = np.sqrt(theta.diagonal(x[few]))
    apart = np.abs(theta(x)[np.ix_(few, few)] - theta(x[few])) / np.outer(ends, ends)
    assert apart.max() < 1e-14
