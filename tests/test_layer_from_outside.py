"""Layers that this file makes, outside of the package: all interpreters take them, or say what is missing.

`Tilted` is homogeneous and says no more than degree, a and b; it is LeakyRelu under other names.
`Bent`, u + bend u²/2, has a dual of its own, with mean features that differ between inputs. `Bump`,
exp(-u²/2), needs a special function, of which only float64 has a version. `Stretch` is a rule that
reads the difference of the lengths.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.arch.flow import Place, step
from lnkernel.arch.node import node
from lnkernel.arch.registry import BUILDERS, LAYERS, register
from lnkernel.arch.traits import traits
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.rules import rule
from lnkernel.calculus.special import special
from lnkernel.calculus.state import Mean, State
from lnkernel.errors import ArchitectureError, MissingFunctionError
from lnkernel.evaluate.balls import entries
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.finite.twins import twin

pytestmark = pytest.mark.usefixtures("programs_for_all_but_few")


@node
class Tilted(lnk.PositivelyHomogeneous):
    """max(u, 0) + tilt min(u, 0)."""

    tilt: float = 0.1

    degree = 1.0
    a = 1.0

    @property
    def b(self) -> float:  # type: ignore[override]
        return -self.tilt


@node
class Bent(lnk.Elementwise):
    """u + bend u²/2."""

    bend: float = 1.0


@dual.register
def _(layer: Bent, cov: Covariance, num: Arithmetic) -> Dual:
    r"""In Hermite polynomials $\phi(ru) = \frac{\beta q}2 + r\,u + \frac{\beta q}{\sqrt2}\,h_2(u)$, whose
    parts are orthogonal and have angles of cosine 1, ρ and ρ²."""
    half, square = 0.5 * layer.bend, 0.5 * layer.bend * layer.bend
    squares = [num.power(x.q, 2) for x in (cov.first, cov.second)]
    e2 = num.powered_difference(cov.e, 2, *squares)
    live = cov.first.live, cov.second.live

    def lengths(factor: Any) -> tuple[Length, Length]:
        return tuple(Length(factor * q, alive) for q, alive in zip(squares, live, strict=True))

    def sides(pair: Covariance) -> tuple[Length, Length]:
        return pair.first, pair.second

    def share(part: Length, whole: Length) -> Any:
        return num.sqrt(num.divide(part.q, whole.q))

    constant = Covariance(*lengths(0.5 * square), 0.0, 1.0, 1.0, e2)
    doubled = Covariance(
        *lengths(square), 2 * (cov.w * cov.z), 0.5 * (1 + cov.c * cov.c), cov.c * cov.c, e2
    )
    total, shares = orthogonal_sum(num, [constant, cov, doubled])
    centred, _ = orthogonal_sum(num, [cov, doubled])
    r1, r2 = num.sqrt(cov.first.q), num.sqrt(cov.second.q)
    k = r1 * (r2 * cov.c)
    curved = 2 * half * (2 * half)
    return Dual(
        total=total,
        mean=Mean(*map(share, sides(constant), sides(total)), e2),
        slope=shares[1] * (1 + curved * k),
        euler=shares[1] * (cov.c + curved * (r1 * r2) * (1 + 2 * (cov.c * cov.c))),
        derivative=lambda: (1 + curved * k,),
        centred=centred,
    )


@special
def bump(num: Arithmetic, q1: Any, q2: Any, w: Any, z: Any) -> Any:
    """E[exp(-u²/2) exp(-v²/2)] of a Gaussian pair."""
    raise NotImplementedError


@bump.register
def _(num: Float64, q1: Any, q2: Any, w: Any, z: Any) -> Any:
    return 1 / jnp.sqrt(1 + q1 + q2 + 4 * (q1 * q2) * (w * z))


@node
class Bump(lnk.Elementwise):
    """exp(-u²/2)."""


@dual.register
def _(layer: Bump, cov: Covariance, num: Arithmetic) -> Dual:
    q1, q2 = (num.sqrt(x.q) * num.sqrt(x.q) for x in (cov.first, cov.second))
    K, K1, K2 = bump(num, q1, q2, cov.w, cov.z), bump(num, q1, q1, 0, 1), bump(num, q2, q2, 0, 1)
    r1, r2, m1, m2 = map(num.sqrt, (K1, K2, 1 / (1 + q1), 1 / (1 + q2)))
    rho, k = K / (r1 * r2), num.sqrt(q1 * q2) * cov.c
    det = 4 * (q1 * q2) * (cov.w * cov.z)
    e = (r1 - r2) / (r1 + r2)
    return Dual(
        total=Covariance(Length(K1), Length(K2), 0.5 * (1 - rho), 0.5 * (1 + rho), rho, e),
        mean=Mean(m1 / r1, m2 / r2, (m1 - m2) / (m1 + m2)),
        slope=num.sqrt(q1 * q2) * k * K * K * rho,
        euler=((q1 + det) * (q2 + det) + 2 * k * k) * K**4 * rho,
    )


@node
class Stretch(lnk.Node):
    """Twice the vector, by a rule that looks at the difference of the lengths."""


@step.register
def _(layer: Stretch, place: Place, here: str) -> Place:
    return place


@rule.register
def _(layer: Stretch, state: State, num: Arithmetic) -> State:
    def doubled(cov: Covariance) -> Covariance:
        first, second = (Length(4.0 * x.q, x.live) for x in (cov.first, cov.second))
        return cov.with_lengths(first, second, cov.e + 0.0 * (cov.e * cov.e))

    offset = None if state.o is None else 4.0 * state.o
    return dataclasses.replace(
        state, total=doubled(state.total), centred=doubled(state.centred), o=offset
    )


RNG = np.random.default_rng(3)
MANY, FEW = RNG.normal(size=(200, 3)), RNG.normal(size=(6, 3))
D = lnk.Dense(64, 1.3, 0.2)
AFFINE = lnk.LayerNorm(eps=0.1, scale=True, bias=True)


def network(act: lnk.Node, *after: lnk.Node) -> lnk.Serial:
    return lnk.serial(D, AFFINE, act, *after, D, lnk.Relu(), D)


def distance(one: Any, two: Any) -> float:
    """Of two Gram matrices, relative to sqrt(k(x, x) k(x', x'))."""
    root = np.sqrt(np.diagonal(two))
    return float(np.max(np.abs(np.asarray(one) - two) / root / root[:, None]))


OTHER_NAME = [
    (network(Tilted(0.1), lnk.LayerNorm()), network(lnk.LeakyRelu(0.1), lnk.LayerNorm())),
    (lnk.serial(D, Stretch(), D), lnk.serial(D, lnk.Dense(64, 2.6, 0.2))),
]


# ---------------------------------------------------------------- layers under other names


@pytest.mark.parametrize("points", [MANY, FEW], ids=["quick", "careful"])
def test_a_homogeneous_layer_is_what_it_describes(points: np.ndarray) -> None:
    ours, known = OTHER_NAME[0]
    for mine, its in zip(lnk.kernels(ours)(points), lnk.kernels(known)(points), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("points", [MANY, FEW], ids=["quick", "careful"])
def test_a_rule_that_reads_the_difference_of_lengths(points: np.ndarray) -> None:
    stretched = lnk.serial(D, lnk.Relu(), Stretch(), D)
    known = lnk.serial(D, lnk.Relu(), dataclasses.replace(D, W_std=2.6))
    assert distance(lnk.nngp(stretched)(points), lnk.nngp(known)(points)) < 2e-15


def test_without_traits_the_answers_are_safe() -> None:
    found = traits(Stretch())
    assert found.needs_difference and found.needs_range and found.reads_centred
    assert not (found.is_monotone or found.forgets_mean or found.adds_bias or found.is_identity)
    sup = lnk.sup_diagonal(lnk.serial(D, lnk.LayerNorm(), Stretch(), D))
    assert sup.value == pytest.approx(4 * 1.3**2 * 2 + 0.04, rel=1e-12, abs=0)


def test_jit_and_gradients() -> None:
    ours, known = OTHER_NAME[0]
    with jax.enable_x64(True):
        slopes = [
            float(jax.grad(lambda t, make=make: lnk.ntk(network(make(t)))(FEW).sum())(0.1))
            for make in (Tilted, lnk.LeakyRelu)
        ]
        inside = jax.jit(lambda x: lnk.ntk(ours)(x))(FEW)
    assert slopes[0] == slopes[1] != 0
    np.testing.assert_allclose(inside, lnk.ntk(known)(FEW), rtol=1e-14)


def test_balls_take_every_hyperparameter_whatever_its_name() -> None:
    """1/10 is no binary number: where the field were left in float64, its square would be rounded,
    and the tiny balls would lie beside one another."""
    ours, known = (entries.ntk_balls(arch, FEW, 128) for arch in OTHER_NAME[0])
    assert all(mine.overlaps(its) for mine, its in zip(ours.flat, known.flat, strict=True))
    assert max(float(mine.rad()) for mine in ours.flat) < 1e-30


def test_growth_supremum_and_certificate() -> None:
    for arch in (lnk.mlp(activation=Tilted(0.5)), lnk.mlp(activation=lnk.LeakyRelu(0.5))):
        assert (
            lnk.sup_diagonal(arch).growth
            == lnk.sup_diagonal(lnk.mlp(activation=Tilted(0.5))).growth
        )
    ours, known = (lnk.mlp(norm="last", activation=a) for a in (Tilted(0.5), lnk.LeakyRelu(0.5)))
    mine, its = (lnk.sup_diagonal(arch, certify=True) for arch in (ours, known))
    assert (mine.enclosure, lnk.sup_diagonal(ours).method) == (its.enclosure, "monotone")


# ---------------------------------------------------------------- a dual of its own


def by_quadrature(arch_bend: float, q1: float, q2: float, k: float) -> dict[str, float]:
    """Expectations of u + bend u²/2 by Gauss-Hermite, which is exact for polynomials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    x, y = np.meshgrid(nodes, nodes)
    weight = np.outer(weights, weights) / (2 * np.pi)
    u, v = np.sqrt(q1) * x, k / np.sqrt(q1) * x + np.sqrt(q2 - k * k / q1) * y

    def mean(values: np.ndarray) -> float:
        return float((weight * values).sum())

    phi, slope = (lambda t: t + arch_bend * t * t / 2), (lambda t: 1 + arch_bend * t)
    return {
        "K": mean(phi(u) * phi(v)),
        "Kd": mean(slope(u) * slope(v)),
        "G": mean(u * slope(u) * v * slope(v)),
        "m": mean(phi(u)),
        "V": mean(phi(u) ** 2),
    }


@pytest.mark.parametrize("points", [MANY, FEW], ids=["quick", "careful"])
def test_kernels_by_quadrature(points: np.ndarray) -> None:
    """Dense, LayerNorm with eps, scale and bias, activation, LayerNorm, Dense; by the textbook."""
    arch = lnk.serial(D, AFFINE, Bent(0.7), lnk.LayerNorm(eps=0.2), D)
    both = lnk.kernels(arch)(points)
    for i, j in ((0, 1), (2, 3), (1, 4), (5, 5)):
        x, y = points[i], points[j]

        def dense(a: np.ndarray, b: np.ndarray) -> float:
            return 1.3**2 * float(a @ b) / 3 + 0.04

        g1, g2 = (np.sqrt(dense(a, a) + 0.1) for a in (x, y))
        k, q1, q2 = dense(x, y) / g1 / g2, dense(x, x) / g1**2, dense(y, y) / g2**2
        theta = k + 1.0  # of the bias; the scale is kept apart
        e = by_quadrature(0.7, q1, q2, k)
        e1, e2 = (by_quadrature(0.7, q, q, q * (1 - 1e-15)) for q in (q1, q2))
        theta = theta * e["Kd"] + e["G"]
        v1, v2 = (each["V"] - each["m"] ** 2 + 0.2 for each in (e1, e2))
        K = (e["K"] - e1["m"] * e2["m"]) / np.sqrt(v1 * v2)
        theta = theta / np.sqrt(v1 * v2)
        assert both.nngp[i, j] == pytest.approx(1.69 * K + 0.04, rel=1e-12, abs=0)
        assert both.ntk[i, j] == pytest.approx(1.69 * (K + theta) + 0.04, rel=1e-12, abs=0)


def test_near_duplicates_before_a_relu() -> None:
    """The quick, the careful and the traced way, and balls: a lost digit of the angle would be 1e-8."""
    arch = lnk.serial(D, Bent(0.7), lnk.LayerNorm(), D, lnk.Relu(), D)
    x = np.concatenate([FEW, FEW + 1e-13 * RNG.normal(size=FEW.shape), 3 * FEW])
    theta = np.asarray(lnk.ntk(arch)(x))
    exact = entries.gram(arch, x).ntk
    assert distance(theta, exact.middle) < 2e-15
    assert exact.radius.max() < 1e-14 * exact.middle.max()
    many = np.concatenate([x, MANY])
    assert distance(lnk.ntk(arch)(many)[: len(x), : len(x)], exact.middle) < 2e-15


def test_mean_features_that_differ_are_taken_off() -> None:
    """LayerNorm behind a dual that leaves the centred pair to the general formula."""
    arch = lnk.serial(D, Bump(), lnk.LayerNorm(eps=0.01), D)
    q = 1.69 * FEW @ FEW.T / 3 + 0.04
    own = np.diagonal(q)
    K = 1 / np.sqrt((1 + own[:, None]) * (1 + own) - q**2)
    mean = 1 / np.sqrt(1 + own)
    centred = K - mean[:, None] * mean
    size = np.sqrt(np.diagonal(centred) + 0.01)
    expected = 1.69 * centred / size / size[:, None] + 0.04
    assert distance(lnk.nngp(arch)(FEW), expected) < 1e-13  # the textbook's difference cancels
    near = np.concatenate([FEW[:3], FEW[:3] * (1 + 1e-9), FEW[:3] + 1e-7])
    relu = lnk.serial(D, Bent(0.7), lnk.LayerNorm(), D, lnk.Relu(), D)
    special_form = np.asarray(lnk.ntk(relu)(near))
    right = dual.dispatch(Bent)
    dual.register(Bent, lambda *args: right(*args)._replace(centred=None))
    other = lnk.serial(*relu.layers, lnk.Identity())  # the same, as a program of its own
    try:
        general = np.asarray(lnk.ntk(other)(near))
    finally:
        dual.register(Bent, right)
    assert 0 < distance(general, special_form) < 1e-14


def test_growth_of_a_polynomial() -> None:
    """Without a norm Θ(x, x) grows like |x|⁴ for one activation; behind one it is bounded."""
    bare = lnk.serial(lnk.Dense(8), Bent(1.0), lnk.Dense(1))
    found = lnk.sup_diagonal(bare)
    # K' = q + 3/4 q², Θ' = K' + q(1 + q): the square terms are 3/4 + 1
    assert found.growth.exponent == 4.0 and found.growth.coefficient == pytest.approx(1.75)
    normed = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), Bent(1.0), lnk.Dense(1))
    assert lnk.sup_diagonal(normed).value == pytest.approx(3.75)
    assert lnk.sup_diagonal(normed, certify=True).enclosure == pytest.approx((3.75, 3.75))


def test_against_random_networks(registered: None) -> None:
    affine = lnk.LayerNorm(scale=True, bias=True)
    ends = lnk.Dense(8, 1.2, 0.3), lnk.Dense(1, 1.2, 0.3)
    arch = lnk.serial(ends[0], affine, Bent(0.6), lnk.LayerNorm(), ends[1])
    found = lnk.finite.empirical_ntk_over_seeds(arch, FEW[:3], width=512, seeds=12)
    away = np.abs(found.mean - np.asarray(lnk.ntk(arch)(FEW[:3]))) / found.standard_error
    assert away.max() < 4.5


# ---------------------------------------------------------------- what is missing


def test_a_function_without_balls_has_kernels_and_no_certificate() -> None:
    arch = lnk.serial(D, lnk.LayerNorm(), Bump(), D)
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    k = lnk.nngp(arch)(x)
    rho = 0.04 / np.sqrt((1.69 / 2 + 0.04) * (1.69 * 2 + 0.04))
    assert k[0, 1] == pytest.approx(1.69 / np.sqrt(3 + 1 - rho**2) + 0.04, rel=1e-14, abs=0)
    with pytest.raises(MissingFunctionError, match="no certificate for this function: `bump`"):
        entries.gram(arch, x)
    with pytest.raises(MissingFunctionError, match="no law of growth for this function: `bump`"):
        lnk.sup_diagonal(arch)


def test_an_activation_without_a_dual() -> None:
    @node
    class Nothing(lnk.Elementwise):
        """No dual."""

    with pytest.raises(ArchitectureError, match=r"Nothing: this activation has no dual\. Register"):
        lnk.ntk(lnk.serial(D, Nothing(), D))(FEW)


def test_no_twin_and_no_name() -> None:
    with pytest.raises(
        ArchitectureError, match=r"Stretch at layer 1: .*has no twin of finite width"
    ):
        lnk.finite.network(lnk.serial(D, Stretch(), D), 3, rngs=0)
    with pytest.raises(lnk.errors.ArchitectureTextError, match=r"registry\.register"):
        lnk.parse("serial(Dense(8), Tilted(), Dense(1))")


@pytest.fixture
def registered() -> Iterator[None]:
    """Twins and names of both, for one test."""
    twin.register(
        Tilted, lambda layer, plan: (lambda u: jnp.where(u > 0, u, layer.tilt * u), plan.n_in)
    )
    twin.register(Bent, lambda layer, plan: (lambda u: u + layer.bend * u * u / 2, plan.n_in))
    register(Tilted), register(Bent)
    yield
    for name in ("Tilted", "Bent"):
        del BUILDERS[name], LAYERS[name]


def test_twin_text_and_certificate_file(registered: None, tmp_path: Any) -> None:
    arch = lnk.parse("serial(Dense(8), LayerNorm(), Tilted(tilt=0.3), Dense(1, b_std=0.5))")
    same = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.LeakyRelu(0.3), lnk.Dense(1, b_std=0.5))
    ours, known = (lnk.finite.network(each, 3, rngs=0)(FEW) for each in (arch, same))
    np.testing.assert_allclose(ours, known, rtol=1e-6)
    made = lnk.bound(arch, FEW, FEW[:, 0], certify=True).certificate
    made.save(tmp_path / "file.json")
    again = type(made).load(tmp_path / "file.json")
    assert again.arch == arch and again.verify()
