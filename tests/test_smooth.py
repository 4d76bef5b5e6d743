"""Analytic activations: against closed forms, 40 digits, random networks; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import activation_cases
import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import smooth_oracle
from flax import nnx
from flint import arb, ctx
from mpmath import mpf

import lnkernel as lnk
from benchmarks import accuracy
from lnkernel.evaluate.float64 import arithmetic, choice, expansion
from lnkernel.evaluate.float64.choice import Choice, choice_for
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite import features
from lnkernel.evaluate.float64.moments import moments_of
from lnkernel.gram import by_length, eager

RNG = np.random.default_rng(2)
X = RNG.normal(size=(150, 3))
D = lnk.Dense(8, 1.1, 0.3)
ALL = [
    *(lnk.Gelu(), lnk.Gelu(approximate=True), lnk.Silu(), lnk.Silu(2.0), lnk.Tanh(), lnk.Erf()),
    *(lnk.Sigmoid(), lnk.Softplus(), lnk.Softplus(3.0), lnk.Sin(), lnk.Sin(1.5, 0.4), lnk.Cos(1.2)),
    lnk.Gaussian(),
]


def distance(one: Any, two: Any, diagonal: Any) -> float:
    """Relative to sqrt(k(x, x) k(x', x'))."""
    root = np.sqrt(diagonal)
    return float(np.max(np.abs(np.asarray(one) - two) / root / root[:, None]))


# ---------------------------------------------------------------- closed forms


def closed_erf(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
    delta = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k
    return 2 / np.pi * np.arctan2(2 * k, np.sqrt(delta)), 4 / np.pi / np.sqrt(delta)


def closed_gelu(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
    s1, s2, delta = 1 + q1, 1 + q2, (1 + q1) * (1 + q2) - k * k
    angle, root = np.arctan2(np.sqrt(delta), -k), np.sqrt(delta)
    product = k * angle + (k * k / (s1 * s2) + q1 / s1 * q2 / s2 * delta) / root
    return product / (2 * np.pi), (angle + k / root * (1 / delta + 1 / s1 + 1 / s2)) / (2 * np.pi)


def closed_sin(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
    size = np.exp(-(q1 + q2) / 2)
    return size * np.sinh(k), size * np.cosh(k)


def closed_cos(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
    size = np.exp(-(q1 + q2) / 2)
    return size * np.cosh(k), size * np.sinh(k)


def closed_gaussian(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
    delta = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k
    return delta**-0.5, 4 * k * delta**-1.5


@pytest.mark.parametrize("points", [X, X[:8]], ids=["quick", "careful"])
@pytest.mark.parametrize(
    ("act", "closed"),
    [
        (lnk.Erf(), closed_erf),
        (lnk.Gelu(), closed_gelu),
        (lnk.Sin(), closed_sin),
        (lnk.Cos(), closed_cos),
        (lnk.Gaussian(), closed_gaussian),
    ],
    ids=["erf", "gelu", "sin", "cos", "gaussian"],
)
def test_closed_forms(act: lnk.Smooth, closed: Callable[..., Any], points: np.ndarray) -> None:
    """K' and E phi' phi' of one layer with lengths that differ; by the textbook, so to 1e-13."""
    first, last = lnk.Dense(8, 1.1, 0.3), lnk.Dense(1, 1.2, 0.1)
    k = 1.1**2 * points @ points.T / 3 + 0.09
    own = np.diagonal(k)
    K, slopes = closed(own[:, None], own, k)
    K, theta = 1.44 * K + 0.01, 1.44 * (K + k * slopes) + 0.01
    both = lnk.kernels(lnk.serial(first, act, last))(points)
    assert distance(both.nngp, K, np.diagonal(K)) < 1e-13
    assert distance(both.ntk, theta, np.diagonal(theta)) < 1e-13


@pytest.mark.parametrize("act", ALL, ids=repr)
def test_the_function_is_what_it_says(act: lnk.Smooth) -> None:
    """phi, phi - phi(0) also for short inputs, and the derivative by JAX, against 50 digits."""
    known = smooth_oracle.FUNCTIONS[type(act).__name__]
    with jax.enable_x64(True), ctx.workprec(192):
        phi, (at_zero, _) = function_of(act), known(act, arb(0))
        for u in (-3.0, -0.7, 1e-3, 1e-9, 0.4, 5.0):
            value, slope = known(act, arb(u))
            assert float(phi(jnp.asarray(u))) == pytest.approx(float(value), rel=2e-15)
            rest = float(value - at_zero)
            assert float(phi.rest(jnp.asarray(u))) == pytest.approx(rest, rel=4e-15)
            assert float(jax.grad(phi.rest)(u)) == pytest.approx(float(slope), rel=1e-13, abs=1e-15)


# ---------------------------------------------------------------- 40 digits

PAIRS = {
    "random": (X[0], X[1]),
    "1e-13 apart": (X[0], X[0] + 1e-13 * X[2]),
    "antipodal": (X[0], -X[0]),
    "collinear": (X[0], 2 * X[0]),
    "short and collinear": (1e-6 * X[0], 2e-6 * X[0]),
    "equal": (X[0], X[0]),
}
BEHIND = lnk.LayerNorm(), D, lnk.Relu(), D  # a lost digit of a small angle becomes 1e-8 here


def error_of(arch: lnk.Node, x: np.ndarray, x2: np.ndarray) -> float:
    exact = oracle.pair(arch, x, x2, dps=20)
    found = [lnk.kernels(arch)(x[None], x2[None]), lnk.kernels(arch)(np.stack([x, x2]))]
    values = [
        (both.ntk.flat[place], both.nngp.flat[place])
        for both, place in zip(found, (0, 1), strict=True)
    ]
    return max(
        float(abs(number - right) / scale)
        for pair in values
        for number, right, scale in zip(
            pair, (exact.Theta, exact.K), (exact.Theta_scale, exact.K_scale), strict=True
        )
    )


@pytest.mark.parametrize("pair", ["random", "1e-13 apart", "short and collinear"])
def test_tanh_to_the_last_digits(pair: str) -> None:
    assert error_of(lnk.serial(D, lnk.Tanh(), *BEHIND), *PAIRS[pair]) < 2e-15


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("act", ALL, ids=repr)
def test_to_the_last_digits(act: lnk.Smooth, pair: str) -> None:
    affine = lnk.LayerNorm(0.01, scale=True, bias=True)
    for arch in (lnk.serial(D, act, *BEHIND), lnk.serial(D, affine, act, *BEHIND)):
        # mostly 1e-15; 9e-15 for a cosine of short inputs, of which LayerNorm leaves a small difference
        assert error_of(arch, *PAIRS[pair]) < 2e-14


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("act", [lnk.Gelu(), lnk.Cos(1.2)], ids=repr)
def test_quick_and_careful_agree(act: lnk.Smooth) -> None:
    """On lengths that differ, behind a LayerNorm with eps, and before one on its features."""
    arch = lnk.serial(D, lnk.LayerNorm(0.3), act, *BEHIND)
    points = np.concatenate([X[:100], X[:20] + 1e-9, -X[:10], np.zeros((1, 3))])
    many = np.asarray(lnk.ntk(arch)(points))
    few = [0, 1, 100, 101, 120, 130]
    assert (
        distance(many[np.ix_(few, few)], lnk.ntk(arch)(points[few]), np.diagonal(many)[few]) < 4e-15
    )
    assert np.linalg.eigvalsh(many)[0] > -1e-12
    np.testing.assert_array_equal(many, many.T)


def test_a_deep_network_is_a_loop() -> None:
    """Whose state between two blocks has a mean; against the recursion of the textbook."""
    q = theta = 2 * float(np.square(X[0]).mean()) + 0.01
    for _ in range(20):
        found = moments_of(lnk.Sigmoid(), q**0.5)
        q = 2 * found.square + 0.01
        theta = q + 2 * theta * found.slopes
    deep = lnk.mlp(hidden=20, activation=lnk.Sigmoid(), W_std=2**0.5, b_std=0.1)
    assert float(lnk.ntk(deep).diagonal(X[:1])[0]) == pytest.approx(theta, rel=1e-14, abs=0)


def test_every_length_behind_a_layernorm() -> None:
    theta = lnk.ntk(lnk.mlp(norm="first", activation=lnk.Silu()))
    x = X[:4] * np.array([1e-150, 1e-6, 1e6, 1e150])[:, None]
    unit = X[:4] / np.linalg.norm(X[:4], axis=1)[:, None]
    biased = lnk.mlp(norm="first", activation=lnk.Silu(), b_std=0.0)
    assert np.isfinite(np.asarray(theta(x))).all()
    assert distance(lnk.ntk(biased)(x), lnk.ntk(biased)(unit), lnk.ntk(biased).diagonal(x)) < 4e-15


@pytest.mark.parametrize(
    ("network", "start"),
    [
        pytest.param(
            lambda omega: lnk.serial(D, lnk.Sin(omega, 0.2), lnk.LayerNorm(), D, lnk.Tanh(), D),
            1.3,
            marks=pytest.mark.slow,  # its program takes more than a minute to compile
            id="sin, LN, tanh",
        ),
        pytest.param(
            lambda eps: lnk.serial(D, lnk.LayerNorm(eps), lnk.Tanh(), D),
            0.3,
            id="LN with eps, tanh",
        ),
    ],
)
def test_derivatives(network: Callable[[Any], lnk.Node], start: float) -> None:
    """By the inputs, of which one pair is a point with itself, and by a hyperparameter."""

    def total(x: Any, number: Any) -> Any:
        return lnk.ntk(network(number))(x[:2], x[1:]).sum()

    with jax.enable_x64(True):
        points = jnp.asarray(X[:3])
        h, step = 1e-6, jnp.asarray(RNG.normal(size=points.shape))
        by_x, by_number = jax.grad(total, argnums=(0, 1))(points, start)
        along = float((by_x * step).sum())
        ahead, behind = (float(total(points + side * step, start)) for side in (h, -h))
        up, down = (float(total(points, start + side)) for side in (h, -h))
    assert along == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)
    assert float(by_number) == pytest.approx((up - down) / (2 * h), rel=1e-7)


def test_twice_the_terms_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    arch = lnk.mlp(activation=lnk.Tanh(), W_std=1.2)
    monkeypatch.setattr(arithmetic, "FEW_PAIRS", X.size**2)  # the terms themselves, no products
    chosen, asked = np.asarray(lnk.ntk(arch)(X[:40])), []
    right = expansion.choice_for

    def twice(layer: lnk.Smooth, length: float) -> Choice:
        asked.append(2 * right(layer, length).terms)
        return Choice(asked[-1], None)

    monkeypatch.setattr(expansion, "choice_for", twice)
    # what was found for inputs of these lengths is kept
    monkeypatch.setattr(by_length, "_dissect_within", by_length._dissect_within.__wrapped__)
    more = np.asarray(lnk.ntk(arch)(X[:40]))
    assert len(asked) >= 2  # by both layers, and for the tables that they share
    assert distance(chosen, more, np.diagonal(more)) < 1e-15


@pytest.mark.parametrize("act", [lnk.Sigmoid(), lnk.Softplus()], ids=repr)
@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_the_mean_before_a_layernorm_of_short_inputs(act: lnk.Smooth, size: float) -> None:
    """It is nearly all of the features, and a LayerNorm takes it away."""
    arch = lnk.serial(lnk.Dense(8), act, lnk.LayerNorm(), lnk.Dense(1, b_std=0.1))
    x = size * X[:2]
    exact = oracle.pair(arch, x[0], x[1], 30)
    found = lnk.ntk(arch)(x)[0, 1]
    assert abs(float((found - exact.Theta) / exact.Theta_scale)) < 1e-14


def test_too_few_terms_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No number rather than a wrong one: so it is inside a program, where nothing can be raised.
    The diagonal needs no series."""
    monkeypatch.setattr(expansion, "choice_for", lambda layer, r: choice.Choice(32, None))
    found = np.asarray(lnk.ntk(lnk.serial(D, lnk.Tanh(), D))(X[:3]))
    np.testing.assert_array_equal(np.isnan(found), ~np.eye(3, dtype=bool))


def test_enough_terms_are_never_too_few() -> None:
    """What is chosen for a length is not refused at it; and what is too little always is."""
    layers = [lnk.Sin(), lnk.Cos(2.0), lnk.Erf(), lnk.Sigmoid(), lnk.Silu(3.0), lnk.Tanh()]
    for layer in layers:
        for r in np.geomspace(0.4, 2.0, 14):
            choice = choice_for(layer, r)
            if choice is not None:
                found = features(layer, np.asarray(r), choice.terms)
                assert np.isfinite(float(found.size)), (layer, r)
    for r in (1.0, 2.0, 4.0):
        assert np.isnan(float(features(lnk.Tanh(), np.asarray(r), 64).size))


def test_a_small_angle_that_arises_inside_is_computed_with_care() -> None:
    """Short inputs are far apart, but behind the bias they are close: what ReLU then makes of them."""
    x = np.concatenate([X[:60], 1e-3 * X[:5]])
    arch = lnk.serial(D, lnk.Tanh(), D, lnk.Relu(), D)
    quick, careful = lnk.ntk(arch)(x), lnk.ntk(arch)(x[60:])
    assert distance(quick[60:, 60:], careful, np.diagonal(careful)) < 2e-15
    assert careful[0, 1] == pytest.approx(float(oracle.kernels(arch, x[60], x[61])[1]), rel=2e-15)


# ---------------------------------------------------------------- tables behind a norm


QUICK = (lnk.Gelu(approximate=True), lnk.Tanh(), lnk.Sin(1.5, 0.4), lnk.Softplus())


@pytest.mark.parametrize(
    "act",
    [*QUICK, *(pytest.param(act, marks=pytest.mark.slow) for act in ALL if act not in QUICK)],
    ids=repr,
)
def test_tables_are_the_series(act: lnk.Smooth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a norm without eps; with a ReLU behind, to which a lost digit of a small angle would be 1e-8."""
    x = np.concatenate([X[:20], X[:4] + 1e-9 * X[4:8], X[:3] + 1e-14, -1.3 * X[:4], 1e-3 * X[:4]])
    norm = lnk.LayerNorm(scale=True, bias=True)
    arch = lnk.serial(D, norm, act, lnk.LayerNorm(), D, lnk.Relu(), D, act, lnk.RMSNorm(), D)
    tables = lnk.kernels(arch)(x)
    right = expansion.choice_for
    monkeypatch.setattr(
        expansion, "choice_for", lambda layer, r: right(layer, r)._replace(degrees=None)
    )
    series = lnk.kernels(arch)(x)
    for one, two in zip(tables, series, strict=True):
        assert not np.array_equal(one, two)  # computed in two ways
        assert distance(one, two, np.diagonal(two)) < 4e-15


# ---------------------------------------------------------------- finite networks, names


@pytest.mark.parametrize("act", [lnk.Gelu(), lnk.Tanh(), lnk.Softplus()], ids=repr)
def test_random_networks(act: lnk.Smooth) -> None:
    affine = lnk.LayerNorm(scale=True, bias=True)
    arch = lnk.serial(lnk.Dense(8, 1.2, 0.3), affine, act, lnk.LayerNorm(), lnk.Dense(1, 1.2, 0.3))
    found = lnk.finite.empirical_ntk_over_seeds(arch, X[:3], width=1024, seeds=40)
    away = np.abs(found.mean - np.asarray(lnk.ntk(arch)(X[:3]))) / found.standard_error
    assert away.max() < 4.5


@pytest.mark.parametrize("act", ALL, ids=repr)
def test_twin_reads_back_and_text(act: lnk.Smooth) -> None:
    arch = lnk.serial(lnk.Dense(8), act, lnk.Dense(1))
    net = lnk.finite.network(arch, 3, rngs=0)
    assert lnk.finite.from_flax(net) == arch == lnk.parse(repr(arch))
    h = np.asarray(net.layers[0](jnp.asarray(X[:2], jnp.float32)))
    expected = np.asarray(function_of(act)(jnp.asarray(h)))
    np.testing.assert_allclose(net.layers[1](jnp.asarray(h)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "layer"),
    [
        (nnx.gelu, lnk.Gelu(approximate=True)),
        (nnx.silu, lnk.Silu()),
        (jax.nn.swish, lnk.Silu()),
        (jnp.tanh, lnk.Tanh()),
        (nnx.sigmoid, lnk.Sigmoid()),
        (nnx.softplus, lnk.Softplus()),
        (jnp.sin, lnk.Sin()),
        (jnp.cos, lnk.Cos()),
        (jax.scipy.special.erf, lnk.Erf()),
    ],
)
def test_functions_of_flax(function: Any, layer: lnk.Smooth) -> None:
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(3, 8, rngs=rngs), function, nnx.Linear(8, 1, rngs=rngs))
    assert lnk.finite.from_flax(net).layers[1] == layer
    with jax.enable_x64(True):
        u = jnp.linspace(-3, 3, 13)
        np.testing.assert_allclose(function_of(layer)(u), function(u), rtol=1e-13, atol=1e-15)


def test_the_length_behind_a_layernorm_in_a_program() -> None:
    """It enters all entries of a matrix. By a chain of additions it would be off by 3e-15."""
    squares = jax.jit(lambda r: features(lnk.Tanh(), r, 256).size ** 2)
    for r in np.linspace(0.3, 0.95, 14):
        q = mpf(float(r)) ** 2
        exact = float(smooth_oracle.expectations(lnk.Tanh(), q, q, mpf(1)).product)
        with jax.enable_x64(True):
            found = float(squares(jnp.float64(r)))
        assert abs(found / exact - 1) < 1e-15


def test_a_zero_vector_costs_no_digits_behind_a_layernorm() -> None:
    """With one among the points, lengths behind a LayerNorm are not known to be equal before any number is."""
    arch = cases.smooth()["tanh LN first"].arch
    points = np.concatenate([[X[0], X[0] + 0.1 * X[1], np.zeros(3)], X[2:62]])
    usual = lnk.kernels(arch)(points[:12])
    with eager.without_numpy():
        quick = lnk.kernels(arch)(points)
    for one, other in zip(usual, quick, strict=True):
        assert distance(other[:12, :12], one, np.diag(one)) < 1.6e-15


# ---------------------------------------------------------------- the constant C


@pytest.mark.parametrize("act", ALL, ids=repr)
def test_moments(act: lnk.Smooth) -> None:
    arch = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), act, lnk.Dense(1))
    found, both = moments_of(act, 1.0), lnk.kernels(arch).diagonal([[2.0, 1.0]])
    assert float(both.nngp[0]) == pytest.approx(found.square, rel=2e-15)
    assert float(both.ntk[0]) == pytest.approx(found.square + found.slopes, rel=4e-15)
    exact = smooth_oracle.expectations(act, mpf(1), mpf(1), mpf(1))
    assert found.square == pytest.approx(float(exact.product), rel=2e-15)
    assert found.slopes == pytest.approx(float(exact.slopes), rel=4e-15)
    assert found.euler == pytest.approx(float(exact.euler), rel=4e-15)
    assert found.mean == pytest.approx(float(exact.mean), rel=2e-15, abs=1e-16)


def test_supremum_behind_a_layernorm() -> None:
    arch = lnk.mlp(norm="first", activation=lnk.Gelu())
    sup = lnk.sup_diagonal(arch)
    assert sup.is_constant and sup.value == pytest.approx(
        float(lnk.ntk(arch).diagonal([[7.0]])[0]), rel=4e-15
    )
    b = lnk.bound(arch, [[-1.0], [0.3], [1.0]], [1.0, 0.0, 1.0])
    mean = lnk.posterior(arch, [[-1.0], [0.3], [1.0]], [1.0, 0.0, 1.0]).mean(
        np.geomspace(0.1, 1e9, 50)[:, None]
    )
    assert np.abs(mean).max() <= b.rkhs < np.inf


def test_what_is_refused() -> None:
    with pytest.raises(lnk.errors.ActivationRangeError, match=r"Tanh: .* deviation of 1\.41e\+153"):
        lnk.ntk(lnk.mlp(activation=lnk.Tanh()))([[1e153]])
    with pytest.raises(lnk.errors.ArchitectureError, match="beta must be positive"):
        lnk.Softplus(0.0)


def test_a_hyperparameter_that_is_an_array() -> None:
    with jax.enable_x64(True):
        made = lnk.ntk(lnk.serial(D, lnk.Sin(jnp.asarray(1.5)), D))(X[:3])
    np.testing.assert_array_equal(made, lnk.ntk(lnk.serial(D, lnk.Sin(1.5), D))(X[:3]))


def test_the_table_of_accuracy_has_them() -> None:
    rows = {name for name, _, _ in accuracy.jobs(False, None)}
    assert cases.smooth().keys() | activation_cases.table().keys() <= rows


def test_the_table_of_accuracy_has_every_activation() -> None:
    def names(arch: Any) -> set[str]:
        parts = getattr(arch, "layers", getattr(arch, "branches", ()))
        return {type(arch).__name__}.union(*map(names, parts))

    shown = set().union(*(names(case.arch) for _, case, _ in accuracy.jobs(False, None)))
    every = {name for name in lnk.__all__ if _is_activation(getattr(lnk, name))}
    assert every <= shown and "Silu" in every


def _is_activation(thing: Any) -> bool:
    """Those that are not the common type of others."""
    if not (isinstance(thing, type) and issubclass(thing, lnk.Elementwise)):
        return False
    return not any(kind in thing.__subclasses__() for kind in vars(lnk).values())
