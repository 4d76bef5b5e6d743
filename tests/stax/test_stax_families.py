"""Activations with parameters: neural-tangents' numbers, formulas of their kernels, their functions, equal nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import stax
from lnkernel.errors import LnkernelError

with np.load(Path(__file__).parents[1] / "peers" / "neural_tangents_stax.npz") as stored:
    GOLDEN = dict(stored)
TEXTS = [name for name in GOLDEN if name.startswith("points: ")]
NORMALISED = [name for name in TEXTS if "ExpNormalized" in name]


def relative(found: Any, known: Any) -> np.ndarray:
    """The distance of two matrices beside the roots of the diagonals."""
    ends = np.sqrt(np.diagonal(known))
    return np.abs(np.asarray(found) - np.asarray(known)) / np.outer(ends, ends)


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in NORMALISED])
def test_the_same_words_have_the_same_kernels(name: str) -> None:
    """benchmarks/peers/inside/neural_tangents_stax.py has run them."""
    text = name.removeprefix("points: ")
    kernel_fn = eval(f"stax.serial({text})", {"stax": stax, "jnp": jnp, "jax": jax}).kernel_fn
    found = kernel_fn(GOLDEN["points"], None, ("nngp", "ntk"))
    for ours, theirs in zip(found, GOLDEN[name], strict=True):
        off = relative(ours, theirs)
        # at equal inputs neural-tangents takes the root of a rounding
        assert (off - np.diag(np.diagonal(off))).max() < 1e-13
        assert off.max() < 1e-7


def test_there_are_enough() -> None:
    assert len(TEXTS) == 30 and len(NORMALISED) == 2


@pytest.mark.parametrize("name", NORMALISED)
def test_what_stands_for_the_normalised_exponential(name: str) -> None:
    gamma, shift = (0.6, 0.5) if "0.6" in name else (1.0, -1.0)
    dense, norm = stax.Dense(8, 1.3, 0.2), stax.LayerNorm()
    other = stax.Exp(a=math.exp(gamma * (shift - 1) / 2), b=gamma**0.5)
    found = stax.serial(dense, norm, other, dense).kernel_fn(
        GOLDEN["points"], None, ("nngp", "ntk")
    )
    for ours, theirs in zip(found, GOLDEN[name], strict=True):
        assert relative(ours, theirs).max() < 2e-11  # an eps of 1e-12 leaves lengths below 1
    with pytest.raises(lnk.errors.MissingLayerError, match=r"Behind a LayerNorm take Exp\(a="):
        _ = stax.ExpNormalized


# ---------------------------------------------------------------- formulas


class Case(NamedTuple):
    """A layer, its function, and E φφ and E φ'φ' of q1, q2 and k by plain formulas."""

    layer: stax.Layer
    function: Callable[[Any], Any]
    product: Callable[[Any, Any, Any], Any]
    slopes: Callable[[Any, Any, Any], Any]


def erf(a: float, b: float, c: float) -> Case:
    A, B, C = map(mpmath.mpf, (a, b, c))

    def root(q1: Any, q2: Any, k: Any) -> Any:
        return mpmath.sqrt((1 + 2 * B * B * q1) * (1 + 2 * B * B * q2) - 4 * B**4 * k * k)

    def product(q1: Any, q2: Any, k: Any) -> Any:
        return C * C + 2 * A * A / mpmath.pi * mpmath.atan2(2 * B * B * k, root(q1, q2, k))

    return Case(
        stax.Erf(a, b, c),
        lambda u: a * jax.scipy.special.erf(b * u) + c,
        product,
        lambda *q: 4 * A * A * B * B / mpmath.pi / root(*q),
    )


def sine(layer: stax.Layer, a: float, b: float, c: float) -> Case:
    A, B, C = map(mpmath.mpf, (a, b, c))

    def mixed(sign: int) -> Callable[[Any, Any, Any], Any]:
        def of(q1: Any, q2: Any, k: Any) -> Any:
            near, far = (mpmath.exp(-B * B * (q1 + q2 - s * 2 * k) / 2) for s in (1, -1))
            return A * A / 2 * (near + sign * mpmath.cos(2 * C) * far)

        return of

    return Case(
        layer,
        lambda u: a * jnp.sin(b * u + c),
        mixed(-1),
        lambda *q: B * B * mixed(1)(*q),
    )


def gaussian(a: float, b: float) -> Case:
    A, B = mpmath.mpf(a), mpmath.mpf(b)

    def delta(q1: Any, q2: Any, k: Any) -> Any:
        return (1 - 2 * B * q1) * (1 - 2 * B * q2) - 4 * B * B * k * k

    return Case(
        stax.Gaussian(a, b),
        lambda u: a * jnp.exp(b * u * u),
        lambda *q: A * A / mpmath.sqrt(delta(*q)),
        lambda q1, q2, k: 4 * A * A * B * B * k / delta(q1, q2, k) ** 1.5,
    )


def exponential(a: float, b: float) -> Case:
    A, B = mpmath.mpf(a), mpmath.mpf(b)

    def product(q1: Any, q2: Any, k: Any) -> Any:
        return A * A * mpmath.exp(B * B * (q1 + q2 + 2 * k) / 2)

    return Case(
        stax.Exp(a, b), lambda u: a * jnp.exp(b * u), product, lambda *q: B * B * product(*q)
    )


def gabor() -> Case:
    def parts(q1: Any, q2: Any, k: Any) -> Any:
        rest = 4 * (q1 * q2 - k * k)
        delta = 1 + 2 * (q1 + q2) + rest
        return delta, k / delta, mpmath.exp(-(q1 + q2 + rest) / (2 * delta)), rest

    def product(q1: Any, q2: Any, k: Any) -> Any:
        delta, x, size, _ = parts(q1, q2, k)
        return size * mpmath.sinh(x) / mpmath.sqrt(delta)

    def slopes(q1: Any, q2: Any, k: Any) -> Any:
        delta, x, size, rest = parts(q1, q2, k)
        even = 1 + 2 * (q1 + q2) + 4 * (q1 * q2 + k * k)
        odd = 4 * k * (2 + 3 * (q1 + q2) + rest)
        return size * delta**-2.5 * (even * mpmath.cosh(x) + odd * mpmath.sinh(x))

    return Case(stax.Gabor(), lambda u: jnp.exp(-u * u) * jnp.sin(u), product, slopes)


CASES: dict[str, Case] = {
    "erf": erf(1.5, 0.7, 0.0),
    "erf, all": erf(-0.8, -1.2, 0.6),
    "sigmoid-like": erf(0.5, 1 / 2.4020563531719796, 0.5)._replace(layer=stax.Sigmoid_like()),
    "sine": sine(stax.Sin(0.7, 1.3, 0.4), 0.7, 1.3, 0.4),
    "cosine": sine(stax.Cos(-1.4, 0.9), -1.4, 0.9, math.pi / 2),
    "rbf": sine(stax.Rbf(0.3), 2**0.5, 0.6**0.5, math.pi / 4),
    "gaussian": gaussian(0.6, -0.4),
    "exponential": exponential(0.7, -1.4),
    "gabor": gabor(),
}
every_case = pytest.mark.parametrize("name", CASES)
CLOSED = [name for name in CASES if name not in ("exponential", "gabor")]
X = np.random.default_rng(5).normal(size=(3, 3))


def by_formula(case: Case, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K and Θ of a Dense without bias and the activation, with 50 digits."""
    n = len(x)
    K, slopes = np.empty((n, n)), np.empty((n, n))
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(float(t)) for t in row] for row in x]
        k = [[mpmath.fdot(one, two) / len(one) for two in rows] for one in rows]
        for i in range(n):
            for j in range(n):
                K[i, j] = case.product(k[i][i], k[j][j], k[i][j])
                slopes[i, j] = k[i][j] * case.slopes(k[i][i], k[j][j], k[i][j])
    return K, slopes


@every_case
def test_formulas(name: str) -> None:
    case = CASES[name]
    x = np.concatenate([X, X[:1] * (1 + 1e-9)])
    found = stax.serial(stax.Dense(8), case.layer).kernel_fn(x, None, ("nngp", "ntk"))
    for ours, known in zip(found, by_formula(case, x), strict=True):
        assert relative(ours, known).max() < 5e-15


@pytest.mark.parametrize("name", CLOSED)
def test_formulas_at_all_lengths(name: str) -> None:
    """Where factors of the kernels would leave the range of float64, the closed forms do not."""
    case = CASES[name]
    x = np.array([[1e-4, 0.0], [0.0, 1e6], [1e5, 1e5]])
    found = stax.serial(stax.Dense(8), case.layer).kernel_fn(x, None, "nngp")
    assert relative(found, by_formula(case, x)[0]).max() < 5e-15
    far = stax.serial(stax.Dense(8), case.layer).kernel_fn([[1e150]], None, "nngp")
    assert math.isfinite(far[0, 0])


@every_case
def test_the_finite_network_is_that_of_the_function(name: str) -> None:
    case = CASES[name]
    network = stax.serial(stax.Dense(8), case.layer)
    _, params = network.init_fn(jax.random.key(0), X.shape)
    with jax.enable_x64(True):
        weights = np.asarray(jax.tree.leaves(params)[0], np.float64)
        expected = case.function(X @ weights / 3**0.5)
    np.testing.assert_allclose(network.apply_fn(params, X), expected, rtol=2e-5, atol=2e-6)


@every_case
def test_before_a_norm(name: str) -> None:
    """The mean features that LayerNorm subtracts, and RMSNorm leaves, beside those of the function itself."""
    case = CASES[name]
    dense = lnk.Dense(8, 1.2, 0.1)
    for norm in (lnk.LayerNorm(), lnk.RMSNorm(0.1), lnk.LayerNorm(0.1, scale=True, bias=True)):
        ours, own = (
            lnk.kernels(lnk.serial(dense, act, norm, dense))(X)
            for act in (case.layer.arch, lnk.Activate(case.function))
        )
        assert max(relative(one, two).max() for one, two in zip(ours, own, strict=True)) < 2e-14


# ---------------------------------------------------------------- nodes


def test_nodes_of_equal_parameters_are_equal() -> None:
    for make in (
        lambda: stax.Erf(2.0, 0.5, 1.0),
        stax.Sigmoid_like,
        lambda: stax.Sin(2.0),
        lambda: stax.Rbf(0.5),
        lambda: stax.Gaussian(2.0, -0.5),
        lambda: stax.Exp(2.0, 0.5),
        stax.Gabor,
    ):
        one, two = make().arch, make().arch
        assert one == two and hash(one) == hash(two)
    assert stax.Erf(2.0).arch != stax.Erf(2.5).arch


MEANINGS = {
    "erf": (stax.Erf(), lnk.Erf()),
    "sin": (stax.Sin(1, 2.0, 0.5), lnk.Sin(2.0, 0.5)),
    "gaussian": (stax.Gaussian(1, -1), lnk.Gaussian()),
    "exp": (stax.Exp(), lnk.Activate(jnp.exp)),
    "all": (
        stax.Erf(2.0, 0.5, -1.0),
        lnk.serial(lnk.Scale(0.5), lnk.Erf(), lnk.Scale(2.0), lnk.Shift(-1.0)),
    ),
    "in a serial": (
        stax.serial(stax.Dense(8), stax.Gaussian(2.0, -4.0)),
        lnk.serial(lnk.Dense(8), lnk.Scale(2.0), lnk.Gaussian(), lnk.Scale(2.0)),
    ),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_meaning(name: str) -> None:
    layer, arch = MEANINGS[name]
    assert layer.arch == arch


def test_parameters_have_derivatives() -> None:
    def entry(a: Any, b: Any, c: Any) -> Any:
        layer = stax.serial(stax.Dense(8), stax.Erf(a, b, c))
        return lnk.nngp(layer.arch)(X)[0, 1]

    with jax.enable_x64(True):
        slopes = jax.grad(entry, (0, 1, 2))(1.5, 0.7, 0.3)
    for place, slope in enumerate(slopes):
        ends = []
        for step in (1e-5, -1e-5):
            at = [1.5, 0.7, 0.3]
            at[place] += step
            ends.append(float(entry(*at)))
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)


# ---------------------------------------------------------------- functions of one's own


def arcsine(k: Any, q1: Any, q2: Any) -> Any:
    return 2 / jnp.pi * jnp.arcsin(2 * k / jnp.sqrt((1 + 2 * q1) * (1 + 2 * q2)))


def arcsine_slope(k: Any, q1: Any, q2: Any) -> Any:
    return 4 / jnp.pi / jnp.sqrt((1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k)


def test_elementwise_takes_right_formulas() -> None:
    fn = jax.scipy.special.erf
    for formulas in ((), (arcsine,), (arcsine, arcsine_slope), (None, arcsine_slope)):
        assert stax.Elementwise(fn, *formulas).arch == lnk.Activate(fn)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "another function's kernel": (
        lambda: stax.Elementwise(jnp.tanh, arcsine),
        r"stax.Elementwise: nngp_fn\(0\.166667, 0\.333333, 0\.5\) is 0\.1\d+, and E fn\(u\) fn\(v\) is .* Correct",
    ),
    "another function's slopes": (
        lambda: stax.Elementwise(jnp.tanh, None, arcsine_slope),
        r"d_nngp_fn\(.* and E fn'\(u\) fn'\(v\) is .* or leave d_nngp_fn out",
    ),
    "a formula that is not a number": (
        lambda: stax.Elementwise(jnp.tanh, lambda k, q1, q2: k * jnp.nan),
        "is nan, and E",
    ),
    "a formula alone": (lambda: stax.Elementwise(None, arcsine), "fn is missing, and kernels are"),
    "no height": (lambda: stax.Erf(a=0), "stax.Erf: a=0 makes it a constant"),
    "no slope": (lambda: stax.Exp(b=0.0), "stax.Exp: b=0 makes it a constant"),
    "not a number": (lambda: stax.Sin(a="1"), "stax.Sin: a must be a finite number, got '1'"),
    "infinite": (lambda: stax.Cos(c=math.inf), "c must be a finite number, got inf"),
    "a Gaussian that grows": (
        lambda: stax.Gaussian(b=0.5),
        r"b must be negative, got 0\.5: .* a variance below 0\.5 alone",
    ),
    "a flat Gaussian": (lambda: stax.Gaussian(b=0), "b=0 makes it a constant"),
    "gamma": (lambda: stax.Rbf(-1.0), r"gamma must be positive, got -1\.0"),
    "an exponential of long inputs": (
        lambda: stax.serial(stax.Dense(8), stax.Exp()).kernel_fn([[30.0]], None, "nngp"),
        r"grows faster than their Gaussian density falls, .* beyond 10 standard deviations.* put a LayerNorm there",
    ),
    "Gabor of long inputs": (
        lambda: stax.serial(stax.Dense(8), stax.Gabor()).kernel_fn([[30.0]], None, "nngp"),
        "its kernel is computed up to 4.*Put a LayerNorm before it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(LnkernelError, match=message):
        call()
