"""The oracle against quadrature of the defining integrals, and against networks done by hand.

Nothing here needs the library: the oracle tells layers by name, so these stand-ins will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp, mpf

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Dense:
    W_std: float = 1.0
    b_std: float = 0.0


@dataclass(frozen=True)
class Homogeneous:
    degree: float = 1.0
    a: float = 1.0
    b: float = 0.0


@dataclass(frozen=True)
class Identity:
    pass


@dataclass(frozen=True)
class LayerNorm:
    eps: float = 0.0
    scale: bool = False
    bias: bool = False


@dataclass(frozen=True)
class RMSNorm:
    eps: float = 0.0
    scale: bool = False


@dataclass(frozen=True)
class GroupNorm:
    group_size: int
    centre: bool = True
    eps: float = 0.0
    scale: bool = False
    bias: bool = False


@dataclass(frozen=True)
class Parallel:
    branches: tuple[Any, ...]


class Serial:
    def __init__(self, *layers: Any) -> None:
        self.layers = layers


def residual(*layers: Any) -> Parallel:
    return Parallel((Identity(), Serial(*layers)))


RELU = Homogeneous()
ABS = Homogeneous(1.0, 1.0, 1.0)
SHAPES = [
    RELU,
    ABS,
    Homogeneous(1.0, 1.0, -0.1),
    Homogeneous(0.6, 0.7, -1.3),
    Homogeneous(0.75, 1.0, 0.4),
    Homogeneous(1.5, -0.5, 2.0),
    Homogeneous(2.0, 1.0, -0.3),
    Homogeneous(2.5, 1.0, 0.0),
    Homogeneous(3.0, 0.2, 0.9),
]


def show(act: Homogeneous) -> str:
    return f"p{act.degree:g},a{act.a:g},b{act.b:g}"


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    """Quadrature runs with 40, of which an endpoint t^(-0.4) leaves 24."""
    with mp.workdps(40):
        yield


def close(got: mpf, want: mpf, digits: int = 22) -> bool:
    return abs(got - want) <= mpf(10) ** -digits * (1 + abs(want))


# ---------------------------------------------------------------- Gaussian expectations


def function(act: Homogeneous) -> Function:
    """phi, as its definition says."""
    p, a, b = mpf(act.degree), mpf(act.a), mpf(act.b)
    return lambda u: a * u**p if u > 0 else b * (-u) ** p


def derivative(act: Homogeneous) -> Function:
    p, a, b = mpf(act.degree), mpf(act.a), mpf(act.b)
    return lambda u: p * a * u ** (p - 1) if u > 0 else -p * b * (-u) ** (p - 1)


def gaussian_product(f: Function, degree: mpf, rho: mpf) -> mpf:
    """E f(u) f(v), unit variances, f homogeneous: u = r cos(t), v = r cos(t - theta).

    The radius and the angle part; the angle is cut where u or v changes sign.
    """
    theta, right = mpmath.acos(rho), mp.pi / 2
    cuts = [-right, theta - right, right, theta + right, 3 * right]
    angle = mpmath.quad(lambda t: f(mpmath.cos(t)) * f(mpmath.cos(t - theta)), cuts)
    return angle * radial(degree) / (2 * mp.pi)


@cache
def radial(degree: mpf) -> mpf:
    """The integral of r^(2p) over the density r exp(-r^2/2)."""
    return mpmath.quad(lambda r: r ** (2 * degree + 1) * mpmath.exp(-r * r / 2), [0, 4, mp.inf])


@pytest.mark.parametrize("rho", ["-0.83", "0.2", "0.97"])
@pytest.mark.parametrize("act", SHAPES, ids=show)
def test_product_and_derivatives_are_the_integrals(act: Homogeneous, rho: str) -> None:
    p, rho, q1, q2 = mpf(act.degree), mpf(rho), mpf("0.3"), mpf("1.9")
    product = (q1 * q2) ** (p / 2) * gaussian_product(function(act), p, rho)
    slopes = (q1 * q2) ** ((p - 1) / 2) * gaussian_product(derivative(act), p - 1, rho)
    assert close(oracle.expect_product(act, q1, q2, rho), product)
    assert close(oracle.expect_derivatives(act, q1, q2, rho), slopes)


@pytest.mark.parametrize("act", SHAPES, ids=show)
def test_the_mean_and_the_diagonal_are_the_integrals(act: Homogeneous) -> None:
    phi, q = function(act), mpf("1.9")

    def against_density(f: Function) -> mpf:
        def integrand(u: mpf) -> mpf:
            return f(u) * mpmath.exp(-u * u / (2 * q)) / mpmath.sqrt(2 * mp.pi * q)

        return mpmath.quad(integrand, [-mp.inf, -4, 0, 4, mp.inf])

    assert close(oracle.expect(act, q), against_density(phi))
    square = against_density(lambda u: phi(u) ** 2)
    assert close(oracle.expect_product(act, q, q, mpf(1)), square)


@pytest.mark.parametrize("act", [RELU, Homogeneous(2.0, 1.0, 0.4)], ids=show)
def test_the_polar_form_is_the_double_integral(act: Homogeneous) -> None:
    phi, rho = function(act), mpf("-0.4")
    quad = partial(mpmath.quad, method="gauss-legendre", maxdegree=5)
    with mp.workdps(16):
        s = mpmath.sqrt(1 - rho**2)

        def given(u: mpf) -> mpf:
            """phi(u) E[phi(v) | u] times the density of u, up to the factor 1/(2 pi)."""
            cuts = [-9, -rho * u / s, 9]
            inner = quad(lambda z: phi(rho * u + s * z) * mpmath.exp(-z * z / 2), cuts)
            return phi(u) * inner * mpmath.exp(-u * u / 2)

        double = quad(given, [-9, 0, 9]) / (2 * mp.pi)
    assert close(gaussian_product(phi, mpf(act.degree), rho), double, 14)


@pytest.mark.parametrize("p", [0, 1, 2, 3])
@pytest.mark.parametrize("rho", ["-0.9", "0.1", "0.99"])
def test_arc_cosine_forms_agree_with_the_hypergeometric_one(p: int, rho: str) -> None:
    near, rho = mpf(p) + mpf(10) ** -35, mpf(rho)
    assert close(oracle.quadrant(mpf(p), rho), oracle.quadrant(near, rho), 32)


# ---------------------------------------------------------------- groups


def radii_and_angle(nu: int, rho: mpf, value: Function, inverse: int) -> mpf:
    """The integral of value(cos) (|u||v|)^-inverse over the law of |u|, |v| and their angle.

    That law is (RS)^(nu-1) sin^(nu-2) exp(-(R^2 + S^2 - 2 rho RS cos)/(2(1 - rho^2))); with
    R, S = t cos(a), t sin(a) the integral over t is a Gamma function. Not normalised.
    """
    power = nu - inverse

    def integrand(a: mpf, angle: mpf) -> mpf:
        c, half = mpmath.cos(angle), mpmath.sin(2 * a) / 2
        return (
            half ** (power - 1)
            * mpmath.sin(angle) ** (nu - 2)
            * value(c)
            / (1 - 2 * rho * half * c) ** power
        )

    inside = mpmath.quad(integrand, [0, mp.pi / 4], [0, mp.pi], method="gauss-legendre")
    return inside * mpmath.gamma(power) * (2 * (1 - rho**2)) ** power


@pytest.mark.parametrize(("nu", "rho"), [(3, "0.6"), (4, "-0.3"), (7, "0.6")])
def test_group_kernel_is_the_mean_cosine(nu: int, rho: str) -> None:
    """K' = E cos, and Theta'/Theta = E (nu - 2 + cos^2)/(|u||v|), the trace of two projections."""
    rho = mpf(rho)
    with mp.workdps(22):
        total = radii_and_angle(nu, rho, lambda c: mpf(1), 0)
        cosine = radii_and_angle(nu, rho, lambda c: c, 0) / total
        trace = radii_and_angle(nu, rho, lambda c: nu - 2 + c * c, 1) / total
    assert close(oracle.kappa(nu, rho), cosine, 20)
    assert close(oracle.kappa_slope(nu, rho), trace, 20)


@pytest.mark.parametrize("rho", ["-0.3", "0.6"])
def test_a_group_with_one_degree_of_freedom_is_the_sign(rho: str) -> None:
    sign = gaussian_product(mpmath.sign, mpf(0), mpf(rho))
    assert close(oracle.kappa(1, mpf(rho)), sign)
    assert oracle.kappa_slope(1, mpf(rho)) == 0


@pytest.mark.parametrize("nu", [3, 4, 7])
def test_group_kernels_are_continuous_at_one(nu: int) -> None:
    almost = 1 - mpf(10) ** -39
    assert close(oracle.kappa(nu, almost), oracle.kappa(nu, mpf(1)), 18)
    assert close(oracle.kappa_slope(nu, almost), oracle.kappa_slope(nu, mpf(1)), 18)


# ---------------------------------------------------------------- networks by hand


X, X2 = np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])  # x.x2/d = 11/3, |x|^2/d = 14/3


def check(layers: list[Any], K: Any, Theta: Any, x: Any = X, x2: Any = X2) -> None:
    got = oracle.kernels(Serial(*layers), x, x2)
    assert close(got[0], mpf(K), digits=37)
    assert close(got[1], mpf(Theta), digits=37)


def test_linear_network() -> None:
    first = mpf(4) * 11 / 3 + 9
    check([Dense(2.0, 3.0)], first, first)
    second = first / 4 + 25
    check([Dense(2.0, 3.0), Identity(), Dense(0.5, 5.0)], second, second + first / 4)
    odd = Homogeneous(1.0, 1.0, -1.0)
    check([Dense(2.0, 3.0), odd, Dense(0.5, 5.0)], second, second + first / 4)


def test_relu_network_at_orthogonal_inputs() -> None:
    """q1 = 9/2, q2 = 8: K = sqrt(q1 q2)/(2 pi) = 3/pi; the hidden layer's NTK is 0."""
    check([Dense(), RELU, Dense()], 3 / mp.pi, 3 / mp.pi, [3.0, 0.0], [0.0, 4.0])


@pytest.mark.parametrize("sign", [1, -1])
def test_abs_network_keeps_the_norm(sign: int) -> None:
    """K = |x|^2/d in every layer, and every layer adds K to Theta: also for -x."""
    check([Dense(), ABS] * 9 + [Dense()], mpf(14) / 3, 10 * mpf(14) / 3, X, sign * X)


def test_layer_norm_of_the_raw_input_is_that_of_the_vector() -> None:
    check([LayerNorm(), Dense()], -mpf(1) / 2, -mpf(1) / 2)
    check([RMSNorm(), Dense()], mpf(11) / 14, mpf(11) / 14)
    check([RMSNorm(), LayerNorm(), Dense()], -mpf(1) / 2, -mpf(1) / 2)
    check([LayerNorm(), Dense()], 0, 0, [0.1, 0.1, 0.1], X2)  # no direction


def test_layer_norm_after_an_activation_subtracts_the_mean() -> None:
    """Orthogonal inputs: |u| and |v| are independent, so centred features have K = 0."""
    e1, e2 = [1.0, 0.0], [0.0, 1.0]
    check([Dense(), ABS, LayerNorm(), Dense()], 0, 0, e1, e2)
    check([Dense(), ABS, RMSNorm(), Dense()], 2 / mp.pi, 2 / mp.pi, e1, e2)
    check([Dense(), ABS, RMSNorm(), LayerNorm(), Dense()], 0, 0, e1, e2)


def test_sums_of_branches() -> None:
    k = mpf(11) / 3
    check([Dense(), residual(Dense(2.0, 1.0))], 5 * k + 1, k + (4 * k + 1 + 4 * k))
    # two independent halves of |u|: K = 2 (2/pi) q + 2 m^2 with m^2 = (2/pi) q, orthogonal inputs
    half = Serial(Dense(), ABS)
    check([Parallel((half, half)), Dense()], 4 / mp.pi, 4 / mp.pi, [1.0, 0.0], [0.0, 1.0])


def test_trainable_scale_and_offset() -> None:
    rho = mpf(11) / 14
    norm = LayerNorm(scale=True, bias=True)
    check([Dense(), norm, Dense()], rho, rho + (rho + rho + 1))
    # before an activation u_i v_i is not averaged: Theta = (rho + 1) Kd + p^2 K_phi
    for act in (RELU, Homogeneous(2.0)):
        p, one = act.degree, mpf(1)
        K = oracle.expect_product(act, one, one, rho)
        slopes = oracle.expect_derivatives(act, one, one, rho)
        check([Dense(), norm, act, Dense()], K, K + (rho + 1) * slopes + p**2 * K)
    # the scales of two norms add up
    twice = [Dense(), LayerNorm(scale=True), RMSNorm(scale=True), Dense()]
    check(twice, rho, rho + 3 * rho)


def test_group_norm_network() -> None:
    rho = mpf(11) / 14
    sign = 2 / mp.pi * mpmath.asin(rho)
    check([Dense(), GroupNorm(2), Dense()], sign, sign)
    check([Dense(), GroupNorm(2, scale=True, bias=True), Dense()], sign, 3 * sign - sign + 1)
    cosine, slope = oracle.kappa(4, rho), oracle.kappa_slope(4, rho)
    check([Dense(), GroupNorm(4, centre=False), Dense()], cosine, cosine + rho * slope)


def test_published_values() -> None:
    """Published numbers, which are given to 5-8 digits, with W_std^2 and b_std^2."""

    def d(weight: float, bias: float) -> Dense:
        return Dense(math.sqrt(weight), math.sqrt(bias))

    def theta(layers: list[Any], r: float) -> float:
        x = [math.sqrt(r)]
        return float(oracle.kernels(Serial(*layers), x, x)[1])

    w = d(2.0, 0.01)
    assert theta([w, LayerNorm(), RELU, w, RELU, w], 7.0) == pytest.approx(3.03, rel=1e-14, abs=0)
    block = residual(LayerNorm(), d(6, 0.3), RELU, d(10, 0.3), RELU, d(16, 0.2))
    peaked = [d(2.5, 0.01), RELU, d(0.5, 0.1), block, LayerNorm(), d(1, 0)]
    assert theta(peaked, 0.0) == pytest.approx(4.9535, abs=5e-5)
    assert theta(peaked, 4.512) == pytest.approx(5.8094161, abs=5e-8)
    assert theta(peaked, 1e30) == pytest.approx(3.0, rel=1e-9)
    norm = LayerNorm(1e-5, scale=True, bias=True)
    offset = [d(2, 0), norm, RELU, d(2, 0), norm, RELU, d(2, 0)]
    assert theta(offset, 0.0) == pytest.approx(100001.0, rel=1e-13, abs=0)


def test_zero_input_without_bias_has_zero_kernels() -> None:
    for norm in (LayerNorm(), RMSNorm(), GroupNorm(4)):
        layers = [Dense(), norm, Dense()]
        check(layers, 0, 0, np.zeros(3), X)
        check(layers, 0, 0, np.zeros(3), np.zeros(3))
    for act in (RELU, Homogeneous(0.6)):
        check([Dense(), LayerNorm(), act, Dense()], 0, 0, np.zeros(3), X)


@pytest.mark.parametrize(
    "layers",
    [
        [RELU],
        [Dense(), RELU, RELU],
        [Dense(), RELU, LayerNorm(), RELU],
        [Dense(), GroupNorm(3), Dense()],
        [Dense(), GroupNorm(4), RELU],
        [Dense(), residual(Identity())],
        [Dense(), residual(RELU)],
        [Dense(), LayerNorm(scale=True), residual(Dense()), RELU],
    ],
)
def test_what_has_no_closed_form_is_refused(layers: list[Any]) -> None:
    with pytest.raises(ValueError):
        oracle.kernels(Serial(*layers), X, X2)


# ---------------------------------------------------------------- enough digits


def deep(act: Any, norm: Any = None, depth: int = 3, bias: float = 0.1) -> Serial:
    block = [Dense(math.sqrt(2), bias), act, *([norm] if norm else [])]
    return Serial(*block * depth, Dense(1.5, bias))


NETWORKS = {
    "relu, 50": deep(RELU, depth=50),
    "p = 0.6": deep(Homogeneous(0.6, 1.0, -0.3)),
    "p = 0.6, no bias": deep(Homogeneous(0.6), bias=0.0),
    "p = 0.75, normed": deep(Homogeneous(0.75, 1.0, 0.5), LayerNorm(1e-5)),
    "p = 1.5, normed": deep(Homogeneous(1.5), LayerNorm()),
    "p = 3, then 0.6": Serial(
        Dense(), Homogeneous(3.0), Dense(1.0, 0.1), Homogeneous(0.6), Dense()
    ),
    "signs, then 0.75": Serial(Dense(), GroupNorm(2), Dense(), Homogeneous(0.75), Dense()),
    "groups of 4": Serial(Dense(1.0, 1e-3), GroupNorm(4), Dense(), RELU, Dense()),
    "residual": Serial(
        Dense(), residual(LayerNorm(), Dense(), Homogeneous(0.6), Dense()), LayerNorm(), Dense()
    ),
}
A, B = np.random.default_rng(0).normal(size=(2, 5))
NASTY = {
    "random": (A, B),
    "1e-14 apart": (A, A + 1e-14 * B),
    "collinear": (A, 4 * A),
    "almost collinear": (A, A * 1.1),
    "antipodal": (A, -A),
    "far and near": (1e150 * A, 1e-150 * B),
    "far and collinear": (1e150 * A, 2e150 * A),
    "near and collinear": (1e-150 * A, 1e-150 * (A + 1e-14 * B)),
}


@pytest.mark.parametrize("inputs", NASTY.values(), ids=NASTY.keys())
@pytest.mark.parametrize("arch", NETWORKS.values(), ids=NETWORKS.keys())
def test_fifty_digits_do_not_move_with_more(
    arch: Serial, inputs: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brute force: of 1000 digits even noise^(p - 1/2) at p = 0.6 leaves 90."""
    got = oracle.pair(arch, *inputs)
    monkeypatch.setattr(oracle, "precision", lambda *_: (1000, 60))
    K, Theta = oracle.kernels(arch, *inputs)
    assert abs(got.K - K) <= mpf(10) ** -50 * got.K_scale
    assert abs(got.Theta - Theta) <= mpf(10) ** -50 * got.Theta_scale


def test_the_degree_may_be_close_to_one_half() -> None:
    """noise^(p - 1/2) is hopeless for p = 1/2 + 1e-9; the collinear pair is still exact."""
    arch = Serial(Dense(), Homogeneous(0.5 + 1e-9), Dense(), Homogeneous(0.5 + 1e-9), Dense())
    got = oracle.pair(arch, A, 4 * A)
    with mp.workdps(60):
        assert abs(got.Theta - got.Theta_scale) <= mpf(10) ** -50 * got.Theta_scale
