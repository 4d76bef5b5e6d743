"""What every kernel obeys, on random points: symmetry, positivity, rotations, scaling, identities.

Always 6 points in 3 dimensions, none of them zero, so that every network is compiled once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cases
import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import lnkernel as lnk
from lnkernel import (
    Abs,
    Dense,
    GroupNorm,
    Homogeneous,
    Identity,
    LayerNorm,
    LeakyRelu,
    Node,
    RectifiedPower,
    Relu,
    RMSNorm,
    residual,
    serial,
)
from lnkernel.evaluate.float64 import deep

Matrix = NDArray[np.float64]
SHAPE = (6, 3)
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # the first example compiles
)


def dense(b_std: float = 0.1, W_std: float = 2**0.5) -> Dense:
    return Dense(64, W_std=W_std, b_std=b_std)


@st.composite
def points(draw: st.DrawFn) -> Matrix:
    """Points of norms 2^-40 to 2^40; multiples of one another and duplicates among them."""
    entries = st.floats(-1, 1, allow_subnormal=False)
    x = draw(arrays(np.float64, SHAPE, elements=entries))
    x[np.abs(x).max(1) < 0.5, 0] = 1.0  # else a norm might be 1e-300
    return x * powers_of_two(draw, 40)


def powers_of_two(draw: st.DrawFn, largest: int) -> Matrix:
    exponents = draw(arrays(np.int64, (SHAPE[0], 1), elements=st.integers(-largest, largest)))
    return np.exp2(exponents)


@st.composite
def factors(draw: st.DrawFn) -> Matrix:
    return powers_of_two(draw, 20)


def correlations(gram: Matrix) -> Matrix:
    """G_ij/sqrt(G_ii G_jj): entries and errors in natural units."""
    length = np.sqrt(np.diag(gram))
    return gram / length / length[:, None]


def close(one: Matrix, two: Matrix, tolerance: float) -> bool:
    """Whether |one - two| <= tolerance sqrt(G_ii G_jj)."""
    length = np.sqrt(np.diag(two))
    return bool((np.abs(one - two) <= tolerance * length * length[:, None]).all())


# ---------------------------------------------------------------- laws of one Gram matrix


def is_symmetric(gram: Matrix, kernel: Callable[..., lnk.Kernels], name: str, x: Matrix) -> None:
    assert np.array_equal(gram, gram.T)


def is_positive(gram: Matrix, kernel: Callable[..., lnk.Kernels], name: str, x: Matrix) -> None:
    assert np.linalg.eigvalsh(correlations(gram)).min() >= -1e-13 * len(gram)


def has_the_diagonal(
    gram: Matrix, kernel: Callable[..., lnk.Kernels], name: str, x: Matrix
) -> None:
    assert np.array_equal(np.diag(gram), getattr(kernel.diagonal(x), name))  # type: ignore[attr-defined]


def agrees_with_the_rectangle(
    gram: Matrix, kernel: Callable[..., lnk.Kernels], name: str, x: Matrix
) -> None:
    assert close(getattr(kernel(x, x.copy()), name), gram, 1e-15)


def does_not_see_isometries(
    gram: Matrix, kernel: Callable[..., lnk.Kernels], name: str, x: Matrix
) -> None:
    """Of the axes: those are exact, so duplicates and multiples stay what they are.

    Sums over coordinates are rounded in another order; either result is good to 2e-15.
    """
    turned = np.ascontiguousarray(x[:, [2, 0, 1]] * [1, -1, 1])
    assert close(getattr(kernel(turned), name), gram, 4e-15)


LAWS = (
    is_symmetric,
    is_positive,
    has_the_diagonal,
    agrees_with_the_rectangle,
    does_not_see_isometries,
)
NETWORKS: dict[str, Node] = {
    "LN first": lnk.mlp(2, norm="first"),
    "leaky, LN after": serial(dense(), LeakyRelu(0.2), LayerNorm(eps=0.01), dense()),
    "general .75": serial(dense(0.3), Homogeneous(0.75, 1.0, -0.4), dense()),
    "residual": serial(dense(), residual(dense(), Relu(), dense()), LayerNorm(), dense()),
    "GroupNorm": serial(dense(), GroupNorm(4, scale=True, bias=True), dense()),
    "scale and bias": serial(
        dense(0.0), LayerNorm(1e-3, scale=True, bias=True), RectifiedPower(2), dense()
    ),
    "LN on the input": serial(LayerNorm(eps=0.1), dense(), Abs(), dense()),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gram_matrices(name: str) -> None:
    kernel = lnk.kernels(NETWORKS[name])
    laws = [law for law in LAWS if name != "LN on the input" or law is not does_not_see_isometries]

    @few
    @given(points())
    def check(x: Matrix) -> None:
        both = kernel(x)
        for which in ("nngp", "ntk"):
            for law in laws:
                law(getattr(both, which), kernel, which, x)

    check()


@few
@given(points(), st.integers(0, 2**32 - 1))
def test_rotations(x: Matrix, seed: int) -> None:
    """A rotated point is rounded, to an angle of 2e-16, which the NTK's kink sees in full."""
    kernel = lnk.kernels(NETWORKS["LN first"])
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    for turned, gram in zip(kernel(x @ turn), kernel(x), strict=True):
        assert close(turned, gram, 1e-14)


# ---------------------------------------------------------------- scaling

NO_BIAS: dict[str, tuple[Node, float]] = {
    "relu": (lnk.mlp(2, b_std=0.0), 1),
    "p2, abs": (serial(dense(0.0), RectifiedPower(2), dense(0.0), Abs(), dense(0.0)), 2),
    "p1.5": (serial(dense(0.0), RectifiedPower(1.5), dense(0.0)), 1.5),
    "residual": (serial(dense(0.0), residual(dense(0.0), LeakyRelu(), dense(0.0)), Relu()), 1),
}


@pytest.mark.parametrize("name", NO_BIAS)
def test_without_bias_kernels_are_homogeneous(name: str) -> None:
    """K(s x, s' x') = (s s')^(product of the degrees) K(x, x'): exact for powers of two."""
    arch, degree = NO_BIAS[name]
    kernel = lnk.kernels(arch)

    @few
    @given(points(), factors())
    def check(x: Matrix, s: Matrix) -> None:
        power = s**degree
        for scaled, gram in zip(kernel(s * x), kernel(x), strict=True):
            if float(degree).is_integer():
                assert np.array_equal(scaled, power * gram * power.T)
            else:  # the factors themselves are rounded
                assert close(scaled, power * gram * power.T, 2e-15)

    check()


NORMALISED: dict[str, Node] = {
    "before": serial(dense(0.0), LayerNorm(), Relu(), dense(0.3)),
    "after": serial(dense(0.0), Relu(), LayerNorm(scale=True), dense(0.3)),
    "input": serial(LayerNorm(), dense(0.3), Relu(), dense(0.3)),
    "group": serial(dense(0.0), GroupNorm(8), dense(0.3)),
}


@pytest.mark.parametrize("name", NORMALISED)
def test_layer_norm_makes_the_length_of_a_point_irrelevant(name: str) -> None:
    """Exactly so for powers of two."""
    kernel = lnk.kernels(NORMALISED[name])

    @few
    @given(points(), factors())
    def check(x: Matrix, s: Matrix) -> None:
        for scaled, gram in zip(kernel(s * x), kernel(x), strict=True):
            assert np.array_equal(scaled, gram)

    check()


def test_one_layer_norm_bounds_the_kernel_and_its_absence_does_not() -> None:
    x = np.array([[1.0, 2.0, 3.0], [1e100, 2e100, 3e100]])
    bounded, unbounded = (lnk.ntk(lnk.mlp(2, norm=n)).diagonal(x) for n in ("first", None))
    assert bounded[0] == bounded[1]
    assert unbounded[1] > 1e199 * unbounded[0]


# ---------------------------------------------------------------- networks that coincide

X = np.random.default_rng(0).normal(size=SHAPE)
X[1] = X[0] * (1 + 1e-9)
X[3] = -1e6 * X[2] + 1e-3
COINCIDE: dict[str, tuple[Node, Node]] = {
    "Homogeneous(1, 1, -1) is Identity": (Homogeneous(1, 1.0, -1.0), Identity()),
    "LeakyRelu(0) is Relu": (LeakyRelu(0.0), Relu()),
    "RectifiedPower(1) is Relu": (RectifiedPower(1), Relu()),
    "Homogeneous(1, 1, 1) is Abs": (Homogeneous(1, 1.0, 1.0), Abs()),
    "RMSNorm is LayerNorm, on a Gaussian state": (RMSNorm(0.1), LayerNorm(0.1)),
    "LayerNorm twice is LayerNorm": (serial(LayerNorm(), LayerNorm()), LayerNorm()),
}


def grams(*layers: Node) -> lnk.Kernels:
    return cases.uncompiled(serial(dense(), *layers, dense()), X)


@pytest.mark.parametrize("name", COINCIDE)
def test_layers_that_are_the_same(name: str) -> None:
    one, two = COINCIDE[name]
    for a, b in zip(grams(one), grams(two), strict=True):
        assert close(a, b, 1e-15)


def test_composition_is_associative() -> None:
    a, b, c = dense(), serial(LayerNorm(), Relu()), dense(0.3)
    left, right = serial(serial(a, b), c), serial(a, serial(b, c))
    assert left == right == serial(a, *b.layers, c)
    for one, two in zip(cases.uncompiled(left, X), cases.uncompiled(right, X), strict=True):
        assert np.array_equal(one, two)


def test_large_groups_are_layer_norm() -> None:
    """kappa_nu(rho) - rho and kappa_nu'(rho) - 1 are of order 1/nu."""
    norm = grams(LayerNorm())
    for size in (100, 1000):
        for one, two in zip(grams(GroupNorm(size)), norm, strict=True):
            assert close(one, two, 2 / size)
            assert not close(one, two, 0.01 / size)


def test_both_kernels_at_once_are_each_kernel_alone() -> None:
    """Up to the last bit: three programs, in which XLA contracts a*b + c differently."""
    arch = NETWORKS["leaky, LN after"]
    both = lnk.kernels(arch)(X)
    assert close(lnk.ntk(arch)(X), both.ntk, 1e-15)
    assert close(lnk.nngp(arch)(X), both.nngp, 1e-15)


BLOCKS: dict[str, tuple[Node, ...]] = {
    "relu": (dense(), Relu()),
    "LN eps": (dense(), LayerNorm(1e-3), Relu()),
    "LN after": (dense(0.0), Abs(), LayerNorm()),
    "scale and bias": (dense(), LayerNorm(1e-3, scale=True, bias=True), RectifiedPower(2)),
    "residual": (residual(LayerNorm(), dense(), Relu(), dense()),),
}


@pytest.mark.parametrize("name", cases.some_slow(BLOCKS, {"scale and bias"}))
def test_a_loop_over_blocks_is_the_blocks_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network of enough equal blocks runs in `lax.scan`; NumPy takes its blocks one by one."""
    arch = serial(dense(), *BLOCKS[name] * deep.FEWEST, dense())
    loops = []
    scan = jax.lax.scan
    monkeypatch.setattr(deep.lax, "scan", lambda *args: loops.append(1) or scan(*args))

    looped = cases.by_operations(arch, X)
    assert loops
    loops.clear()
    for one, two in zip(looped, cases.uncompiled(arch, X), strict=True):
        assert close(one, two, 4e-15)  # rounded in another order, 12 times
    assert not loops


# ---------------------------------------------------------------- known values


def by_variances(*variances: float) -> list[Dense]:
    """Dense layers by (W_std^2, b_std^2), as in the theory."""
    rows = zip(variances[::2], variances[1::2], strict=True)
    return [Dense(64, W_std=math.sqrt(w), b_std=math.sqrt(b)) for w, b in rows]


def known() -> dict[str, tuple[Node, dict[float, tuple[float, float]]]]:
    """Networks with Theta(x,x) at r = |x|^2 (d = 1), to half a unit of the last digit known."""
    (w,) = by_variances(2, 0.01)
    (free,) = by_variances(2, 0)
    affine = LayerNorm(1e-5, scale=True, bias=True)
    a, b, c, d, e, f = by_variances(2.5, 0.01, 0.5, 0.1, 6, 0.3, 10, 0.3, 16, 0.2, 1, 0)
    peak = residual(LayerNorm(), c, Relu(), d, Relu(), e)
    pre = residual(LayerNorm(), w, Relu(), w)
    return {
        "example": (
            serial(w, LayerNorm(), Relu(), w, Relu(), w),
            {0.01: (3.03, 1e-14), 7.0: (3.03, 1e-14), 1e30: (3.03, 1e-14)},
        ),
        "interior maximum": (
            serial(a, Relu(), b, peak, LayerNorm(), f),
            {0.0: (4.9535, 5e-5), 4.512: (5.8094161, 5e-8), 1e30: (3.0, 1e-9)},
        ),
        "maximum at 0": (
            serial(w, pre, LayerNorm(), w),
            {0.0: (7.9607, 5e-5), 1e30: (4.01, 1e-9)},
        ),
        "trainable bias": (
            serial(free, affine, Relu(), free, affine, Relu(), free),
            {0.0: (100001.0, 1e-9), 1e30: (6.99994, 5e-6)},
        ),
    }


@pytest.mark.parametrize("name", known())
def test_published_values(name: str) -> None:
    arch, table = known()[name]
    found = lnk.ntk(arch).diagonal([[math.sqrt(r)] for r in table])
    for value, (published, half_unit) in zip(found, table.values(), strict=True):
        assert value == pytest.approx(published, abs=half_unit)


def test_a_zero_input_has_no_direction() -> None:
    """Without bias and eps its kernels are 0, as with LayerNorm(0) = 0 in a finite network."""
    x: Any = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    for layer in (LayerNorm(), RMSNorm(), GroupNorm(4)):
        both = cases.uncompiled(serial(dense(0.0), layer, dense(0.0)), x)
        for gram in both:
            assert gram[0].tolist() == gram[:, 0].tolist() == [0.0, 0.0]
            assert gram[1, 1] > 0
