"""Pairs of any two lengths from tables of slopes: against closed forms to 110 digits, double integrals to 18, and one
integral."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import kinked_oracle
import long_oracle
import mpmath
import numpy as np
import oracle
import pytest
from listed_pairs import angles, assert_exact, covariance, draw, refuse_programs
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.quadrature import Integrated
from lnkernel.calculus.series import expectations
from lnkernel.evaluate.float64 import pair_tables, polar
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.expansion import expand
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.moments import moments_at
from lnkernel.evaluate.float64.pair_tables import dual_by_tables, suits
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.gram import eager, tiled

KINKED = [
    *((lnk.Elu(), longest) for longest in (1e-3, 1.5, 10.0)),
    *((lnk.Selu(), longest) for longest in (0.3, 10.0)),
    (lnk.Elu(0.3), 6.0),
    (lnk.Elu(-2.0), 3.0),
    (lnk.Elu(0.0), 2.0),
]
SMOOTH = [
    *((lnk.Tanh(), longest) for longest in (1.0, 8.0, 22.0)),
    *((lnk.Silu(), longest) for longest in (8.0, 40.0)),
    *((lnk.Gelu(approximate=True), longest) for longest in (5.0, 16.0)),
    (lnk.Sigmoid(), 8.0),
    (lnk.Softplus(2.0), 8.0),
]
SEED = 5
COUNT = 6
Oracle = Callable[[lnk.Elementwise, mpf, mpf, mpf], kinked_oracle.Expectations]


def some_pairs(longest: float, shortest: float = -4.0) -> tuple[np.ndarray, ...]:
    """Lengths of all sizes, some nearly equal, at small angles and at larger ones, acute and obtuse."""
    order = np.arange(COUNT)
    powers = np.array([-24, -16, -8, -4, -1, -0.4])
    return draw(longest, (order % 3 == 0, -12.0, shortest), powers, order % 2 == 1)


def errors_of(
    layer: lnk.Elementwise, longest: float, oracle: Oracle, dps: int, least: float = 0.0
) -> list[float]:
    """Those of an angle beside its root, or that of the `least`: what a ReLU behind makes of it. And those of the other
    numbers. Beside a large mean 18 digits leave few of what is left of short inputs."""
    r1, r2, w, z = some_pairs(longest, -1.0 if least else -4.0)
    assert suits(layer, longest)
    found = dual_by_tables(layer, covariance(r1, r2, w, z), longest)
    assert found is not None
    euler, errors = found.euler(), list[mpf]()
    for k in range(COUNT):
        with mp.workdps(dps):
            q1, q2 = mpf(r1[k]) ** 2, mpf(r2[k]) ** 2
            rho = 1 - 2 * mpf(w[k]) if w[k] < z[k] else 2 * mpf(z[k]) - 1
            pair = oracle(layer, q1, q2, rho)
            one, two = (oracle(layer, q, q, mpf(1)) for q in (q1, q2))
            size = mpmath.sqrt(one.product * two.product)
            exact = angles(pair.product, one.product, two.product)
            rest = (e.product - e.mean**2 for e in (one, two))
            centred = angles(pair.product - one.mean * two.mean, *rest)
        for cov, right in ((found.total, exact), (found.centred, centred)):
            for mine, angle in zip((cov.w[k], cov.z[k]), right, strict=True):
                errors.append((mine - angle) / mpmath.sqrt(max(abs(angle), least)))
        slope = r1[k] * r2[k] * pair.slopes / size  # long inputs of what saturates have large ones
        errors += [
            (found.slope[k] - slope) / max(1, slope),
            euler[k] - pair.euler / size,
            found.mean.first[k] - one.mean / mpmath.sqrt(one.product),
            found.total.first.q.high[k] / one.product - 1,
        ]
    return [float(abs(error)) for error in errors]


@pytest.mark.parametrize(("layer", "longest"), KINKED, ids=repr)
def test_kinks_at_0(layer: lnk.Elu | lnk.Selu, longest: float) -> None:
    """The largest of other seeds is 8e-15: of Selu at obtuse angles whose image is at a tenth of a right one."""
    assert max(errors_of(layer, longest, kinked_oracle.elu, 110)) < 1e-14


@pytest.mark.parametrize(("layer", "longest"), SMOOTH, ids=repr)
def test_smooth_functions(layer: lnk.Elementwise, longest: float) -> None:
    """By 18 digits, of which a small angle leaves few."""
    assert max(errors_of(layer, longest, long_oracle.expectations, 25, 1e-6)) < 1e-14


@pytest.mark.parametrize("longest", [24.0, 128.0])
def test_long_inputs(longest: float) -> None:
    """Given u, v is Gaussian, and one integral is left."""
    layer = lnk.Selu()
    r1, r2 = np.array([0.3 * longest, longest]), np.array([longest, 0.1])
    w = np.array([1e-3, 0.9])
    found = dual_by_tables(layer, covariance(r1, r2, w, 1 - w), longest)
    assert found is not None
    for k in range(2):
        with mp.workdps(25):
            one, two = (_given(layer, r, r, None).product for r in (r1[k], r2[k]))
            pair = _given(layer, r1[k], r2[k], mpf(w[k]))
            size = mpmath.sqrt(one * two)
            exact = angles(pair.product, one, two)
        for mine, angle in zip((found.total.w[k], found.total.z[k]), exact, strict=True):
            assert abs(mine - angle) < 1e-14 * mpmath.sqrt(angle)
        assert abs(found.slope[k] - r1[k] * r2[k] * pair.slopes / size) < 1e-14


def _given(layer: lnk.Selu, r1: float, r2: float, w: mpf | None) -> kinked_oracle.Expectations:
    """The integral over u; without an angle v is u."""
    alpha, first = mpf(layer.alpha), mpf(r1)
    rho = mpf(1) if w is None else 1 - 2 * w
    s = mpf(r2) * mpmath.sqrt(1 - rho * rho)

    def at(u: mpf) -> tuple[mpf, mpf]:
        return (u, mpf(1)) if u > 0 else (alpha * mpmath.expm1(u), alpha * mpmath.exp(u))

    def behind(v: mpf) -> tuple[mpf, mpf]:
        """E phi and E phi' around v."""
        if w is None:
            return at(v)
        above, x = mpmath.ncdf(v / s), (v + s * s) / s
        tilted = mpmath.exp(v + s * s / 2) * mpmath.ncdf(-x)
        ramp = v * above + s * mpmath.npdf(v / s)
        return ramp + alpha * (tilted - (1 - above)), above + alpha * tilted

    def moment(which: int) -> mpf:
        places = [-14, -5, -2, *(-(mpf(2) ** -k) for k in range(1, 12))]
        ends = [*places, mpf(0), *(-place for place in reversed(places))]
        factor = mpf(layer.scale) ** 2
        return factor * mpmath.quad(
            lambda x: at(first * x)[which] * behind(rho * mpf(r2) * x)[which] * mpmath.npdf(x), ends
        )

    return kinked_oracle.Expectations(moment(0), moment(1), mpf(0), mpf(0))


@pytest.mark.parametrize("layer", [lnk.Tanh(), lnk.Silu(), lnk.Gelu(approximate=True)], ids=repr)
def test_small_angles_beside_series(layer: lnk.Smooth) -> None:
    """Of short inputs both know all digits of the smallest ones."""
    n = 40
    rng = np.random.default_rng(SEED)
    r1 = rng.uniform(0.1, 1.4, n)
    r2 = np.minimum(1.4, r1 * (1 + 10.0 ** rng.uniform(-15, -1, n)))
    w, obtuse = 10.0 ** rng.uniform(-24, -1, n), rng.random(n) < 0.3
    cov = covariance(r1, r2, np.where(obtuse, 1 - w, w), np.where(obtuse, w, 1 - w))
    made = dual_by_tables(layer, cov, 1.42)
    series = expectations(EagerFloat64(), layer, cov, 512)
    assert made is not None
    for mine, other in ((made.total, series.total), (made.centred, series.centred)):
        for angle, right in ((mine.w, other.w), (mine.z, other.z)):
            assert (np.abs(angle - right) / np.sqrt(np.abs(right))).max() < 8e-15


def test_lengths_that_are_stored_once() -> None:
    """The same numbers as of pairs listed side by side, of many pairs and of few."""
    rng = np.random.default_rng(SEED)
    r, (i, j) = rng.uniform(0.1, 3, 40), np.triu_indices(40, 1)
    w = rng.uniform(0, 1, len(i))
    listed = dual_by_tables(lnk.Elu(), covariance(r[i], r[j], w, 1 - w), 3.0)
    for some in (np.arange(len(i)), np.arange(5)):
        first, second = (Length(Gathered(as_precise(r * r), index[some])) for index in (i, j))
        cov = Covariance(first, second, w[some], 1 - w[some], 1 - 2 * w[some], None)
        found = dual_by_tables(lnk.Elu(), cov, 3.0)
        assert found.total.w == pytest.approx(listed.total.w[some], rel=1e-14)
        assert found.slope == pytest.approx(listed.slope[some], rel=1e-14)


@pytest.mark.parametrize("missing", ["the ends", "the mean below m", "a wedge"])
def test_a_wrong_rule_is_caught(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh() -> None:
        for table in (pair_tables.slope_table, polar._radial):
            table.cache_clear()

    fresh()
    if missing == "the ends":
        nothing = np.zeros(COUNT), np.zeros(COUNT)
        monkeypatch.setattr(pair_tables.Places, "apart", lambda *_: nothing)
    elif missing == "the mean below m":
        monkeypatch.setattr(pair_tables, "_means_below", lambda place, _: np.eye(len(place)))
    else:
        radial = polar._radial.__wrapped__
        monkeypatch.setattr(
            polar, "_radial", lambda *asked: (radial(*asked)[0], 1.0001 * radial(*asked)[1])
        )
    found = max(errors_of(lnk.Tanh(), 8.0, long_oracle.expectations, 25, 1e-6))
    pair_tables.slope_table.cache_clear()
    assert found > 1e-6


@pytest.mark.parametrize(
    ("layer", "longest"), [(lnk.Selu(), 4.0), (lnk.Elu(), 64.0), (lnk.Tanh(), 16.0)], ids=repr
)
def test_enough_lengths_and_angles(layer: lnk.Elementwise, longest: float) -> None:
    """More of them change nothing but roundings."""
    rng = np.random.default_rng(SEED)
    r = longest * rng.uniform(0, 1, (2, 400))
    w = np.where(rng.random(400) < 0.5, rng.uniform(0, 1, 400), 10.0 ** rng.uniform(-6, 0, 400))
    cov = covariance(*r, w, 1 - w)
    made = dual_by_tables(layer, cov, longest)
    pair_tables.slope_table.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_tables, "COUNTS", ((66, 74),))
        patch.setattr(polar, "DIRECTIONS", {16.0: (120, 3.0)})
        finer = dual_by_tables(layer, cov, longest)
    pair_tables.slope_table.cache_clear()
    assert made is not None and finer is not None
    for mine, other in ((made.slope, finer.slope), (made.total.c, finer.total.c)):
        assert (np.abs(mine - other) / np.maximum(1, np.abs(other))).max() < 2e-14


def test_numbers_of_single_inputs() -> None:
    """Beside the moments, which other nodes give, as far as there are tables."""
    r = np.geomspace(1e-3, 30.0, 50)
    for layer in (lnk.Elu(), lnk.Selu(), lnk.Silu(), lnk.Softplus(), lnk.Gelu(approximate=True)):
        made = pair_tables.moments_by_table(layer, 32.0, r)
        for mine, right in zip(made[1:4], moments_at(layer, r)[1:4], strict=True):
            assert mine == pytest.approx(right, rel=1e-14)


def test_what_has_no_tables() -> None:
    """Kinks elsewhere, an even function, whose spread is a square of short lengths, and inputs that are too long."""
    assert not suits(lnk.Clip(), 1.0)
    assert not suits(lnk.Activate(jnp.abs, kinks=(0.0, 0.5)), 1.0)
    assert not suits(lnk.Activate(lambda u: u * jnp.tanh(u)), 1.0)
    assert not suits(lnk.Tanh(), 64.0)
    assert not suits(lnk.Elu(), 1e4)


@pytest.mark.parametrize(
    ("act", "std"), [(lnk.Elu(), 1.0), (lnk.Selu(), 1.0), (lnk.Tanh(), 9.0)], ids=repr
)
def test_zero_vectors(act: lnk.Elementwise, std: float) -> None:
    """Nothing is left of them without a bias; and of what is short enough what is in proportion."""
    arch = lnk.serial(lnk.Dense(8, W_std=std), act, lnk.Dense(8), lnk.Relu(), lnk.Dense(1))
    x = np.array([[1.0, 0.5], [0.3, -2.0], [0.0, 0.0], [1e-100, 2e-100], [1e-140, 2e-140]])
    for made in lnk.kernels(arch)(x):
        assert not made[2].any()
        assert made[4, :2] == pytest.approx(1e-40 * made[3, :2], rel=1e-13)
        assert made[4, 4] == pytest.approx(1e-80 * made[3, 3], rel=1e-13)
    for made in lnk.kernels(arch)(x[:2], x[2:3]):
        assert not made.any()


def test_nearly_opposite_inputs_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an even function's images little is left, and it is computed by itself."""
    monkeypatch.setattr(eager, "by_program", None)
    x = 0.01 * np.random.default_rng(SEED).normal(size=(20, 5))
    x[1], x[2] = -x[0], -x[0] * (1 + 1e-9)
    arch = lnk.serial(lnk.Dense(9), lnk.Elu(-1.0), lnk.Dense(9), lnk.Relu(), lnk.Dense(1))
    assert_exact(arch, x, ((0, 1), (0, 2), (1, 2), (3, 4)), 2e-14)


def test_a_table_of_the_other_expectation_whenever_of_the_slopes() -> None:
    """A trainable scale asks for it; it takes more lengths and angles."""
    layer = lnk.Elu(10.0)
    assert suits(layer, 64.0)
    x = np.random.default_rng(0).normal(size=(6, 4))
    x *= np.array([0.01, 0.1, 0.5, 1, 3, 10])[:, None]
    norm = lnk.RMSNorm(eps=0.1, scale=True)
    arch = lnk.serial(lnk.Dense(9), norm, lnk.Scale(40.0), layer, lnk.Dense(1))
    assert_exact(arch, x, ((4, 5), (0, 3), (2, 5)), 2e-14)


def test_tables_are_shared_by_layers_of_like_lengths_alone() -> None:
    """The error of a table for much longer vectors would be repeated in every layer."""
    later = (lnk.Dense(8, W_std=1.0), lnk.Selu())
    arch = lnk.serial(lnk.Dense(8, W_std=80.0), lnk.Selu(), *later * 12, lnk.Dense(1))
    x = np.random.default_rng(SEED).normal(size=(10, 3))
    parts = [part for part in expand(arch, x, few=True).layers if isinstance(part, Integrated)]
    reach = [
        part.grading.longest for part in expand(arch, x).layers if isinstance(part, Integrated)
    ]
    assert max(reach) > 16 * min(reach)
    for part, own in zip(parts, reach, strict=True):
        assert part.grading.tables and own <= part.grading.longest <= 3 * own


def test_a_function_that_is_flat_around_0_has_no_table() -> None:
    """The slopes of short inputs are there less than a thousandth of the others, and have fewer digits."""

    def flat(u: jnp.ndarray) -> jnp.ndarray:
        return 0.02 * u + u * u / (1 + jnp.sqrt(1 + u * u)) * jnp.where(u > 0, 1.0, 0.5)

    assert not suits(lnk.Activate(flat, kinks=(0.0,)), 11.0)


def test_opposite_inputs_of_a_nearly_even_function() -> None:
    """The images are nearly equal."""
    layer = lnk.Activate(lambda u: jnp.sqrt(1 + u * u) + 0.02 * u)
    arch = lnk.serial(lnk.Dense(8), layer, lnk.Dense(1))
    x = 3 * np.array([[1.0, 0.2], [-1.0, -0.2 - 1e-6], [0.3, 1.0]])
    made = lnk.ntk(arch)(x)
    with eager.without_numpy():
        integrated = lnk.ntk(arch)(x)
    assert made == pytest.approx(integrated, rel=1e-12)


@pytest.mark.parametrize("first", [lnk.Identity(), lnk.LayerNorm(0.1)], ids=repr)
@pytest.mark.parametrize("act", [lnk.Elu(), lnk.Selu(), lnk.Elu(0.5)], ids=repr)
def test_nothing_is_compiled(
    act: lnk.Piecewise, first: lnk.Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of points on a line, opposite ones and nearly equal ones, at lengths that differ."""
    refuse_programs(monkeypatch)
    arch = lnk.serial(first, lnk.mlp(hidden=3, activation=act, W_std=1.2, b_std=0.3))
    x = np.concatenate([np.linspace(-5, 5, 21), [2.0 + 1e-9]])[:, None] * [1.0, 0.5, 0.1]
    assert_exact(arch, x, ((12, 21), (0, 20), (3, 11), (10, 19)), 2e-14)


def test_delicate_pairs_of_large_matrices_take_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their programs would take a millisecond for each pair."""
    asked = list[int]()
    usual = pair_tables.dual_by_tables

    def note(layer: lnk.Elementwise, cov: Covariance, longest: float) -> Dual:
        asked.append(len(cov.w))
        return usual(layer, cov, longest)

    monkeypatch.setattr(pair_tables, "dual_by_tables", note)
    monkeypatch.setattr(eager, "by_program", None)
    monkeypatch.setattr(tiled, "by_program", None)
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(150, 4))
    x[140:] = x[:10] + 1e-7
    arch = lnk.mlp(hidden=1, activation=lnk.Elu())
    with eager.without_numpy():
        monkeypatch.setattr(eager, "MOST_DELICATE", 1)
        made = lnk.ntk(arch)(x)
    assert asked and max(asked) < 2000
    exact = oracle.pair(arch, x[0], x[140], dps=30)
    assert abs(made[0, 140] - exact.Theta) < 2e-14 * exact.Theta_scale
