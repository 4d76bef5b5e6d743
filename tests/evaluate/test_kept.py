"""Numbers of single inputs that are computed once, and stand in many pairs."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus.closed import Form
from lnkernel.calculus.forms import ErfForm, GaussianForm, GeluForm, SineForm
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.gathered import FEW, Gathered, gather
from lnkernel.evaluate.float64.kept import keep
from lnkernel.evaluate.float64.own_moments import kept_moments, own_moments
from lnkernel.evaluate.float64.precise import Precise, as_precise
from lnkernel.gram import impatient, pairs

RNG = np.random.default_rng(0)
INPUTS = as_precise(RNG.uniform(0.1, 3.0, 7)) * as_precise(RNG.uniform(0.5, 1.0, 7))
INDEX = RNG.integers(0, 7, 30)
FORMS = [ErfForm(), GeluForm(), GaussianForm(), SineForm(1.5, 0.6, 0.8), SineForm(2.0, 0.0, 1.0)]


def listed(inputs: Precise = INPUTS) -> Precise:
    """The same numbers, one for each pair."""
    return Precise(inputs.high[INDEX], inputs.low[INDEX])


def assert_same(one: object, two: object) -> None:
    for a, b in zip(*(jax.tree.leaves(_plain(x)) for x in (one, two)), strict=True):
        np.testing.assert_array_equal(a, b)


def _plain(x: object) -> object:
    if isinstance(x, Precise):
        return x.high, x.low
    return tuple(map(_plain, x)) if isinstance(x, tuple) else x


@pytest.mark.parametrize(
    "function",
    [
        lambda q: q * 0.3,
        lambda q: 0.3 * q,
        lambda q: q + 0.3,
        lambda q: np.float64(0.3) + q,
        lambda q: as_precise(0.3) * q,
        lambda q: q * q,
        lambda q: q + q * 2.0,
        lambda q: q * np.arange(30.0),
        lambda q: q + listed(),
        lambda q: q.root(),
    ],
)
def test_gathered_numbers_are_those_of_the_pairs(function) -> None:
    assert_same(function(Gathered(INPUTS, INDEX)), function(listed()))


def test_numbers_of_two_sides_are_not_confused() -> None:
    other = INDEX[::-1].copy()
    total = Gathered(INPUTS, INDEX) + Gathered(INPUTS, other)
    assert_same(total, listed() + Precise(INPUTS.high[other], INPUTS.low[other]))


def test_many_inputs_of_few_pairs_are_not_gathered() -> None:
    many = as_precise(np.linspace(1.0, 2.0, FEW + 1))
    assert not isinstance(gather(many, np.arange(3)), Gathered)
    assert isinstance(gather(many, np.zeros(FEW + 2, int)), Gathered)
    assert isinstance(gather(INPUTS, np.arange(3)), Gathered)


@pytest.mark.parametrize("form", FORMS)
def test_moments_are_those_of_the_pairs(form: Form) -> None:
    expected = own_moments(form, listed())
    assert_same(kept_moments(form, Gathered(INPUTS, INDEX)), expected)
    assert_same(kept_moments(form, Gathered(INPUTS, INDEX)), expected)  # as they were kept


def test_results_are_kept_apart() -> None:
    """By what is asked, by the numbers, and by their digits beyond float64."""
    for what, factor in (("double", 2.0), ("triple", 3.0)):
        for low in (np.zeros(7), 1e-17 * np.ones(7)):
            q = Precise(INPUTS.high, low)
            for asked in (q, Precise(q.high[:, None], q.low[:, None])):
                assert_same(keep(what, lambda x, by=factor: x * by, asked), asked * factor)


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("quick", [False, True])
def test_cosines_and_softened_of_gathered_lengths(quick: bool, sharp: bool) -> None:
    num = EagerFloat64(quick=quick, sharp=sharp)
    for function in (partial(num.cosines, other=0.4), partial(num.softened, eps=0.4)):
        assert_same(tuple(function(Gathered(INPUTS, INDEX))), tuple(function(listed())))


@pytest.mark.parametrize("act", [lnk.Erf(), lnk.Gelu(), lnk.Sin(), lnk.Gaussian(), lnk.Relu()])
def test_pairs_by_their_places_are_the_same(act: lnk.Node, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = lnk.kernels(lnk.mlp(hidden=3, activation=act, b_std=0.2))
    x = RNG.normal(size=(20, 3))
    x[10:] = x[:10] * (1 + 1e-3 * RNG.normal(size=(10, 3)))  # delicate pairs
    found = kernel(x)

    def one_by_one(net, one, two, places, all_live):
        sides = (pairs.take(side, at) for side, at in zip((one, two), places, strict=True))
        return pairs.careful(net, *sides, all_live)

    monkeypatch.setattr(pairs, "careful_at", one_by_one)
    assert_same(tuple(found), tuple(kernel(x)))


def test_where_all_pairs_ask_for_care_the_quick_way_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of them get it."""
    kernel = lnk.kernels(lnk.mlp(hidden=40, activation=lnk.Gelu(), b_std=1.0))
    x = RNG.normal(size=(20, 3))
    found, layers = kernel(x), []
    usual = impatient.Impatient.angle

    def counted(num, cosine):
        layers.append(np.shape(cosine))
        return usual(num, cosine)

    monkeypatch.setattr(impatient.Impatient, "angle", counted)
    kernel(x)
    assert 0 < len(layers) < 60  # two angles for a layer, total and centred
    monkeypatch.setattr(impatient.Impatient, "angle", EagerFloat64.angle)  # never
    assert_same(tuple(found), tuple(kernel(x)))
