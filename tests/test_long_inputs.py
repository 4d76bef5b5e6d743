r"""Activations without a closed form on inputs of norms up to 1e150, next to others as long, and to short ones.

What is tested against has its own way, with 30 digits. An activation is a pair of half-lines,
$\ell(u) = Au + B|u| + C + D\,\mathrm{sgn}\,u$, and a rest that lives near 0, where the density of a long input is
constant. So the rest counts by its integral, divided by the length; what is left out is smaller by a factor of the
squared length, 1e-18 at most.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.gram import eager

LENGTHS = (1e9, 1e20, 1e150)
EVERY = [*(pytest.param(r, marks=pytest.mark.slow) for r in LENGTHS[:2]), LENGTHS[2]]
BOUND = 1e-13


@dataclass(frozen=True)
class Lines:
    """An activation in mpmath, and its half-lines (slope, level)."""

    layer: lnk.Elementwise
    phi: Callable[[mpf], mpf]
    slope: Callable[[mpf], mpf]
    left: tuple[Any, Any]
    right: tuple[Any, Any]
    kinks: tuple[int, ...] = (0,)

    @property
    def parts(self) -> tuple[mpf, mpf, mpf, mpf]:
        """A, B, C, D."""
        (a, b), (c, d) = (map(mpf, line) for line in (self.left, self.right))
        return (c + a) / 2, (c - a) / 2, (d + b) / 2, (d - b) / 2


@cache
def rest_of(f: Lines) -> mpf:
    """The integral of phi less its lines."""

    def beside(u: mpf) -> mpf:
        slope, level = f.left if u < 0 else f.right
        return f.phi(u) - mpf(slope) * u - mpf(level)

    return integral(beside, near_zero(f.kinks))


def near_zero(kinks: tuple[int, ...]) -> list[mpf]:
    places = {side * mpf(2) ** k for k in range(-1, 7) for side in (-1, 1)}
    return sorted(places | {mpf(kink) for kink in (*kinks, 0)})


def integral(f: Callable[[mpf], mpf], places: list[mpf]) -> mpf:
    """By Gauss's rule on each panel; its nodes in float64 leave errors of 1e-16."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return mpmath.fsum(
        (high - low) / 2 * mpf(w) * f((low + high) / 2 + (high - low) / 2 * mpf(t))
        for low, high in pairwise(places)
        for t, w in zip(nodes.tolist(), weights.tolist(), strict=True)
    )


def logistic(u: mpf) -> mpf:
    return 1 / (1 + mpmath.exp(-u)) if u > 0 else mpmath.exp(u) / (1 + mpmath.exp(u))


def softplus(u: mpf) -> mpf:
    return max(u, mpf(0)) + mpmath.log1p(mpmath.exp(-abs(u)))


def square_of_secant(u: mpf) -> mpf:
    return 4 * logistic(2 * u) * logistic(-2 * u)


def inner(u: mpf) -> mpf:
    return mpmath.sqrt(2 / mp.pi) * (u + mpf(0.044715) * u**3)


def gelu(u: mpf) -> mpf:
    return u * logistic(2 * inner(u))


def gelu_slope(u: mpf) -> mpf:
    steep = mpmath.sqrt(2 / mp.pi) * (1 + 3 * mpf(0.044715) * u**2)
    return logistic(2 * inner(u)) + u * square_of_secant(inner(u)) * steep / 2


def exponential(alpha: float, scale: float, layer: lnk.Elementwise) -> Lines:
    size, depth = mpf(scale), mpf(scale) * mpf(alpha)
    return Lines(
        layer,
        lambda u: size * u if u > 0 else depth * mpmath.expm1(u),
        lambda u: size if u > 0 else depth * mpmath.exp(u),
        (0, -depth),
        (size, 0),
    )


def clip(low: int, high: int) -> Lines:
    return Lines(
        lnk.Clip(float(low), float(high)),
        lambda u: min(max(u, mpf(low)), mpf(high)),
        lambda u: mpf(low < u < high),
        (0, low),
        (0, high),
        (low, high),
    )


SATURATING = {
    "tanh": Lines(lnk.Tanh(), mpmath.tanh, square_of_secant, (0, -1), (0, 1)),
    "sigmoid": Lines(lnk.Sigmoid(), logistic, lambda u: logistic(u) * logistic(-u), (0, 0), (0, 1)),
    "clip": clip(-1, 1),
    "relu6": clip(0, 6),
}
GROWING = {
    "silu": Lines(
        lnk.Silu(),
        lambda u: u * logistic(u),
        lambda u: logistic(u) * (1 + u * logistic(-u)),
        (0, 0),
        (1, 0),
    ),
    "softplus": Lines(lnk.Softplus(), softplus, logistic, (0, 0), (1, 0)),
    "gelu": Lines(lnk.Gelu(approximate=True), gelu, gelu_slope, (0, 0), (1, 0)),
    "elu": exponential(1.0, 1.0, lnk.Elu()),
    "selu": exponential(lnk.Selu().alpha, lnk.Selu().scale, lnk.Selu()),
}
KNOWN = SATURATING | GROWING


def at(length: float, cosine: float = 1.0, sine: float = 0.0) -> np.ndarray:
    """An input of this standard deviation before the activation of `network`."""
    return length * np.array([[cosine, sine]])


def network(act: lnk.Elementwise) -> lnk.Node:
    return lnk.serial(lnk.Dense(8, 2**0.5), act, lnk.Dense(1))


def expectations(layer: lnk.Elementwise, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """E phi phi and r1 r2 E phi' phi', from both kernels of a pair."""
    found = lnk.kernels(network(layer))(x, y)
    rise = float(found.ntk[0, 0]) - float(found.nngp[0, 0])
    size = np.linalg.norm(x / np.abs(x).max()) * np.linalg.norm(y / np.abs(y).max())
    cosine = float(((x / np.abs(x).max()) @ (y / np.abs(y).max()).T)[0, 0]) / size
    return float(found.nngp[0, 0]), rise / cosine


def check_pair(
    layer: lnk.Elementwise, x: np.ndarray, y: np.ndarray, right: tuple[mpf, mpf]
) -> None:
    """Relative to the entries themselves, which are not larger than what the diagonals allow. The NTK is the sum of
    both expectations, in which the second may be lost."""
    with mp.workdps(30):
        sizes = abs(right[0]), abs(right[0]) + abs(right[1])
        for found, exact, size in zip(expectations(layer, x, y), right, sizes, strict=True):
            assert abs(found - exact) <= BOUND * size, (found, exact)


def both_long(f: Lines, r1: mpf, r2: mpf, rho: mpf) -> tuple[mpf, mpf]:
    (a, b, c, d), arc = f.parts, 2 / mp.pi * mpmath.asin(rho)
    root, s = mpmath.sqrt(2 / mp.pi), mpmath.sqrt(1 - rho * rho)
    product = a * a * r1 * r2 * rho + a * d * root * rho * (r1 + r2)
    product += b * b * r1 * r2 * (2 / mp.pi * s + rho * arc) + b * c * root * (r1 + r2)
    product += c * c + d * d * arc
    for r, other in ((r1, r2), (r2, r1)):
        product += rest_of(f) / r * root / 2 * (b * other * s * root + c)
    slopes = (a * a + b * b * arc) * r1 * r2 + a * d * root * (r1 + r2)
    return product, slopes + 2 * d * d / (mp.pi * s)


def long_and_short(f: Lines, r1: mpf, r2: mpf, rho: mpf) -> tuple[mpf, mpf]:
    """Given the short v, u is Gaussian of mean m and deviation s; one integral is left."""
    (a, b, c, d), rest, s = f.parts, rest_of(f), r1 * mpmath.sqrt(1 - rho * rho)

    def value(y: mpf) -> mpf:
        m = rho * r1 * y
        peak, odd = mpmath.npdf(m / s), mpmath.erf(m / s / mpmath.sqrt(2))
        return a * m + b * (m * odd + 2 * s * peak) + c + d * odd + rest * peak / s

    def slope(y: mpf) -> mpf:
        m = rho * r1 * y
        peak, odd = mpmath.npdf(m / s), mpmath.erf(m / s / mpmath.sqrt(2))
        return a + b * odd + peak / s * (2 * d - rest * m / s**2)

    def mean(given: Callable[[mpf], mpf], own: Callable[[mpf], mpf]) -> mpf:
        ends = [place / r2 for place in near_zero(f.kinks) if abs(place) < 12 * r2]
        places = sorted({*ends, *map(mpf, range(-12, 13, 2))})
        return integral(lambda y: given(y) * own(r2 * y) * mpmath.npdf(y), places)

    return mean(value, f.phi), r1 * r2 * mean(slope, f.slope)


@cache
def on_a_line(f: Lines, r1: mpf, r2: mpf) -> tuple[mpf, mpf]:
    """E phi(r1 x) phi(r2 x) and its like, r2 of any sign, by an integral that is split on the scales of both."""
    bends = {
        place / abs(r) for r in (r1, r2) for place in near_zero((*f.kinks, *(-k for k in f.kinks)))
    }
    inside = {x for x in bends if abs(x) < 12}
    places = sorted({*inside, *map(mpf, range(-12, 13, 2))})

    def mean(g: Callable[[mpf], mpf]) -> mpf:
        return integral(lambda x: g(r1 * x) * g(r2 * x) * mpmath.npdf(x), places)

    return mean(f.phi), abs(r1 * r2) * mean(f.slope)


ANGLES = ((0.6, 0.8), (-0.6, 0.8), (0.96, -0.28))


@pytest.mark.parametrize("length", EVERY)
@pytest.mark.parametrize("name", KNOWN)
def test_two_long_inputs(name: str, length: float) -> None:
    f = KNOWN[name]
    for cosine, sine in ANGLES:
        for other in (length, 3 * length, 1e9):
            with mp.workdps(30):
                rho = mpf(cosine) / mpmath.sqrt(mpf(cosine) ** 2 + mpf(sine) ** 2)
                right = both_long(f, mpf(length), mpf(other), rho)
            check_pair(f.layer, at(length), at(other, cosine, sine), right)


@pytest.mark.parametrize("short", [1.0, 30.0, 1e-150])
@pytest.mark.parametrize("name", KNOWN)
def test_a_long_and_a_short_input(name: str, short: float) -> None:
    f = KNOWN[name]
    for length, (cosine, sine) in zip(LENGTHS, ANGLES, strict=True):
        with mp.workdps(30):
            rho = mpf(cosine) / mpmath.sqrt(mpf(cosine) ** 2 + mpf(sine) ** 2)
            right = long_and_short(f, mpf(length), mpf(short), rho)
        check_pair(f.layer, at(length), at(short, cosine, sine), right)
        check_pair(f.layer, at(short, cosine, sine), at(length), right)


@pytest.mark.parametrize("name", KNOWN)
def test_inputs_on_a_line(name: str) -> None:
    """Equal, collinear and antipodal; an entry may vanish, and is compared with what the diagonals allow."""
    f = KNOWN[name]
    for r1, r2 in ((1e9, 1e9), (1e20, 2e20), (1e150, 1.0), (1e150, -1e150)):
        found = expectations(f.layer, at(r1), at(r2))
        with mp.workdps(30):
            right, one, two = (
                on_a_line(f, mpf(a), mpf(b)) for a, b in ((r1, r2), (r1, r1), (r2, r2))
            )
            for made, exact, a, b in zip(found, right, one, two, strict=True):
                assert abs(made - exact) <= BOUND * mpmath.sqrt(a * b), (r1, r2, made, exact)


@pytest.mark.parametrize("name", KNOWN)
def test_inputs_that_are_hardly_apart(name: str) -> None:
    """By an angle of 1e-14, at which the longest inputs are far apart; 1e-24 is nothing at a length of 1e9."""
    f = KNOWN[name]
    with mp.workdps(60):
        angle = mpf(1e-14)
        right = both_long(f, mpf(1e150), mpf(1e150), 1 / mpmath.sqrt(1 + angle**2))
    check_pair(f.layer, at(1e150), at(1e150, 1.0, 1e-14), right)
    itself = expectations(f.layer, at(1e9), at(1e9))
    np.testing.assert_allclose(
        expectations(f.layer, at(1e9), at(1e9, 1.0, 1e-24)), itself, rtol=BOUND
    )


POINTS = np.array(
    [[1.0, 2.0], [-2.0, 1.0], [1.0, 2.0 + 1e-14], [-1.0, -2.0], [2.0, 4.0], [0.3, -1.0]]
)


@pytest.mark.parametrize("length", EVERY)
@pytest.mark.parametrize("name", KNOWN)
def test_matrices_of_all_lengths(name: str, length: float) -> None:
    """Symmetric, positive semi-definite, and with the diagonal that comes from moments."""
    x = np.concatenate([length * POINTS, POINTS[:3], 1e-150 * POINTS[:1]])
    arch = lnk.serial(
        lnk.Dense(8, 1.2, 0.1), KNOWN[name].layer, lnk.Dense(8), lnk.Relu(), lnk.Dense(1)
    )
    theta = lnk.ntk(arch)
    made = np.asarray(theta(x))
    root = np.sqrt(np.diagonal(made))
    unit = made / root / root[:, None]
    np.testing.assert_array_equal(made, made.T)
    np.testing.assert_allclose(np.diagonal(made), theta.diagonal(x), rtol=BOUND)
    np.testing.assert_allclose(
        theta(x, x[3:5]) / root[:, None] / root[3:5], unit[:, 3:5], atol=1e-14
    )
    assert np.linalg.eigvalsh(unit).min() > -1e-14


LIMITS: dict[str, tuple[lnk.Elementwise, float]] = {
    "tanh": (lnk.Sign(), 1.0),
    "sigmoid": (lnk.Step(), 1.0),
    "clip": (lnk.Sign(), 1.0),
    "relu6": (lnk.Step(), 6.0),
    "selu": (lnk.Relu(), lnk.Selu().scale),
} | {name: (lnk.Relu(), 1.0) for name in ("silu", "softplus", "gelu", "elu")}


@pytest.mark.parametrize("length", EVERY[1:])
@pytest.mark.parametrize("name", KNOWN)
def test_networks_that_long_inputs_cannot_tell_apart(name: str, length: float) -> None:
    limit, size = LIMITS[name]

    def deep(act: lnk.Elementwise) -> lnk.Kernel:
        kernel = lnk.nngp if name in SATURATING else lnk.ntk
        return kernel(lnk.serial(lnk.Dense(8), act, lnk.Dense(8), lnk.Relu(), lnk.Dense(1)))

    x = length * POINTS
    made, right = np.asarray(deep(KNOWN[name].layer)(x)), size**2 * np.asarray(deep(limit)(x))
    root = np.sqrt(np.diagonal(right))
    assert np.abs((made - right) / root / root[:, None]).max() < 1e-14


def test_what_is_refused() -> None:
    """Of a function of one's own nobody knows what it is far out; and squares of numbers overflow."""
    with pytest.raises(
        lnk.errors.ActivationRangeError, match=r"Activate: .* computed up to 1e\+08"
    ):
        lnk.ntk(network(lnk.Activate(jnp.tanh)))(at(1e9))
    with pytest.raises(lnk.errors.ActivationRangeError, match=r"Tanh: .* computed up to 1e\+152"):
        lnk.ntk(network(lnk.Tanh()))(at(1e153))


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("act", [lnk.Tanh(), lnk.Silu(), lnk.Elu(), lnk.Clip()], ids=repr)
def test_inputs_of_the_least_norm(act: lnk.Elementwise, few: bool) -> None:
    """Many dimensions make vectors before an activation shorter than the inputs; without a bias kernels are in
    proportion."""
    x = np.random.default_rng(0).normal(size=(6, 300))
    x /= np.linalg.norm(x, axis=1)[:, None]
    both = lnk.kernels(lnk.mlp(hidden=1, activation=act, b_std=0.0))
    with contextlib.nullcontext() if few else eager.without_numpy():
        for made, right in zip(both(1e-150 * x), both(1e-100 * x), strict=True):
            scale = np.diagonal(right).max()
            assert made * 1e50 * 1e50 == pytest.approx(right, abs=1e-13 * scale, rel=0)
