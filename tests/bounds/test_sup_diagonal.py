"""C = sup Θ(x, x): known values, and nothing above it."""

from __future__ import annotations

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from exact_diagonal import exact_diagonal
from hypothesis import given, settings
from hypothesis import strategies as st

import lnkernel as lnk
from lnkernel.bounds.search import Peak, highest
from lnkernel.errors import ArchitectureError, InputError, TransformationError


def dense(weight: float, bias: float) -> lnk.Dense:
    """By the variances."""
    return lnk.Dense(64, W_std=weight**0.5, b_std=bias**0.5)


PRE_LN = lnk.serial(
    dense(2, 0.01),
    lnk.residual(lnk.LayerNorm(), dense(2, 0.01), lnk.Relu(), dense(2, 0.01)),
    lnk.LayerNorm(),
    dense(2, 0.01),
)
INTERIOR = lnk.serial(
    *(dense(2.5, 0.01), lnk.Relu(), dense(0.5, 0.1)),
    lnk.residual(
        *(lnk.LayerNorm(), dense(6, 0.3), lnk.Relu()),
        *(dense(10, 0.3), lnk.Relu(), dense(16, 0.2)),
    ),
    *(lnk.LayerNorm(), dense(1, 0)),
)
AFFINE = lnk.LayerNorm(eps=1e-5, scale=True, bias=True)


def affine(layers: int) -> lnk.Serial:
    return lnk.serial(*(dense(2, 0), AFFINE, lnk.Relu()) * layers, dense(2, 0))


def test_maximum_at_zero() -> None:
    c = lnk.sup_diagonal(PRE_LN)
    assert c.method == "search"
    assert c.attained_at == 0
    assert c.value == pytest.approx(7.9607389, rel=1e-8)
    assert c.limit_at_infinity == pytest.approx(4.01, rel=1e-14, abs=0)


def test_maximum_inside() -> None:
    c = lnk.sup_diagonal(INTERIOR)
    assert c.value == pytest.approx(5.809416082, abs=1e-9)  # known to so many digits
    assert c.attained_at**2 == pytest.approx(4.512, abs=1e-3)
    assert c.limit_at_zero == pytest.approx(4.9535, abs=1e-4)
    assert c.limit_at_infinity == pytest.approx(3, rel=1e-14, abs=0)
    # the top is flat to second order: a little aside nothing is higher
    aside = [
        exact_diagonal(INTERIOR, Fraction(c.attained_at * (1 + step)) ** 2)
        for step in (-1e-3, -1e-7, 1e-7, 1e-3)
    ]
    assert max(aside) <= c.value * (1 + 4e-15)


@pytest.mark.parametrize("layers, at_zero", [(2, 100001), (3, 1.00001e10)])
def test_trainable_bias(layers: int, at_zero: float) -> None:
    c = lnk.sup_diagonal(affine(layers))
    assert c.value == pytest.approx(at_zero, rel=1e-5)
    assert c.attained_at == 0
    if layers == 2:
        assert c.limit_at_infinity == pytest.approx(6.99994, rel=1e-8)


def test_constant() -> None:
    c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm="first"))
    assert c.is_constant and c.method == "constant" and not c.certified
    assert c.value == pytest.approx(3.03, rel=1e-15, abs=0)
    assert c.limit_at_zero == c.limit_at_infinity == c.value


def test_monotone_is_the_limit_in_closed_form() -> None:
    """L blocks (Dense, ReLU), Dense, LayerNorm: t = L + 1, then ReLU and Dense: W²/2 (1 + t) + b²."""
    for hidden in (2, 5):
        c = lnk.sup_diagonal(lnk.mlp(hidden=hidden, norm="last", W_std=2**0.5, b_std=0.1))
        assert (c.method, c.attained_at) == ("monotone", math.inf)
        assert c.value == pytest.approx(hidden + 1.01, rel=1e-14, abs=0)


def test_without_normalisation() -> None:
    c = lnk.sup_diagonal(lnk.mlp(hidden=2))
    assert c.value == c.limit_at_infinity == c.attained_at == math.inf
    assert c.growth == pytest.approx((2.0, 6.0), rel=1e-14, abs=0)
    assert "6·(|x|/√d)^2" in str(c)


def test_infinite_at_zero() -> None:
    """A trainable bias keeps Θ > 0 where the degree below 1 has an infinite slope."""
    c = lnk.sup_diagonal(
        lnk.serial(
            dense(1, 0), lnk.LayerNorm(0.1, bias=True), lnk.RectifiedPower(0.75), dense(1, 0)
        )
    )
    assert (c.value, c.attained_at, c.growth) == (math.inf, 0.0, None)
    assert "x = 0" in str(c)


WIDTHS = st.floats(0.1, 4.0)
BIASES = st.sampled_from([0.0, 1e-3, 0.1, 2.0])
NORMS = st.sampled_from([lnk.LayerNorm(), lnk.LayerNorm(1e-3, scale=True), lnk.RMSNorm(0.5), None])
ACTS = st.sampled_from([lnk.Relu(), lnk.Abs(), lnk.RectifiedPower(0.75), lnk.RectifiedPower(2)])
BLOCK = st.tuples(WIDTHS, BIASES, NORMS, ACTS, NORMS)


@settings(max_examples=60, deadline=None)
@given(st.lists(BLOCK, min_size=1, max_size=4), st.floats(-20, 20))
def test_sequential_networks_never_exceed_the_limit(blocks: list[tuple], power: float) -> None:
    """The theorem, on random networks and norms, against the oracle."""
    layers: list[lnk.Node] = []
    for W_std, b_std, before, act, after in blocks:
        layers += [x for x in (lnk.Dense(8, W_std, b_std), before, act, after) if x is not None]
    arch = lnk.serial(*layers, lnk.LayerNorm(), lnk.Dense(1))
    c = lnk.sup_diagonal(arch)
    assert c.method in ("constant", "monotone")
    low, high = (exact_diagonal(arch, Fraction(10.0**p)) for p in (power, power + 0.5))
    assert low <= high * (1 + 1e-15) and high <= c.value * (1 + 1e-13)


@pytest.mark.parametrize("arch", [PRE_LN, INTERIOR, affine(2)], ids=["pre-LN", "inside", "affine"])
def test_nothing_is_above_what_the_search_finds(arch: lnk.Node) -> None:
    c = lnk.sup_diagonal(arch)
    powers = np.random.default_rng(0).uniform(-30, 30, size=200)
    assert max(exact_diagonal(arch, Fraction(10.0**p)) for p in powers) <= c.value * (1 + 1e-14)


@pytest.mark.parametrize("norm", [lnk.LayerNorm(eps=0.1), lnk.RMSNorm(eps=0.1)])
def test_norm_on_the_raw_input(norm: lnk.Node) -> None:
    """For LayerNorm the norm is the standard deviation of the coordinates."""
    arch = lnk.serial(norm, *lnk.mlp(hidden=1).layers)
    c = lnk.sup_diagonal(arch)
    # far out the input has length 1: K = Θ = 2.01, halved by ReLU, then K = 2.02 and Θ = K + 2.01
    assert c.method == "monotone" and c.value == pytest.approx(4.03, rel=1e-14, abs=0)
    expected = [float(exact_diagonal(arch, Fraction(r * r))) for r in (0.25, 4.0)]
    assert c.profile([0.25, 4.0]) == pytest.approx(expected, rel=1e-14, abs=0)


EPS = st.sampled_from([0.0, 1e-5, 0.1])


@st.composite
def branched(draw: st.DrawFn) -> lnk.Serial:
    """Residual blocks and trainable biases, ended by a norm; biases keep Θ(0, 0) finite."""

    def dense_layer() -> lnk.Dense:
        return lnk.Dense(8, draw(WIDTHS), draw(st.sampled_from([1e-3, 0.1, 2.0])))

    layers: list[lnk.Node] = [dense_layer()]
    for _ in range(draw(st.integers(1, 2))):
        norm = lnk.LayerNorm(draw(EPS), scale=draw(st.booleans()), bias=draw(st.booleans()))
        block = [norm, draw(ACTS), dense_layer()]
        layers += [lnk.residual(*block)] if draw(st.booleans()) else block
    return lnk.serial(*layers, lnk.LayerNorm(draw(EPS), bias=True), lnk.Dense(1))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(branched(), st.lists(st.floats(-25, 25), min_size=20, max_size=20))
def test_no_norm_beats_the_search(arch: lnk.Serial, powers: list[float]) -> None:
    c = lnk.sup_diagonal(arch)
    inside = 0 < c.attained_at < math.inf
    if inside:
        powers = powers + [2 * math.log10(c.attained_at) + step for step in (-0.1, -1e-3, 1e-3)]
    seen = max(exact_diagonal(arch, Fraction(10.0**power)) for power in powers)
    assert seen <= c.value * (1 + 1e-13)
    if inside:  # and the value is one that is taken
        there = exact_diagonal(arch, Fraction(c.attained_at) ** 2)
        assert float(there) == pytest.approx(c.value, rel=1e-13, abs=0)


def test_search_finds_a_narrow_peak_between_two_ends() -> None:
    def hump(norms: np.ndarray) -> np.ndarray:
        return 1 + np.exp(-((np.log10(norms) - 17.3) ** 2) / 0.1**2)

    top = highest(hump, (Peak(0.0, 1.0), Peak(math.inf, 1.5)))
    assert top.height == pytest.approx(2, abs=1e-14)
    assert math.log10(top.place) == pytest.approx(17.3, abs=1e-6)


def test_search_prefers_the_end_of_a_plateau() -> None:
    noise = np.random.default_rng(0)

    def plateau(norms: np.ndarray) -> np.ndarray:
        return 2 - 1 / (1 + norms) + 1e-16 * noise.normal(size=norms.shape)

    assert highest(plateau, (Peak(0.0, 1.0), Peak(math.inf, 2.0))) == (math.inf, 2.0)


def test_profile() -> None:
    c = lnk.sup_diagonal(PRE_LN)
    norms = np.array([0.0, 1e-3, 1.0, 1e3, np.inf])
    profile = c.profile(norms)
    theta = lnk.ntk(PRE_LN)
    assert profile[:-1] == pytest.approx(theta.diagonal(norms[:-1, None]), rel=1e-14, abs=0)
    assert profile[-1] == c.limit_at_infinity
    with pytest.raises(InputError, match="norms"):
        c.profile([-1.0])
    with pytest.raises(InputError, match="norms"):
        c.profile([[1.0]])


def test_refusals() -> None:
    branch = lnk.serial(lnk.LayerNorm(), lnk.Dense(8))
    with pytest.raises(ArchitectureError, match=r"branch 0.*two numbers"):
        lnk.sup_diagonal(lnk.serial(lnk.parallel(branch, lnk.Dense(8)), lnk.LayerNorm()))
    with pytest.raises(ArchitectureError, match="expected an architecture"):
        lnk.sup_diagonal(3)  # type: ignore[arg-type]
    with pytest.raises(TransformationError, match="sup_diagonal: expected plain numbers"):
        jax.grad(lambda arch: lnk.sup_diagonal(arch).value)(lnk.mlp(norm="first"))


def test_two_normalisations_of_the_raw_input_are_refused() -> None:
    """RMSNorm divides by the mean square, the LayerNorm behind it sees the variance only."""
    layers = lnk.Dense(8), lnk.Relu(), lnk.Dense(1)
    with pytest.raises(ArchitectureError, match=r"layer 1: .*two numbers"):
        lnk.sup_diagonal(lnk.serial(lnk.RMSNorm(), lnk.LayerNorm(eps=0.1), *layers))


@pytest.mark.parametrize("activation", [lnk.Sign(), lnk.Step()])
def test_activations_without_an_ntk_are_refused(activation: lnk.Elementwise) -> None:
    with pytest.raises(ArchitectureError, match="its NTK does not exist, because it jumps"):
        lnk.sup_diagonal(lnk.mlp(norm="first", activation=activation))
