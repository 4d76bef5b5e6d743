"""Erf, GELU, sine, cosine and the Gaussian in closed form, at every length; and their certificates."""

from __future__ import annotations

import itertools
from typing import Any

import cases
import mpmath as mp
import numpy as np
import oracle
import pytest
from flint import arb

import lnkernel as lnk
from lnkernel.arch.node import node
from lnkernel.bounds.certified.enclosures import sup_diagonal_enclosure
from lnkernel.calculus import forms
from lnkernel.calculus.twin import Elementary, OfTwins, Twin
from lnkernel.evaluate.balls import entries
from lnkernel.evaluate.balls.arithmetic import Balls
from lnkernel.evaluate.balls.numbers import working_precision
from lnkernel.evaluate.float64 import hermite

CLOSED = [lnk.Erf(), lnk.Gelu(), lnk.Sin(), lnk.Sin(1.3, 0.4), lnk.Cos(0.7), lnk.Gaussian()]
PAIRS = [
    pair for pair in cases.pairs(np.random.default_rng(3), 3) if pair.x.any() and pair.x2.any()
]


def network(act: lnk.Smooth, depth: int = 1) -> lnk.Serial:
    """With a ReLU behind, to which a lost digit of a small angle would be 1e-8."""
    dense = lnk.Dense(8, 1.1, 0.3)
    return lnk.serial(*(dense, act) * depth, dense, lnk.Relu(), lnk.Dense(1, 1.0, 0.1))


def worst(arch: lnk.Serial, pairs: list[cases.Pair]) -> dict[str, float]:
    x, x2 = (np.stack(side) for side in zip(*(pair[1:] for pair in pairs), strict=True))
    got = lnk.kernels(arch)(x, x2)
    errors: dict[str, float] = {"nngp": 0.0, "ntk": 0.0}
    for i, pair in enumerate(pairs):
        exact = oracle.pair(arch, pair.x, pair.x2)
        for name, (value, scale) in _named(exact).items():
            error = float(abs(mp.mpf(float(getattr(got, name)[i, i])) - value) / scale)
            errors[name] = max(errors[name], error)
    return errors


def _named(exact: oracle.Pair) -> dict[str, tuple[Any, Any]]:
    """The kernels and their scales, by our names."""
    return {"nngp": (exact.K, exact.K_scale), "ntk": (exact.Theta, exact.Theta_scale)}


@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_every_pair_at_every_length(act: lnk.Smooth) -> None:
    lengths = [np.linalg.norm(pair.x) for pair in PAIRS]
    assert min(lengths) < 1e-100 and max(lengths) > 1e100
    assert max(worst(network(act), PAIRS).values()) < 2e-15


LENGTHS = (1e3, 3.0, 1.0, 1e-1, 1e-3, 1e-7)


def pairs_of_different_lengths(longest: float) -> list[cases.Pair]:
    """At random, on one line, nearly so, and antipodal."""
    u, v = np.random.default_rng(0).normal(size=(2, 3))
    u, v = (np.sqrt(3) * x / np.linalg.norm(x) for x in (u, v))
    directions = {"random": v, "collinear": u, "near": u + 1e-9 * v, "antipodal": -u}
    both = itertools.combinations([r for r in LENGTHS if r <= longest], 2)
    return [cases.Pair(tag, r1 * u, r2 * x) for r1, r2 in both for tag, x in directions.items()]


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_lengths_that_differ(act: lnk.Smooth, centred: bool) -> None:
    """Where one input is short, its images are all but parallel, and of another size than those of the other."""
    behind = (lnk.LayerNorm(),) if centred else ()
    arch = lnk.serial(
        lnk.Dense(8), act, *behind, lnk.Dense(8), lnk.Relu(), lnk.Dense(1)
    )  # without a bias, beside which a short input would be nothing
    # of a long input the exact kernel of a wave is not in reach of the oracle
    longest = 3.0 if isinstance(act, lnk.Sin | lnk.Cos) else 1e3
    assert max(worst(arch, pairs_of_different_lengths(longest)).values()) < 2e-15


@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_ten_layers(act: lnk.Smooth) -> None:
    assert max(worst(network(act, 10), PAIRS[::6]).values()) < 2e-15


@pytest.mark.slow
@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_ten_layers_at_every_pair(act: lnk.Smooth) -> None:
    assert max(worst(network(act, 10), PAIRS).values()) < 2e-15


@pytest.mark.parametrize("dimension", [3, 20])
def test_layers_that_widen_small_angles(dimension: int) -> None:
    """Weights of variance 2 make right angles of small ones in ten layers, and large errors of small ones."""
    x, step = np.random.default_rng(1).normal(size=(2, 24, dimension))
    near = x + np.geomspace(0.02, 0.5, len(x))[:, None] * step
    pairs = [cases.Pair("near", *both) for both in zip(x, near, strict=True)]
    assert max(worst(cases.deep(10, lnk.Erf()), pairs).values()) < 1.6e-15


@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_what_one_layer_gives_up_stays_so_in_the_next(act: lnk.Smooth) -> None:
    """Behind the first layer short inputs are nearly equal: too few digits are left of their angle for the quick way,
    and the second layer must not take it for another one."""
    x, x2 = np.random.default_rng(0).normal(size=(2, 3))
    pairs = [cases.Pair(f"norms {norm}", norm * x, norm * x2) for norm in (1e-3, 1e-50)]
    dense = lnk.Dense(8, 2**0.5, 0.1)
    for arch in (network(act, 2), lnk.serial(dense, act, dense, act, dense)):
        assert max(worst(arch, pairs).values()) < 2e-15


def test_roundings_of_equal_layers_do_not_lean() -> None:
    """Behind the first layer lengths become constant, and ten layers would round Θ ten times the same way."""
    near = [
        pair for pair in cases.pairs(np.random.default_rng(0), 3) if pair.tag == "norms 1e6, near"
    ]
    assert max(worst(cases.deep(10, lnk.Gaussian()), near).values()) < 1.8e-15


def test_the_diagonal_of_ten_layers() -> None:
    """Where the lengths have become constant, all layers make one and the same error: there is none."""
    x = np.random.default_rng(4).normal(size=(6, 3))
    for act in (lnk.Erf(), lnk.Gelu()):
        dense = lnk.Dense(8, 1.3, 0.2)
        arch = lnk.serial(*(dense, lnk.LayerNorm(), act) * 10, dense)
        ends = lnk.ntk(arch).diagonal(x)
        assert abs(mp.mpf(float(ends[0])) / oracle.kernels(arch, x[0], x[0])[1] - 1) < 5e-16


def test_a_wrong_form_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is right for equal inputs, and off by up to 1e-13 for others."""
    right = forms.ErfForm.odd

    def wrong(self: forms.ErfForm, of: Elementary, pair: Any) -> Any:
        return right(self, of, pair) * (1 + 1e-13 * (1 - pair.c))

    monkeypatch.setattr(forms.ErfForm, "odd", wrong)
    # a program of its own, which no other test has compiled
    arch = lnk.serial(lnk.Dense(9, 1.2, 0.4), lnk.Erf(), lnk.Dense(1, 1.1, 0.2))
    assert max(worst(arch, PAIRS).values()) > 2e-15


@pytest.mark.parametrize("points", [4, 50], ids=["careful", "quick"])
def test_means_of_either_sign_add_up(points: int) -> None:
    """Behind a negative phase the mean is negative, and beside a ReLU's that makes a difference."""
    x = np.random.default_rng(7).normal(size=(points, 3))
    dense = lnk.Dense(8, 1.1, 0.3)
    both = lnk.parallel(lnk.serial(dense, lnk.Sin(1.3, -0.4)), lnk.serial(dense, lnk.Relu()))
    arch = lnk.serial(both, lnk.RMSNorm(), lnk.Dense(1))
    got, exact = lnk.kernels(arch)(x), oracle.kernels(arch, x[0], x[1])
    assert float(got.nngp[0, 1]) == pytest.approx(float(exact[0]), rel=2e-15)
    assert float(got.ntk[0, 1]) == pytest.approx(float(exact[1]), rel=2e-15)


def test_twins_keep_the_digits_of_differences() -> None:
    """With 53 bits, of numbers that agree in the first 100; the differences themselves by 400 bits."""

    def twins() -> list[Twin]:
        of, gap = OfTwins(Balls()), arb(2) ** -100
        sine = Twin(arb(0.5), arb(0.5) - gap, gap)
        cosine = of.sqrt(1 - sine * sine)
        return [
            of.arcsine(sine, cosine),
            of.inverse(sine),
            of.falling(sine),
            of.fallen(sine * sine),
        ]

    with working_precision(400):
        exact = [twin.one - twin.other for twin in twins()]
    with working_precision(53):
        found = [twin.gap for twin in twins()]
    for gap, difference in zip(found, exact, strict=True):
        assert abs(float(gap / difference) - 1) < 1e-14 and gap.overlaps(difference)


@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_balls_hold_the_exact_numbers(act: lnk.Smooth) -> None:
    arch = network(act, 2)
    for pair in PAIRS[::4]:
        exact = _named(oracle.pair(arch, pair.x, pair.x2))
        found = entries.gram(arch, np.stack([pair.x, pair.x2]))
        for name in ("nngp", "ntk"):
            enclosed, (value, scale) = getattr(found, name), exact[name]
            middle, radius = (mp.mpf(float(part[0, 1])) for part in enclosed)
            assert abs(middle - value) <= radius
            assert radius <= 1e-15 * scale


@pytest.mark.parametrize("act", CLOSED, ids=repr)
def test_a_trainable_scale_before_it(act: lnk.Smooth) -> None:
    """E u phi'(u) v phi'(v), and mean features that are taken off; against quadrature in the plane, in 40 digits."""
    dense = lnk.Dense(8, 1.1, 0.3)
    affine = lnk.LayerNorm(eps=0.1, scale=True, bias=True)
    arch = lnk.serial(dense, affine, act, lnk.LayerNorm(eps=0.2), lnk.Dense(1, 1.2, 0.1))
    x = np.random.default_rng(9).normal(size=(2, 3))
    found, exact = entries.gram(arch, x), oracle.kernels(arch, *x)
    for enclosed, value in zip(found, exact, strict=True):
        middle, radius = (mp.mpf(float(part[0, 1])) for part in enclosed)
        assert abs(middle - value) <= radius < 1e-15


def test_no_certificate_of_a_function_that_balls_do_not_know() -> None:
    @node
    class Arctan(lnk.Smooth):
        """A function that neither has a closed form nor is known at complex numbers."""

    with pytest.raises(lnk.errors.MissingFunctionError, match="no certificate"):
        entries.gram(network(Arctan()), np.eye(3))


def test_certified_supremum_inside() -> None:
    """GELU, then a LayerNorm: the largest Θ(x, x) is at a finite length, above the limit 2 at infinity."""
    dense = lnk.Dense(8, 2**0.5, 0.1)
    arch = lnk.serial(dense, lnk.Gelu(), dense, lnk.LayerNorm())
    enclosure, norm = sup_diagonal_enclosure(lnk.serial(*arch.layers, lnk.Dense(1)), rtol=1e-6)
    assert 2.059799 < enclosure.lower - 1 < enclosure.upper - 1 < 2.059803  # the last Dense adds 1
    assert norm == pytest.approx(0.748, abs=0.01)


def test_tables_series_and_closed_forms_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """GELU of moderate lengths in two ways that share no formula."""
    x = np.random.default_rng(5).normal(size=(12, 3))
    arch = lnk.serial(lnk.Dense(8, 1.0, 0.25), lnk.Gelu(), lnk.LayerNorm(), lnk.Dense(1))
    closed = np.asarray(lnk.ntk(arch)(x))
    monkeypatch.setattr(hermite, "form_of", lambda layer, num: None)
    other = lnk.serial(*arch.layers, lnk.Identity())  # a program of its own
    assert np.abs(np.asarray(lnk.ntk(other)(x)) / closed - 1).max() < 1e-14
