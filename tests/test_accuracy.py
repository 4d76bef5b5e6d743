"""Errors against 50 digits: `benchmarks/accuracy.py` in small, and in full if asked for `slow`."""

from __future__ import annotations

import dataclasses

import cases
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from benchmarks import accuracy

TABLE = cases.architectures()
WHOLE = accuracy.jobs(quick=False, only=None)


def beyond_bound(errors: list[accuracy.Error]) -> list[accuracy.Error]:
    return [error for error in errors if not error.ok]


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


LONG = {"shifts", "relu 20", "degrees .6, 1.5, 2.5", "pre-LN", "parallel, degrees 1 and 2"}


def exact_inside(name: str, seed: int) -> list[accuracy.Exact]:
    rows = accuracy.exact(TABLE[name].arch, cases.pairs(rng(seed), 3))
    return [row for row in rows if row.size < accuracy.LARGEST]


@pytest.mark.parametrize("name", cases.FEW)
def test_one_network_of_each_kind(name: str) -> None:
    rows = exact_inside(name, 1)
    for way in (accuracy.rectangular, accuracy.symmetric):
        assert not beyond_bound(list(way(TABLE[name], rows)))


@pytest.mark.parametrize("name", cases.some_slow(cases.FEW, LONG))
def test_by_programs(name: str) -> None:
    """Point by point; the symmetric path has its own test, because compiling is what costs."""
    rows = exact_inside(name, 1)
    assert not beyond_bound(accuracy.by_program(accuracy.rectangular, TABLE[name], rows))


@pytest.mark.parametrize("name", ["relu 2", "scale and bias", "GroupNorm 4"])
def test_symmetric_matrix_and_diagonal_by_programs(name: str) -> None:
    rows = exact_inside(name, 2)
    assert not beyond_bound(accuracy.by_program(accuracy.symmetric, TABLE[name], rows))


@pytest.mark.parametrize("d", [1, 20])
def test_other_dimensions(d: int) -> None:
    case = TABLE["LN first"]
    rows = accuracy.exact(case.arch, cases.pairs(rng(d), d))
    assert not beyond_bound(list(accuracy.rectangular(case, rows)))
    assert not beyond_bound(accuracy.by_program(accuracy.rectangular, case, rows))


def test_short_inputs_beside_a_bias_under_layers_that_widen_angles() -> None:
    """LayerNorm on features widens every angle by 1.5: fifty of them show the first one's digits."""
    case = TABLE["relu LN after 50"]
    rng_pairs = [p for p in cases.pairs(rng(0), 3) if p.tag.startswith("norms 1e-6")]
    others = [cases.Pair("short", *1e-6 * rng(k).normal(size=(2, 3))) for k in range(33)]
    rows = accuracy.exact(case.arch, [*rng_pairs, *others])
    assert not beyond_bound(list(accuracy.rectangular(case, rows)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case", "d"), WHOLE, ids=[f"{n}-{d}" for n, _, d in WHOLE])
def test_every_network(name: str, case: cases.Case, d: int) -> None:
    assert not beyond_bound(accuracy.errors(case, cases.pairs_of(case, rng(3), d)))


# ---------------------------------------------------------------- can these tests fail?


def test_an_error_of_one_in_a_million_millions_is_noticed() -> None:
    """The oracle is given a weight that is off by 1e-13."""
    arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1))
    off = lnk.serial(*arch.layers[:2], dataclasses.replace(arch.layers[2], W_std=1 + 1e-13))
    pairs = [cases.Pair("random", *rng(0).normal(size=(2, 3)))]
    case = TABLE["relu 2"]._replace(arch=arch)
    right, wrong = accuracy.exact(arch, pairs), accuracy.exact(off, pairs)
    assert not beyond_bound(list(accuracy.rectangular(case, right)))
    found = list(accuracy.rectangular(case, wrong))
    assert beyond_bound(found) == found
    assert all(1e-14 < error.error < 1e-12 for error in found)


def test_overflow_is_told_apart_from_refusal() -> None:
    """|x|^16 at |x| = 1e50 leaves the range of float64, at 1e10 it does not."""
    arch = lnk.serial(lnk.Dense(8), lnk.RectifiedPower(8), lnk.Dense(1))
    case = TABLE["relu 2"]._replace(arch=arch)
    for size, overflows in ((1e50, True), (1e10, False)):
        (row,) = accuracy.exact(arch, [cases.Pair("far", *size * rng(0).normal(size=(2, 2)))])
        assert (row.size > accuracy.LARGEST) == overflows
        assert accuracy._expected_overflow(case, row).ok == overflows


def test_the_claimed_bounds() -> None:
    """2e-15 up to depth 10, 2e-14 beyond; 2e-13 for degrees below 1 at norms beyond 1e±100."""
    near, far = (cases.Pair("", size * np.ones(2), np.ones(2)) for size in (1.0, 1e150))
    bounds = {name: (TABLE[name].bound(near), TABLE[name].bound(far)) for name in TABLE}
    assert bounds["relu 10"] == (2e-15, 2e-15)
    assert bounds["relu 20"] == bounds["relu 50"] == (2e-14, 2e-14)
    assert bounds["general .6"] == (2e-15, 2e-13)


def test_pairs_are_what_they_are_called() -> None:
    pairs = {pair.tag: pair for pair in cases.pairs(rng(0), 3)}
    for tag in ("collinear", "antipodal"):
        _, x, x2 = pairs[tag]
        assert not np.linalg.matrix_rank(np.stack([x, x2])) > 1
    for k in (3, 8, 14):
        _, x, x2 = pairs[f"1e-{k} apart"]
        assert 0.1 < np.linalg.norm(x - x2) / 10.0**-k < 10
    _, x, x2 = pairs["orthogonal, exact"]
    assert sum((x * x2).tolist()) == 0  # not x @ x2, which may round only once
    assert oracle.Moments.of(*pairs["orthogonal, exact"][1:]).mean1 != 0
    assert not pairs["zero"].x.any() and not pairs["zero and zero"].x2.any()
