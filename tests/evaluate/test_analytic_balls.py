"""Balls of activations without a closed form: they hold numbers of 40 to 50 digits, and what is wrong is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import oracle
import pytest
import smooth_oracle
from flint import acb, arb
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.balls import at_length as lengths
from lnkernel.evaluate.balls import entries, features, integrals, pair_series
from lnkernel.evaluate.balls.analytic import analytic_of
from lnkernel.evaluate.balls.arithmetic import exactly
from lnkernel.evaluate.balls.at_length import AtLength, at_length
from lnkernel.evaluate.balls.numbers import BITS, working_precision

LAYERS = (
    lnk.Tanh(),
    lnk.Sigmoid(),
    lnk.Silu(),
    lnk.Silu(-1.5),
    lnk.Softplus(2.0),
    lnk.Gelu(approximate=True),
)
layers = pytest.mark.parametrize("layer", LAYERS, ids=repr)


@pytest.fixture(autouse=True)
def digits():
    lengths._build_once.cache_clear()
    with mp.workdps(60), working_precision(BITS):
        yield


def as_mpf(ball: arb) -> mpf:
    """The midpoint of a ball, exactly."""
    mantissa, exponent = ball.mid().man_exp()
    return mpf(int(mantissa)) * mpf(2) ** int(exponent)


def holds(ball: arb, number: mpf, slack: float = 0.0) -> bool:
    """Whether the number is in the ball, but for the error of the number itself."""
    return abs(as_mpf(ball) - number) <= as_mpf(ball.rad()) + slack


def functions(layer: lnk.Smooth) -> tuple[Callable[[mpf], mpf], Callable[[mpf], mpf]]:
    """phi and phi' by the textbook."""

    def logistic(v: mpf) -> mpf:
        return 1 / (1 + mpmath.exp(-v))

    name = type(layer).__name__
    if name == "Tanh":
        return mpmath.tanh, lambda u: 1 - mpmath.tanh(u) ** 2
    if name == "Sigmoid":
        return logistic, lambda u: logistic(u) * (1 - logistic(u))
    if name == "Silu":
        b = mpf(layer.beta)
        return (
            lambda u: u * logistic(b * u),
            lambda u: logistic(b * u) * (1 + b * u * (1 - logistic(b * u))),
        )
    if name == "Softplus":
        b = mpf(layer.beta)
        return lambda u: mpmath.log(1 + mpmath.exp(b * u)) / b, lambda u: logistic(b * u)
    c, k = mpmath.sqrt(2 / mp.pi), mpf(0.044715)

    def share(u: mpf) -> mpf:
        """(1 + tanh v)/2."""
        return logistic(2 * c * (u + k * u**3))

    def derivative(u: mpf) -> mpf:
        return share(u) * (1 + 2 * u * (1 - share(u)) * c * (1 + 3 * k * u * u))

    return lambda u: u * share(u), derivative


def expectation(function: Callable[[mpf], mpf]) -> mpf:
    """An expectation over a unit Gaussian, by mpmath's quadrature, to 50 digits."""
    places = [-16, -8, -4, -2, 0, 2, 4, 8, 16]
    total = mp.quad(lambda u: function(u) * mpmath.exp(-u * u / 2), places)
    return total / mpmath.sqrt(2 * mp.pi)


def parts(layer: lnk.Smooth, r: float) -> list[AtLength]:
    phi, q = analytic_of(layer), arb(r) * arb(r)
    kinds = [odd for odd, curve in ((True, phi.odd), (False, phi.even)) if curve is not None]
    return [at_length(layer, odd, q, BITS) for odd in kinds]


def moments_of(layer: lnk.Smooth, r: float) -> list[arb]:
    """E phi, E phi², r² E phi'², E (u phi')² of the whole activation, from its parts."""
    phi, found = analytic_of(layer), [side.moments for side in parts(layer, r)]
    mean = sum((each.mean for each in found), phi.at_zero)
    line = phi.linear * phi.linear * arb(r) * arb(r)
    variances = sum((each.square - each.mean * each.mean for each in found), line)
    slope, euler = (sum((getattr(m, name) for m in found), line) for name in ("slope", "euler"))
    return [mean, variances + mean * mean, slope, euler]


@pytest.mark.parametrize("layer", (lnk.Tanh(), lnk.Softplus(2.0)), ids=repr)
def test_moments_hold_quadratures_of_50_digits(layer: lnk.Smooth) -> None:
    phi, derivative = functions(layer)
    exact = (
        expectation(phi),
        expectation(lambda u: phi(u) ** 2),
        expectation(lambda u: derivative(u) ** 2),
        expectation(lambda u: (u * derivative(u)) ** 2),
    )
    for ball, number in zip(moments_of(layer, 1.0), exact, strict=True):
        assert holds(ball, number, 1e-50)
        assert as_mpf(ball.rad()) < 1e-37


@layers
@pytest.mark.parametrize("r", (1e-3, 1.0, 2.5))
def test_moments_at_all_lengths(layer: lnk.Smooth, r: float) -> None:
    """Against another quadrature, of 36 to 40 digits: the fewest for tanh', whose poles are the closest."""
    exact = smooth_oracle.expectations(layer, mpf(r) ** 2, mpf(r) ** 2, mpf(1))
    numbers = exact.mean, exact.product, mpf(r) ** 2 * exact.slopes, exact.euler
    for ball, number in zip(moments_of(layer, r), numbers, strict=True):
        assert holds(ball, number, 1e-35)
        assert as_mpf(ball.rad()) <= 1e-35 * abs(number) + 1e-50


def test_a_forgotten_tail_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integrals over [0, 6] alone miss 1e-9, which the bound of the tail covers."""
    exact = smooth_oracle.expectations(lnk.Silu(), mpf(1), mpf(1), mpf(1))
    curve = analytic_of(lnk.Silu()).even
    monkeypatch.setattr(integrals, "_end", lambda: arb(6))
    even = exact.product - mpf(1) / 4  # less the square of u/2
    with_tail = integrals.moments(curve, arb(1), True)
    assert holds(with_tail.square, even) and float(with_tail.square.rad()) < 1e-6
    monkeypatch.setattr(integrals, "tail", lambda power: arb(0))
    assert not holds(integrals.moments(curve, arb(1), True).square, even)


@layers
def test_hermite_features(layer: lnk.Smooth) -> None:
    """E phi(u) h_n(u), by sums over many nodes in 60 digits."""
    phi, _ = functions(layer)
    nodes = [mpf(k) / 24 for k in range(-24 * 24, 24 * 24 + 1)]
    values = [phi(u) * mpmath.npdf(u) / 24 for u in nodes]
    before, row = [mpf(0)] * len(nodes), [mpf(1)] * len(nodes)
    exact = []
    for n in range(42):
        exact.append(mpmath.fdot(values, row))
        root, less = 1 / mpmath.sqrt(n + 1), mpmath.sqrt(n)
        after = [(u * h - less * g) * root for u, h, g in zip(nodes, row, before, strict=True)]
        before, row = row, after
    at_zero = phi(mpf(0))
    for side in parts(layer, 1.0):
        for n in (1, 9, 41) if side.odd else (0, 2, 8, 40):
            number = exact[n] - (at_zero if n == 0 else 0)
            assert holds(side.features.a[n], number, 1e-44)
            assert float(side.features.a[n].rad()) < 1e-37


def test_the_strip_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coarse trapezoidal rule is off by as much as the bound allows, not more; without the bound it is wrong."""
    curve = analytic_of(lnk.Tanh()).odd
    exact = features.coefficients(curve, arb(1), True, 16)[3]
    monkeypatch.setattr(features, "round_step", lambda step: 0.5)
    coarse = features.coefficients(curve, arb(1), True, 16)[3]
    assert coarse.overlaps(exact) and 1e-12 < float(coarse.rad()) < 1e-1
    monkeypatch.setattr(features, "_error", lambda *arguments: arb(0))
    assert not features.coefficients(curve, arb(1), True, 16)[3].overlaps(exact)


@layers
def test_facts_about_the_functions(layer: lnk.Smooth) -> None:
    """Growth on the strip, bounds of the derivatives, and the decay far out, at many points."""
    phi = analytic_of(layer)
    curve = phi.odd or phi.even
    for x in np.linspace(0, 12, 61):
        for share in (0.0, 0.5, 0.9, 1.0):
            z = acb(arb(x), curve.strip * share)
            assert abs(curve.value(z, True)) <= curve.growth * abs(z) + 1e-30
        u = acb(arb(x))
        assert abs(curve.slope(u, True).real) <= curve.steepness * (1 + arb(1e-30))
        assert abs(curve.curvature(u, True).real) <= curve.bend * (1 + arb(1e-30))
        if phi.far is not None:
            rest = phi.at_zero + curve.value(u, True).real - phi.far.sign * arb(x) / 2
            assert rest.overlaps(phi.far.value(u, True).real)
            slope = curve.slope(u, True).real - phi.far.sign / arb(2)
            assert slope.overlaps(phi.far.slope(u, True).real)
            decay = (-phi.far.rate * x).exp() * (1 + arb(1e-30))
            assert abs(phi.far.value(u, True).real) <= phi.far.value_bound(arb(x)) * decay
            assert abs(phi.far.slope(u, True).real) <= phi.far.slope_bound(arb(x)) * decay


def test_a_pole_is_not_analytic() -> None:
    around_the_pole = acb(arb(0, 0.1), arb(1.6, 0.1))
    assert not analytic_of(lnk.Tanh()).odd.value(around_the_pole, True).is_finite()
    across_the_cut = acb(arb(1, 0.5), arb(3.2, 0.2))
    softplus = analytic_of(lnk.Softplus()).even
    assert not softplus.value(-1 * across_the_cut, True).is_finite()


# ---------------------------------------------------------------- kernels


X = np.random.default_rng(4).normal(size=(2, 3))
POINTS = np.array([X[0], X[1], X[0] + 1e-9 * X[1], -X[0] + 1e-7 * X[1]])
AFFINE = lnk.LayerNorm(scale=True, bias=True)
NETWORKS = {
    "norm first": lambda act: lnk.mlp(hidden=1, norm="first", activation=act, W_std=1.1),
    "lengths differ": lambda act: lnk.serial(
        *(lnk.Dense(8, 0.9, 0.2), lnk.LayerNorm(eps=0.1, scale=True, bias=True), act),
        *(lnk.LayerNorm(), lnk.Dense(1, 1.2, 0.1)),
    ),
}


@layers
@pytest.mark.parametrize("name", NETWORKS)
def test_entries_hold_the_exact_numbers(layer: lnk.Smooth, name: str) -> None:
    """Near-duplicates and antipodes as well; the radius is far below float64."""
    arch = NETWORKS[name](layer)
    found = entries.ntk_balls(arch, POINTS, BITS)
    for i, j in ((0, 1), (0, 2), (0, 3)):
        exact = oracle.kernels(arch, POINTS[i], POINTS[j])[1]
        assert holds(found[i, j], exact, 1e-35)
        assert float(found[i, j].rad()) < 1e-22


@pytest.mark.parametrize("layer", (lnk.Tanh(), lnk.Softplus()), ids=repr)
def test_the_zero_vector(layer: lnk.Smooth) -> None:
    arch = lnk.serial(lnk.Dense(8), AFFINE, layer, lnk.Dense(1))
    plain = lnk.serial(lnk.Dense(8), lnk.LayerNorm(scale=True), layer, lnk.Dense(1, 1.0, 0.5))
    x = np.array([X[0], 0 * X[0]])
    enclosed, in_float64 = entries.gram(plain, x), lnk.kernels(plain)(x)
    for ball, value in zip(enclosed, in_float64, strict=True):
        assert (np.abs(ball.middle - value) <= ball.radius + 1e-14).all()
    shortened = np.array([X[0], 1e-3 * X[0]])  # a LayerNorm without eps does not see the length
    assert np.ptp(entries.gram(arch, shortened).ntk.middle) < 1e-15


def test_a_relu_behind() -> None:
    """It depends on the root of the small angle that is left."""
    dense = lnk.Dense(8, 1.3, 0.2)
    arch = lnk.serial(dense, lnk.LayerNorm(), lnk.Tanh(), dense, lnk.Relu(), lnk.Dense(1))
    ball = entries.ntk_balls(arch, POINTS, BITS)[0, 2]
    assert holds(ball, oracle.kernels(arch, POINTS[0], POINTS[2])[1], 1e-25)
    assert float(ball.rad()) < 1e-20


@pytest.mark.parametrize("change", (1e-20, -1e-20))
def test_a_wrong_coefficient_is_caught(monkeypatch: pytest.MonkeyPatch, change: float) -> None:
    """By Parseval's theorem for f or for u f'(u); without that check the exact number is not in the ball."""
    arch = NETWORKS["norm first"](lnk.Tanh())
    exact, right = oracle.kernels(arch, *X)[1], features.coefficients

    def wrong(*arguments: Any) -> np.ndarray:
        found = right(*arguments)
        found[5] = found[5] * (1 + arb(change))
        return found

    assert holds(entries.ntk_balls(arch, X, BITS)[0, 1], exact, 1e-35)
    lengths._build_once.cache_clear()
    monkeypatch.setattr(features, "coefficients", wrong)
    with pytest.raises(ArithmeticError, match="Parseval"):
        entries.ntk_balls(arch, X, BITS)
    lengths._build_once.cache_clear()
    monkeypatch.setattr(features, "_rest", lambda whole, parts: arb(0))
    assert not holds(entries.ntk_balls(arch, X, BITS)[0, 1], exact, 1e-35)


def test_a_forgotten_remainder_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight polynomials leave much; the remainder covers it."""
    arch = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Tanh(), lnk.Dense(1))
    exact = oracle.kernels(arch, *POINTS[[0, 2]])[1]
    monkeypatch.setattr(features, "CHOICES", (8,))
    monkeypatch.setattr(lengths, "WIDEST", 1.0)
    ball = entries.ntk_balls(arch, POINTS[[0, 2]], BITS)[0, 1]
    assert holds(ball, exact) and 1e-6 < float(ball.rad()) < 0.1
    lengths._build_once.cache_clear()
    whole = pair_series.Series.__call__
    monkeypatch.setattr(
        pair_series.Series,
        "__call__",
        lambda self, x, most: whole(self._replace(rest=arb(0)), x, most),
    )
    assert not holds(entries.ntk_balls(arch, POINTS[[0, 2]], BITS)[0, 1], exact)


def test_too_long_inputs_are_refused() -> None:
    arch = lnk.mlp(hidden=1, activation=lnk.Tanh())
    with pytest.raises(
        lnk.errors.CertificateError, match=r"Tanh: .* 1024 Hermite polynomials leave"
    ):
        entries.gram(arch, 10 * POINTS)
    line = entries.diagonal(arch, 10 * POINTS).ntk  # which needs no series
    np.testing.assert_allclose(line.middle, lnk.ntk(arch).diagonal(10 * POINTS), rtol=1e-14)
    assert line.radius.max() < 1e-13


def test_hyperparameters_are_exact() -> None:
    assert lengths.exact_layer(exactly(lnk.Silu(0.1))) == lnk.Silu(0.1)
    third = lnk.Silu(1.0)
    object.__setattr__(third, "beta", arb(1) / 3)
    with pytest.raises(ArithmeticError, match="no float64 number"):
        lengths.exact_layer(third)
