"""Activations with kinks, and analytic ones on long inputs: against 40 digits, random networks; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import oracle
import pytest
from flax import nnx
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.float64 import panels, quadrature
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.tabulation import table_of

RNG = np.random.default_rng(2)
X = RNG.normal(size=(150, 3))
D = lnk.Dense(8, 1.1, 0.3)
BEHIND = lnk.LayerNorm(), D, lnk.Relu(), D  # a lost digit of a small angle becomes 1e-8 here
AFFINE = lnk.LayerNorm(scale=True, bias=True)
ALL = [
    *(lnk.Elu(), lnk.Elu(0.3), lnk.Selu()),
    *(lnk.Clip(), lnk.Clip(0.0, 6.0), lnk.Clip(0.0, 1.0), lnk.Clip(0.5, 2.0)),
]

# the first point with the others: equal, close, opposite, on one line, short, anywhere
CORE = X[0]
POINTS = np.stack(
    [CORE, CORE, CORE + 1e-14 * X[2], -CORE, -CORE + 1e-10 * X[2], 2 * CORE, 1e-6 * CORE, 3 * X[1]]
)


def errors_of(arch: lnk.Node, points: np.ndarray) -> list[float]:
    """Of both kernels of the first point with each one, by 40 digits, relative to sqrt(k(x, x) k(x', x'))."""
    both = lnk.kernels(arch)(points[:1], points)
    found = []
    for j, x in enumerate(points):
        exact = oracle.pair(arch, points[0], x, dps=20)
        pairs = (both.ntk, exact.Theta, exact.Theta_scale), (both.nngp, exact.K, exact.K_scale)
        found.append(max(float(abs(made[0, j] - right) / scale) for made, right, scale in pairs))
    return found


@pytest.mark.parametrize(
    ("act", "norms"),
    [(lnk.Elu(), ()), (lnk.Clip(0.0, 1.0), ()), (lnk.Clip(), (AFFINE,))],
    ids=["elu", "clip", "clip by a table"],
)
def test_delicate_pairs(act: lnk.Piecewise, norms: tuple[lnk.Node, ...]) -> None:
    assert max(errors_of(lnk.serial(D, *norms, act, *BEHIND), POINTS)) < 6e-15


@pytest.mark.slow
@pytest.mark.parametrize("norms", [(), (AFFINE,), (lnk.LayerNorm(0.01, scale=True, bias=True),)])
@pytest.mark.parametrize("act", ALL, ids=repr)
def test_all_delicate_pairs(act: lnk.Piecewise, norms: tuple[lnk.Node, ...]) -> None:
    assert max(errors_of(lnk.serial(D, *norms, act, *BEHIND), POINTS)) < 6e-15


def test_a_kink_left_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same integrals with panels that do not end at the kinks."""

    def without_kinks(phi: Any, grading: Any) -> panels.Marks:
        return panels.Marks(jnp.array([0.3]), jnp.zeros(0))

    monkeypatch.setattr(quadrature, "marks_of", without_kinks)
    own = lnk.Dense(11, 1.1, 0.3)  # a network whose program no other test compiles, or finds
    errors = errors_of(lnk.serial(own, lnk.Clip(0.2, 1.0), *BEHIND), POINTS[[0, 7]])
    assert max(errors) > 1e-9


# ---------------------------------------------------------------- long inputs


def erf_kernels(x: np.ndarray, x2: np.ndarray) -> tuple[mpf, mpf]:
    """K and Θ of Dense, erf, Dense without biases."""
    one, two = ([mpf(float(t)) for t in row] for row in (x, x2))
    q1, q2, k = (mpmath.fdot(a, b) / len(a) for a, b in ((one, one), (two, two), (one, two)))
    root = mpmath.sqrt(1 + 2 * q1 + 2 * q2 + 4 * (q1 * q2 - k * k))
    K = 2 / mp.pi * mpmath.atan2(2 * k, root)
    return K, K + 4 / mp.pi * k / root


@pytest.mark.parametrize(
    "size", [*(pytest.param(s, marks=pytest.mark.slow) for s in (10.0, 1e3)), 1e7]
)
def test_long_inputs(size: float) -> None:
    """Of all scales: for erf there is a closed form, which is not used for a function of one's own."""
    points = size * np.concatenate([POINTS[[0, 3, 5, 7]], POINTS[:1] + 1e-9])
    arch = lnk.serial(lnk.Dense(8), lnk.Activate(jax.scipy.special.erf), lnk.Dense(1))
    both = lnk.kernels(arch)(points)
    with mp.workdps(50):
        own = [erf_kernels(x, x) for x in points]
        for i, x in enumerate(points):
            for j, y in enumerate(points):
                for made, right, a, b in zip(both, erf_kernels(x, y), own[i], own[j], strict=True):
                    assert abs(made[i, j] - right) / mpmath.sqrt(a * b) < 3e-14


def test_a_long_and_a_short_input() -> None:
    """E phi' phi' of a SELU, whose derivative jumps: given u, v is Gaussian, and one integral is left."""
    x, x2 = np.array([[1.0, 0.0]]), np.array([[-600.0, 800.0]])
    arch = lnk.serial(
        lnk.Dense(8, 2**0.5), lnk.Selu(), lnk.Dense(1)
    )  # lengths 1 and 1000, cosine -0.6
    found = lnk.kernels(arch)(x, x2)
    product = -600.0  # E uv, which is also the NTK before the activation
    slopes = (float(found.ntk[0, 0]) - float(found.nngp[0, 0])) / product
    alpha, size, s = mpf(lnk.Selu().alpha), mpf(lnk.Selu().scale), mpf(800)

    def given(u: mpf) -> mpf:
        m = -600 * u
        grown = mpmath.exp(m + s * s / 2) * mpmath.erfc((m + s * s) / s / mpmath.sqrt(2)) / 2
        return mpmath.ncdf(m / s) + alpha * grown

    def integrand(u: mpf) -> mpf:
        slope = mpf(1) if u > 0 else alpha * mpmath.exp(u)
        return slope * given(u) * mpmath.npdf(u)

    exact = size**2 * mpmath.quad(integrand, [-13, -4, -1, 0, 1, 4, 13])
    assert slopes == pytest.approx(float(exact), rel=2e-14)


@pytest.mark.slow
def test_long_inputs_of_a_second_layer() -> None:
    """Its lengths are estimated before anything is integrated: too short ones would leave NaN."""
    theta = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Elu(), lnk.Dense(8), lnk.Elu(), lnk.Dense(1)))
    row = np.asarray(theta([[3e7], [-3e7]], [[2e7]]))[:, 0]
    # as of a ReLU: opposite inputs are at a right angle behind the first layer
    assert row == pytest.approx([3e7 * 2e7 / 4, 3e7 * 2e7 / 2 / (2 * np.pi)], rel=1e-6)


@pytest.mark.parametrize("act", [lnk.Elu(), lnk.Activate(jnp.tanh)], ids=["elu", "own"])
def test_the_diagonal_of_long_inputs(act: lnk.Elementwise) -> None:
    """Longer than what integrals reach where the inputs are not known."""
    theta, x = lnk.ntk(lnk.serial(lnk.Dense(8), act, lnk.Dense(1))), [[3e3]]
    assert theta.diagonal(x)[0] == pytest.approx(theta(x)[0, 0], rel=1e-15, abs=0)


def test_lengths_that_a_program_cannot_know() -> None:
    """No number rather than a wrong one."""
    theta = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Elu(), lnk.Dense(1)))
    with jax.enable_x64(True):
        points = jnp.array([[1.0], [1e4]])
        inside, alone = jax.jit(theta)(points, points[:1] + 1), jax.jit(theta.diagonal)(points)
    assert float(inside[0, 0]) == pytest.approx(
        float(theta([[1.0]], [[2.0]])[0, 0]), rel=1e-15, abs=0
    )
    assert np.isnan(inside[1, 0])
    np.testing.assert_allclose(alone, theta.diagonal([[1.0], [1e4]]), rtol=1e-15)
    with pytest.raises(lnk.errors.ActivationRangeError, match=r"Elu: .* computed up to 1e\+152"):
        theta([[1e153]])


# ---------------------------------------------------------------- tables


def test_many_pairs_by_a_table() -> None:
    arch = lnk.serial(D, lnk.LayerNorm(), lnk.Clip(), *BEHIND)
    points = np.concatenate([X[:100], X[:10] + 1e-9, -X[:5]])
    many = np.asarray(lnk.ntk(arch)(points))
    few = [0, 1, 100, 101, 110]
    root = np.sqrt(np.diagonal(many)[few])
    apart = np.abs(many[np.ix_(few, few)] - lnk.ntk(arch)(points[few]))
    assert (apart / root / root[:, None]).max() < 4e-15
    np.testing.assert_array_equal(many, many.T)


def test_a_function_that_no_table_holds() -> None:
    """A clip that is nearly a sign bends at angles of 1e-3; then every pair is integrated."""
    assert table_of(lnk.Clip()) and not table_of(lnk.Clip(-1e-3, 1e-3))


# ---------------------------------------------------------------- derivatives


@pytest.mark.slow
def test_derivatives() -> None:
    def total(x: Any, alpha: Any) -> Any:
        arch = lnk.serial(D, lnk.Elu(alpha), lnk.LayerNorm(), D, lnk.Tanh(), D)
        return lnk.ntk(arch)(x[:1], x[1:]).sum()

    with jax.enable_x64(True):
        points = jnp.asarray(X[:3])
        h, step = 1e-6, jnp.asarray(RNG.normal(size=points.shape))
        by_x, by_alpha = jax.grad(total, argnums=(0, 1))(points, 0.8)
        along = float((by_x * step).sum())
        ahead, behind = (float(total(points + side * step, 0.8)) for side in (h, -h))
        up, down = (float(total(points, 0.8 + side)) for side in (h, -h))
    assert along == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)
    assert float(by_alpha) == pytest.approx((up - down) / (2 * h), rel=1e-7)


# ---------------------------------------------------------------- finite networks, names


@pytest.mark.parametrize(
    "act", [pytest.param(lnk.Elu(), marks=pytest.mark.slow), lnk.Clip(0.0, 1.0)], ids=repr
)
def test_random_networks(act: lnk.Piecewise) -> None:
    arch = lnk.serial(lnk.Dense(8, 1.2, 0.3), AFFINE, act, lnk.LayerNorm(), lnk.Dense(1, 1.2, 0.3))
    found = lnk.finite.empirical_ntk_over_seeds(arch, X[:3], width=1024, seeds=40)
    away = np.abs(found.mean - np.asarray(lnk.ntk(arch)(X[:3]))) / found.standard_error
    assert away.max() < 4.5


@pytest.mark.parametrize("act", [*ALL, lnk.Sign(), lnk.Step()], ids=repr)
def test_twin_reads_back_and_text(act: lnk.Elementwise) -> None:
    arch = lnk.serial(lnk.Dense(8), act, lnk.Dense(1))
    net = lnk.finite.network(arch, 3, rngs=0)
    assert lnk.finite.from_flax(net) == arch == lnk.parse(repr(arch))


@pytest.mark.parametrize(
    ("function", "layer"),
    [
        (nnx.elu, lnk.Elu()),
        (nnx.selu, lnk.Selu()),
        (nnx.hard_tanh, lnk.Clip(-1.0, 1.0)),
        (jax.nn.relu6, lnk.Clip(0.0, 6.0)),
    ],
)
def test_functions_of_flax(function: Callable[..., Any], layer: lnk.Piecewise) -> None:
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(3, 8, rngs=rngs), function, nnx.Linear(8, 1, rngs=rngs))
    assert lnk.finite.from_flax(net).layers[1] == layer
    with jax.enable_x64(True):
        u = jnp.linspace(-7, 7, 29)
        np.testing.assert_allclose(function_of(layer)(u), function(u), rtol=1e-15, atol=1e-16)


# ---------------------------------------------------------------- the constant C, and refusals


def test_supremum_behind_a_layernorm() -> None:
    arch = lnk.mlp(hidden=1, norm="first", activation=lnk.Elu())
    sup = lnk.sup_diagonal(arch)
    assert sup.is_constant
    assert sup.value == pytest.approx(float(lnk.ntk(arch).diagonal([[7.0]])[0]), rel=4e-15)


def test_what_is_refused() -> None:
    with pytest.raises(lnk.errors.MissingFunctionError, match="no certificate"):
        lnk.sup_diagonal(lnk.mlp(activation=lnk.Elu(), norm="first"), certify=True)
    with pytest.raises(lnk.errors.ArchitectureError, match="low must be below high"):
        lnk.Clip(1.0, 0.0)


# ---------------------------------------------------------------- jumps


@pytest.mark.parametrize("act", [lnk.Sign(), lnk.Step()], ids=repr)
def test_a_jump_has_no_ntk(act: lnk.Elementwise) -> None:
    arch = lnk.mlp(hidden=1, activation=act)
    for make in (lnk.ntk, lnk.kernels):
        with pytest.raises(lnk.errors.ArchitectureError, match=r"layer 1: its NTK does not exist"):
            make(arch)
    with pytest.raises(lnk.errors.LnkernelError):
        lnk.sup_diagonal(arch)


def test_kernels_of_jumps() -> None:
    """With a ReLU behind, for inputs 1e-13 apart as well: by the textbook in 50 digits."""
    x, y = X[0], X[0] + 1e-13 * X[1]
    for act, size, offset in ((lnk.Sign(), mpf(1), mpf(0)), (lnk.Step(), mpf(1) / 4, mpf(1) / 4)):
        arch = lnk.serial(lnk.Dense(8), act, lnk.Dense(8), lnk.Relu(), lnk.Dense(1))
        made = float(lnk.nngp(arch)(x[None], y[None])[0, 0])
        with mp.workdps(60):
            a, b = ([mpf(float(t)) for t in v] for v in (x, y))
            rho = mpmath.fdot(a, b) / mpmath.sqrt(mpmath.fdot(a, a) * mpmath.fdot(b, b))
            k = size * (1 - 2 * mpmath.acos(rho) / mp.pi) + offset
            cosine = k / (size + offset)
            angle = mpmath.acos(cosine)
            turned = mpmath.sin(angle) + (mp.pi - angle) * cosine
            exact = (size + offset) * turned / (2 * mp.pi)
        assert made == pytest.approx(float(exact), rel=1e-15, abs=0)


def test_a_spread_that_underflows_is_refused() -> None:
    """Clip(0.5, 2) is constant around 0: of inputs shorter than a fortieth of 0.5 the variance is below 1e-308.

    With h = 0.5/r large and P = P(u > 0.5), what u exceeds 0.5 by is nearly exponential with mean r/h. So
    E φ'² = P and Var φ = 2 P (r/h)², and r² E φ'²/Var φ = h²/2, which is what Θ has beside K = 1.
    """
    arch = lnk.serial(lnk.Dense(8), lnk.Clip(0.5, 2.0), lnk.LayerNorm(), lnk.Dense(1))
    h = 36.0
    found = lnk.ntk(arch).diagonal([[0.5 / h]])[0]
    assert abs((found - 1) / (h * h / 2) - 1) < 5 / h**2
    for x in ([[0.0125]], [[1e-5]]):
        with pytest.raises(lnk.errors.KernelOverflowError, match="give the LayerNorm an eps"):
            lnk.ntk(arch).diagonal(x)
    soft = lnk.serial(lnk.Dense(8), lnk.Clip(0.5, 2.0), lnk.LayerNorm(eps=1e-5), lnk.Dense(1))
    assert lnk.ntk(soft).diagonal([[1e-5]])[0] == 0.0  # below 1e-308, and eps is what is divided by
