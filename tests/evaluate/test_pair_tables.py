"""Pairs behind ELU and SELU from tables of their slopes: against closed forms to 110 digits, and one integral."""

from __future__ import annotations

import kinked_oracle
import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.evaluate.float64 import pair_tables
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.pair_tables import COUNTS, dual_by_tables
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.gram import careful, eager, tiled

CASES = [
    *((lnk.Elu(), longest) for longest in (1e-3, 1.5, 10.0)),
    *((lnk.Selu(), longest) for longest in (0.3, 10.0)),
    (lnk.Elu(0.3), 6.0),
    (lnk.Elu(2.5), 3.0),
    (lnk.Elu(0.0), 2.0),
]
RNG = np.random.default_rng(5)
COUNT = 6


def pairs(r1: np.ndarray, r2: np.ndarray, w: np.ndarray, z: np.ndarray) -> Covariance:
    first, second = (Length(as_precise(r * r)) for r in (r1, r2))
    return Covariance(first, second, w, z, z - w, (r1 - r2) / (r1 + r2))


def some_pairs(longest: float) -> tuple[np.ndarray, ...]:
    """Lengths of all sizes, some nearly equal, at small angles and at larger ones, acute and obtuse."""
    r1 = longest * RNG.uniform(0.01, 1, COUNT)
    near = r1 * (1 - 10.0 ** RNG.uniform(-12, -1, COUNT))
    r2 = np.where(np.arange(COUNT) % 3 == 0, near, longest * 10.0 ** RNG.uniform(-4, 0, COUNT))
    small = 10.0 ** RNG.uniform([-24, -16, -8, -4, -1, -0.4], -0.31)
    turned = np.arange(COUNT) % 2 == 1
    return r1, r2, np.where(turned, 1 - small, small), np.where(turned, small, 1 - small)


def angles(product: mpf, one: mpf, two: mpf) -> tuple[mpf, mpf]:
    cosine = product / mpmath.sqrt(one * two)
    return (1 - cosine) / 2, (1 + cosine) / 2


@pytest.mark.parametrize(("layer", "longest"), CASES, ids=repr)
def test_expectations(layer: lnk.Elu | lnk.Selu, longest: float) -> None:
    """Errors of an angle beside its root: what a ReLU behind makes of it."""
    r1, r2, w, z = some_pairs(longest)
    found = dual_by_tables(layer, pairs(r1, r2, w, z), max(longest, 1.5))
    euler = found.euler()
    for k in range(COUNT):
        with mp.workdps(110):
            q1, q2 = mpf(r1[k]) ** 2, mpf(r2[k]) ** 2
            rho = 1 - 2 * mpf(w[k]) if w[k] < z[k] else 2 * mpf(z[k]) - 1
            elu = kinked_oracle.elu
            pair = elu(layer, q1, q2, rho)
            one, two = (elu(layer, q, q, mpf(1)) for q in (q1, q2))
            size = mpmath.sqrt(one.product * two.product)
            exact = angles(pair.product, one.product, two.product)
            rest = (e.product - e.mean**2 for e in (one, two))
            centred = angles(pair.product - one.mean * two.mean, *rest)
        for cov, right in ((found.total, exact), (found.centred, centred)):
            for mine, angle in zip((cov.w[k], cov.z[k]), right, strict=True):
                assert abs(mine - angle) < 6e-15 * mpmath.sqrt(abs(angle))
        assert abs(found.slope[k] - r1[k] * r2[k] * pair.slopes / size) < 5e-15
        assert abs(euler[k] - pair.euler / size) < 5e-15
        assert abs(found.mean.first[k] - one.mean / mpmath.sqrt(one.product)) < 1e-15
        assert found.total.first.q.high[k] == pytest.approx(float(one.product), rel=2e-15)


@pytest.mark.parametrize("longest", [24.0, 128.0])
def test_long_inputs(longest: float) -> None:
    """Given u, v is Gaussian, and one integral is left."""
    layer = lnk.Selu()
    r1, r2 = np.array([0.3 * longest, longest]), np.array([longest, 0.1])
    w = np.array([1e-3, 0.9])
    found = dual_by_tables(layer, pairs(r1, r2, w, 1 - w), longest)
    for k in range(2):
        with mp.workdps(25):
            one, two = (_given(layer, r, r, None).product for r in (r1[k], r2[k]))
            pair = _given(layer, r1[k], r2[k], mpf(w[k]))
            size = mpmath.sqrt(one * two)
            exact = angles(pair.product, one, two)
        for mine, angle in zip((found.total.w[k], found.total.z[k]), exact, strict=True):
            assert abs(mine - angle) < 6e-15 * mpmath.sqrt(angle)
        assert abs(found.slope[k] - r1[k] * r2[k] * pair.slopes / size) < 5e-15


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


def test_lengths_that_are_stored_once() -> None:
    """The same numbers as of pairs listed side by side, of many pairs and of few."""
    r, (i, j) = RNG.uniform(0.1, 3, 40), np.triu_indices(40, 1)
    w = RNG.uniform(0, 1, len(i))
    listed = dual_by_tables(lnk.Elu(), pairs(r[i], r[j], w, 1 - w), 3.0)
    for some in (np.arange(len(i)), np.arange(5)):
        first, second = (Length(Gathered(as_precise(r * r), index[some])) for index in (i, j))
        cov = Covariance(first, second, w[some], 1 - w[some], 1 - 2 * w[some], None)
        found = dual_by_tables(lnk.Elu(), cov, 3.0)
        assert found.total.w == pytest.approx(listed.total.w[some], rel=1e-14)
        assert found.slope == pytest.approx(listed.slope[some], rel=1e-14)


@pytest.mark.parametrize("missing", ["gaps", "ends"])
def test_a_wrong_rule_is_caught(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "gaps":
        monkeypatch.setattr(pair_tables, "BEND", pair_tables.BEND * (1 + 1e-9))
        monkeypatch.setattr(pair_tables, "slope_table", lambda *_: _skewed())
    else:
        monkeypatch.setattr(
            pair_tables.Places, "apart", lambda *_: (np.zeros(COUNT), np.zeros(COUNT))
        )
    with pytest.raises(AssertionError):
        test_expectations(lnk.Elu(), 1.5)


def _skewed() -> pair_tables.Halves:
    """With gaps that are wrong by 1e-9 of their value."""
    usual = pair_tables._halves(lnk.Elu(), 1.5, 0)
    return usual._replace(
        **{
            name: getattr(usual, name) * np.array([1.0, 1 + 1e-9])[:, None, None, None]
            for name in ("acute", "obtuse")
        }
    )


@pytest.mark.parametrize("longest", COUNTS)
def test_enough_lengths_and_angles(longest: float) -> None:
    """More of them change nothing but roundings."""
    r = longest * RNG.uniform(0, 1, (2, 400))
    w = np.where(RNG.random(400) < 0.5, RNG.uniform(0, 1, 400), 10.0 ** RNG.uniform(-6, 0, 400))
    cov = pairs(*r, w, 1 - w)
    made = dual_by_tables(lnk.Selu(), cov, longest)
    pair_tables.slope_table.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        lengths, angles = COUNTS[longest]
        patch.setitem(COUNTS, longest, (lengths + 8, angles + 8))
        finer = dual_by_tables(lnk.Selu(), cov, longest)
    pair_tables.slope_table.cache_clear()
    assert np.abs(made.slope - finer.slope).max() < 5e-15
    assert np.abs(made.total.c - finer.total.c).max() < 1e-14


@pytest.mark.parametrize("first", [lnk.Identity(), lnk.LayerNorm(0.1)], ids=repr)
@pytest.mark.parametrize("act", [lnk.Elu(), lnk.Selu(), lnk.Elu(0.5)], ids=repr)
def test_nothing_is_compiled(
    act: lnk.Piecewise, first: lnk.Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of points on a line, opposite ones and nearly equal ones, at lengths that differ."""

    def refuse(*_: object) -> None:
        raise AssertionError("a program")

    monkeypatch.setattr(careful, "compiled", refuse)
    monkeypatch.setattr(tiled, "compiled", refuse)
    arch = lnk.serial(first, lnk.mlp(hidden=3, activation=act, W_std=1.2, b_std=0.3))
    x = np.concatenate([np.linspace(-5, 5, 21), [2.0 + 1e-9]])[:, None] * [1.0, 0.5, 0.1]
    made = lnk.kernels(arch)(x)
    for i, j in ((12, 21), (0, 20), (3, 11), (10, 19)):
        exact = oracle.pair(arch, x[i], x[j], dps=30)
        assert abs(made.ntk[i, j] - exact.Theta) < 2e-14 * exact.Theta_scale
        assert abs(made.nngp[i, j] - exact.K) < 2e-14 * exact.K_scale


def test_delicate_pairs_of_large_matrices_take_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their programs would take a millisecond for each pair."""
    asked = list[int]()
    usual = pair_tables.dual_by_tables

    def note(layer: lnk.Elementwise, cov: Covariance, longest: float) -> Dual:
        asked.append(len(cov.w))
        return usual(layer, cov, longest)

    monkeypatch.setattr("lnkernel.evaluate.float64.quadrature.dual_by_tables", note)
    monkeypatch.setattr(eager, "by_program", None)
    monkeypatch.setattr(tiled, "by_program", None)
    x = RNG.normal(size=(150, 4))
    x[140:] = x[:10] + 1e-7
    arch = lnk.mlp(hidden=1, activation=lnk.Elu())
    with eager.without_numpy():
        monkeypatch.setattr(eager, "MOST_DELICATE", 1)
        made = lnk.ntk(arch)(x)
    assert asked and max(asked) < 2000
    exact = oracle.pair(arch, x[0], x[140], dps=30)
    assert abs(made[0, 140] - exact.Theta) < 2e-14 * exact.Theta_scale
