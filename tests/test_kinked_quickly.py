"""Closed forms of pairs of activations with kinks: against 40 digits, integrals, and that nothing is compiled."""

from __future__ import annotations

import kinked_oracle
import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.float64.closed_pairs import closed_pair, own_numbers
from lnkernel.gram import eager

RNG = np.random.default_rng(8)
CLIPS = [lnk.Clip(), lnk.Clip(0.0, 6.0), lnk.Clip(0.5, 2.0), lnk.Clip(-3.0, -0.2)]
ALL: list[lnk.Piecewise] = [*CLIPS, lnk.Elu(), lnk.Elu(0.3), lnk.Selu()]
X = RNG.normal(size=(100, 10))
COUNT = 5


@pytest.mark.parametrize("layer", ALL, ids=repr)
def test_expectations(layer: lnk.Piecewise) -> None:
    """Lengths from 0.1 to 10, cosines up to 0.99 on both sides; relative to the same of equal inputs."""
    lengths = 10.0 ** RNG.uniform(-1, 1, size=(2, COUNT))
    lengths[1, :2] = lengths[0, :2]
    small = 2.0 ** -RNG.uniform(1, 8, size=COUNT)
    w = np.where(np.arange(COUNT) % 2, small, 1 - small)
    form = closed_pair(layer)
    assert form is not None
    one, two = (own_numbers(layer, form, r) for r in lengths)
    found = form.of_pair(one, two, w, 1 - w, lengths.max())
    made = found.product, found.slopes, found.euler()
    assert found.sure.all()
    for k in range(COUNT):
        with mp.workdps(40 if isinstance(layer, lnk.Clip) else 110):
            q1, q2 = (mpf(r[k]) ** 2 for r in lengths)
            exact = kinked_oracle.FUNCTIONS[type(layer).__name__](layer, q1, q2, 1 - 2 * mpf(w[k]))
        own = one.moments, two.moments
        squares, slopes = (np.sqrt(own[0][n][k] * own[1][n][k]) for n in (1, 3))
        assert abs(made[0][k] - exact.product) < 5e-14 * squares
        assert abs(made[1][k] - exact.slopes) < 1e-14 * slopes
        assert abs(made[2][k] - exact.euler) < 5e-14 * squares
        assert abs(own[0].mean[k] - exact.mean) < 1e-15 * np.sqrt(own[0].square[k])


@pytest.mark.parametrize("length", [2.0, 6.0, 24.0, 64.0, 128.0])
def test_enough_directions(length: float) -> None:
    """E phi' phi' at the largest lengths for so many directions, of which 32 left 2e-13 at a length of 12. Given u,
    v is Gaussian, and one integral is left."""
    form, r, w = closed_pair(lnk.Elu()), np.array([length]), np.array([2.0**-8])
    assert form is not None
    one = own_numbers(lnk.Elu(), form, r)
    found = form.of_pair(one, one, w, 1 - w, length)
    with mp.workdps(30):
        rho = 1 - 2 * mpf(w[0])
        s = mpf(length) * mpmath.sqrt(1 - rho * rho)

        def given(x: mpf) -> mpf:
            u = mpf(length) * x
            slope = mpf(1) if u > 0 else mpmath.exp(u)
            centre = rho * u
            below = mpmath.exp(centre + s * s / 2) * mpmath.ncdf(-(centre + s * s) / s)
            return slope * (mpmath.ncdf(centre / s) + below) * mpmath.npdf(x)

        exact = mpmath.quad(given, [-12, -3, -1, -0.3, -0.1, -0.03, 0, 0.03, 0.1, 0.3, 1, 3, 12])
    assert float(abs(found.slopes[0] - exact)) < 3e-15


@pytest.mark.parametrize("short", [1e-2, 1e-3, 1e-12])
def test_a_short_and_a_long_input(short: float) -> None:
    """Of lengths that differ much the closed form of ELU would cancel."""
    arch = lnk.serial(lnk.Dense(8), lnk.Elu(), lnk.Dense(1))
    x, x2 = np.array([1.0, 0.0, 0.0]), short * np.array([0.6, 0.8, 0.0])
    exact, found = oracle.pair(arch, x, x2, dps=30), lnk.kernels(arch)([x, x2])
    assert abs(found.ntk[0, 1] - exact.Theta) < 1e-15 * exact.Theta_scale
    assert abs(found.nngp[0, 1] - exact.K) < 1e-15 * exact.K_scale


@pytest.mark.parametrize("layer", ALL, ids=repr)
def test_networks(layer: lnk.Piecewise, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 points no pair asks for care, so that nothing is compiled."""
    norm = lnk.LayerNorm(0.1, scale=True, bias=True)
    arch = lnk.serial(*(lnk.Dense(8, 1.3, 0.3), layer) * 2, norm, lnk.Dense(8), layer, lnk.Dense(1))
    monkeypatch.setattr(eager, "by_program", None)
    found = lnk.kernels(arch)(X)
    exact = oracle.pair(arch, X[0], X[1], dps=20)
    assert abs(found.ntk[0, 1] - exact.Theta) < 2e-14 * exact.Theta_scale
    assert abs(found.nngp[0, 1] - exact.K) < 2e-14 * exact.K_scale


def test_nearly_parallel_pairs_are_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those alone, and those with an input that is too long."""
    asked = list[tuple[int, int]]()

    def note(
        program: object, one: object, two: object, rows: np.ndarray, columns: np.ndarray
    ) -> object:
        asked.extend(zip(rows.tolist(), columns.tolist(), strict=True))
        return iter([(rows, columns, [np.zeros(len(rows))])])

    monkeypatch.setattr(eager, "by_program", note)
    points = np.concatenate([X[:3], X[:1] + 1e-9, -X[1:2], 1e5 * X[3:4]])
    lnk.ntk(lnk.mlp(hidden=1, activation=lnk.Clip()))(points)
    assert asked == [(0, 3), (0, 5), (1, 4), (1, 5), (2, 5), (3, 5), (4, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("layer", ALL, ids=repr)
def test_against_integrals(layer: lnk.Piecewise, size: float) -> None:
    """Five layers, all pairs of some points; and the program of large matrices."""
    arch = lnk.mlp(hidden=5, activation=layer, W_std=1.4, b_std=0.2)
    both, few = lnk.kernels(arch), size * X[:12]
    found = both(few)
    with eager.without_numpy():
        integrals = both(few)  # so few pairs are all computed with care
        compiled = both(size * X[:60])
    for made, exact, many in zip(found, integrals, compiled, strict=True):
        root = np.sqrt(np.diagonal(exact))
        assert (np.abs(made - exact) / root / root[:, None]).max() < 1e-13
        assert (np.abs(many[:12, :12] - exact) / root / root[:, None]).max() < 1e-13
