"""Small angles behind smooth activations, from the products of tables: beside the sums over all Hermite polynomials,
and 30 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.series import expectations
from lnkernel.evaluate.float64 import delicate_products, hermite
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.choice import choice_for
from lnkernel.evaluate.float64.delicate_products import dual_with_care
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.precise import as_precise

CASES = [
    (lnk.Tanh(), 1.5),
    (lnk.Silu(), 3.0),
    (lnk.Softplus(), 2.0),
    (lnk.Sigmoid(), 0.3),
    (lnk.Gelu(approximate=True), 1.0),
]


def both_ways(layer: Smooth, longest: float) -> tuple[Dual, Dual]:
    """By the products, and by the sums: lengths from a hundredth of the longest on, some nearly equal, at angles of all
    sizes, acute and obtuse."""
    rng, n = np.random.default_rng(0), 30
    r = longest * rng.uniform(0.01, 1, n)
    r[20:] = np.minimum(longest, r[:10] * (1 + 10.0 ** rng.uniform(-15, -1, 10)))
    i, j = np.indices((n, n)).reshape(2, -1)
    w, obtuse = 10.0 ** rng.uniform(-24, -0.31, n * n), rng.random(n * n) < 0.3
    w, z = np.where(obtuse, 1 - w, w), np.where(obtuse, w, 1 - w)
    q = as_precise(r * r)
    e = (r[i] - r[j]) / (r[i] + r[j])
    choice = choice_for(layer, longest)
    pairs = Covariance(Length(Gathered(q, i)), Length(Gathered(q, j)), w, z, z - w, e)
    listed = pairs.with_lengths(*(Length(as_precise((r * r)[k])) for k in (i, j)), e)
    products = dual_with_care(layer, pairs, choice.terms, choice.longest)
    return products, expectations(EagerFloat64(), layer, listed, choice.terms)


def worst(one: Dual, other: Dual) -> float:
    """The largest difference, of an angle beside its root: what a ReLU behind makes of it."""
    found = []
    for mine, right in ((one.total, other.total), (one.centred, other.centred)):
        found += [
            np.abs(x - y) / np.sqrt(np.abs(y))
            for x, y in zip(angles(mine), angles(right), strict=True)
        ]
        found.append(np.abs(mine.c - right.c))
    return float(max(np.max(part) for part in found))


def angles(cov: Covariance) -> tuple[np.ndarray, np.ndarray]:
    return cov.w, cov.z


@pytest.mark.parametrize(("layer", "longest"), CASES, ids=repr)
def test_the_same_as_all_hermite_polynomials(layer: Smooth, longest: float) -> None:
    """Both are off by some roundings, of numbers whose squares add up to 1."""
    one, other = both_ways(layer, longest)
    assert worst(one, other) < 8e-15
    assert np.abs(one.slope - other.slope).max() < 2e-14
    assert np.abs(one.euler() - other.euler).max() < 1e-14
    for mine, right in ((one.total, other.total), (one.centred, other.centred)):
        assert mine.first.q.high == pytest.approx(np.asarray(right.first.q), rel=1e-14)
        assert mine.e == pytest.approx(right.e, abs=1e-14)


@pytest.mark.parametrize("missing", ["apart", "the series in D"])
def test_a_wrong_rule_is_caught(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "apart":
        usual = delicate_products.Places.apart
        monkeypatch.setattr(
            delicate_products.Places,
            "apart",
            lambda self, one, two: (0.999 * usual(self, one, two)[0], usual(self, one, two)[1]),
        )
    else:
        clenshaw = delicate_products._clenshaw
        monkeypatch.setattr(
            delicate_products,
            "_clenshaw",
            lambda c, y: (lambda s: s._replace(gap=s.value))(clenshaw(c, y)),
        )
    assert worst(*both_ways(lnk.Silu(), 3.0)) > 1e-6


def test_longer_inputs_are_left_to_others() -> None:
    q, index = as_precise(np.array([1.0, 9.0])), np.array([0, 1])
    w = np.full(2, 0.1)
    cov = Covariance(Length(Gathered(q, index)), Length(Gathered(q, index)), w, 1 - w, 1 - 2 * w, w)
    assert dual_with_care(lnk.Silu(), cov, 512, 2.0) is None
    listed = cov.with_lengths(Length(q), Length(q), w)
    assert dual_with_care(lnk.Silu(), listed, 512, 4.0) is None


def test_deep_networks_at_small_angles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points close together, so many that products are taken; a ReLU behind shows lost digits."""
    rng = np.random.default_rng(1)
    dense = lnk.Dense(8, 1.3, 0.2)
    arch = lnk.serial(*[dense, lnk.Silu()] * 3, dense, lnk.Relu(), dense)
    x = np.array([1.0, -0.5]) + 10.0 ** rng.uniform(-9, -1, (30, 1)) * rng.normal(size=(30, 2))
    asked, usual = list[int](), delicate_products.dual_with_care

    def counted(layer: Smooth, cov: Covariance, terms: int, longest: float) -> Dual | None:
        asked.append(len(cov.w))
        return usual(layer, cov, terms, longest)

    monkeypatch.setattr(hermite, "dual_with_care", counted)
    both = lnk.kernels(arch)(x)
    assert asked == [435] * 3
    for i, j in ((0, 1), (2, 25), (13, 14)):
        exact = oracle.pair(arch, x[i], x[j], dps=30)
        assert abs(both.ntk[i, j] - exact.Theta) / exact.Theta_scale < mpmath.mpf("1e-14")
        assert abs(both.nngp[i, j] - exact.K) / exact.K_scale < mpmath.mpf("1e-14")
