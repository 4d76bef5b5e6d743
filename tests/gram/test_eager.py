"""Few points: by NumPy, without a compiler."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import jax
import mpmath
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.evaluate.float64 import arithmetic, namespace
from lnkernel.evaluate.float64.expansion import count_series
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite_features import features
from lnkernel.gram import by_length, eager

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(30, 4)), np.zeros((1, 4)), 1e-7 * RNG.normal(size=(3, 4))])
X[1], X[2], X[3] = X[0] * (1 + 1e-13), -X[0], 3 * X[0]

BLOCK = (lnk.LayerNorm(eps=0.1, scale=True, bias=True), lnk.Gelu(), lnk.Dense(8))
NETWORKS = {
    "closed form": lnk.serial(
        lnk.Dense(8), lnk.Gelu(), lnk.Dense(8, b_std=0.1), lnk.Erf(), lnk.Dense(1)
    ),
    "tables": lnk.serial(
        lnk.Dense(8), lnk.LayerNorm(), lnk.Tanh(), lnk.Dense(8), lnk.Silu(), lnk.Dense(1)
    ),
    "series": lnk.serial(
        lnk.Dense(8), lnk.Silu(), lnk.LayerNorm(), lnk.Dense(8), lnk.Relu(), lnk.Dense(1)
    ),
    "trainable scale": lnk.serial(lnk.Dense(8), *BLOCK, lnk.Relu(), lnk.Dense(1)),
    "polynomial": lnk.serial(lnk.Dense(8), lnk.Polynomial((0.1, 1.0, 0.3)), lnk.Dense(1)),
}


def relative_errors(arch: lnk.Node, found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    ends = np.sqrt(np.asarray(lnk.ntk(arch).diagonal(X)))
    ends[ends == 0] = 1.0  # the zero vector without a bias
    return np.abs(np.asarray(found) - np.asarray(expected)) / ends[:, None] / ends


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_numbers_as_by_a_program(name: str) -> None:
    """The homogeneous ones are compared in test_two_ways."""
    arch = NETWORKS[name]
    by_numpy, ends = lnk.ntk(arch)(X), lnk.ntk(arch).diagonal(X)
    with eager.without_numpy():
        by_program = lnk.ntk(arch)(X)
    assert relative_errors(arch, by_numpy, by_program).max() < 1e-14
    np.testing.assert_allclose(ends, np.diag(by_program), rtol=1e-14)


@pytest.mark.parametrize("norm", [None, "all"])
def test_more_pairs_of_cheap_networks(norm: str | None) -> None:
    """Of which all, some or none are delicate."""
    close = X[5] + 1e-9 * RNG.normal(size=(200, 4))
    theta = lnk.ntk(lnk.mlp(hidden=2, norm=norm))
    for x in (close, np.concatenate([close[:100], RNG.normal(size=(100, 4))])):
        by_numpy, ends = theta(x), np.sqrt(theta.diagonal(x))
        with eager.without_numpy():
            by_program = theta(x)
        assert (np.abs(by_numpy - by_program) / ends[:, None] / ends).max() < 2e-15


def test_nothing_is_compiled() -> None:
    compiled: list[str] = []
    lnk.ntk(lnk.mlp())(
        X
    )  # asks, once in a process, whether a program is being traced, which compiles one operation
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(event) if "compile" in event else None
    )
    for arch in NETWORKS.values():
        lnk.kernels(arch)(X)
        lnk.kernels(arch)(X[:5], X[5:])
        lnk.ntk(arch).diagonal(X)
    x, y = RNG.normal(size=(300, 4)), RNG.normal(size=300)
    post = lnk.posterior(lnk.mlp(), x, y)
    post.mean(X), post.ensemble_variance(X)
    lnk.ntk(lnk.mlp(hidden=8, activation=lnk.Erf()))(x)  # which would be compiled for seconds
    assert not compiled
    with eager.without_numpy():  # it would be noticed
        lnk.ntk(lnk.serial(lnk.Dense(3), lnk.Relu(), lnk.Dense(3), lnk.Abs(), lnk.Dense(1)))(X)
    assert compiled


@pytest.mark.parametrize(
    ("arch", "series"),
    [
        (lnk.mlp(hidden=3), 0),
        (lnk.mlp(hidden=3, activation=lnk.Tanh()), 3),
        (lnk.mlp(hidden=3, activation=lnk.Tanh(), norm="first"), 1),  # one function of the angle
        (lnk.mlp(hidden=3, activation=lnk.Tanh(), norm="last"), 2),
        (lnk.mlp(hidden=3, norm="first"), 0),
    ],
)
def test_activations_that_are_compiled_one_after_the_other(arch: lnk.Node, series: int) -> None:
    assert count_series(arch) == series


def test_few_pairs_are_not_asked_whether_they_are_gentle(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError("asked")

    monkeypatch.setattr(by_length, "_steepness", refuse)
    theta = lnk.ntk(lnk.mlp(hidden=1, activation=lnk.Erf(), W_std=1.1))
    theta(X), theta.diagonal(X)
    with pytest.raises(AssertionError, match="asked"):
        theta(RNG.normal(size=(120, 4)))


def test_results_are_ours_to_change() -> None:
    """NumPy's views and read-only arrays do not leak."""
    with jax.enable_x64(False):
        for matrix in (lnk.ntk(lnk.mlp())(X), lnk.ntk(lnk.mlp())(X[:2], X)):
            matrix[0, 0] = 1.0


def test_no_warning_of_numpy(recwarn: pytest.WarningsRecorder) -> None:
    far = X * np.geomspace(1e-150, 1e150, len(X))[:, None]
    for arch in (lnk.mlp(), lnk.mlp(norm="all"), NETWORKS["closed form"]):
        assert np.isfinite(np.asarray(lnk.nngp(arch)(far))).all()
    assert not recwarn.list


FUNCTIONS = {
    lnk.Erf(): mpmath.erf,
    lnk.Gelu(): lambda u: u * mpmath.ncdf(u),
    lnk.Gelu(approximate=True): lambda u: (
        u / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (u + mpmath.mpf(0.044715) * u**3)))
    ),
    lnk.Silu(1.5): lambda u: u / (1 + mpmath.exp(-mpmath.mpf(1.5) * u)),
    lnk.Tanh(): mpmath.tanh,
    lnk.Sigmoid(): lambda u: 1 / (1 + mpmath.exp(-u)),
    lnk.Softplus(2.0): lambda u: mpmath.log1p(mpmath.exp(2 * u)) / 2,
    lnk.Sin(2.0, 0.5): lambda u: mpmath.sin(2 * u + 0.5),
    lnk.Cos(3.0): lambda u: mpmath.cos(3 * u),
    lnk.Gaussian(): lambda u: mpmath.exp(-u * u),
    lnk.Elu(1.5): lambda u: u if u > 0 else mpmath.mpf(1.5) * mpmath.expm1(u),
    lnk.Selu(): lambda u: lnk.Selu().scale * (u if u > 0 else lnk.Selu().alpha * mpmath.expm1(u)),
    lnk.Clip(-1.0, 2.0): lambda u: min(max(u, -1), 2),
}


@pytest.mark.parametrize("layer", FUNCTIONS, ids=repr)
def test_functions_and_derivatives_of_activations(layer: lnk.Elementwise) -> None:
    """Of NumPy's numbers and of JAX's, against 30 digits."""
    u = np.array([-30.0, -8.0, -2.5, -0.7, -1e-3, 1e-6, 0.3, 1.7, 4.0, 12.0])
    phi = function_of(layer)
    with mpmath.workdps(40):
        exact = [FUNCTIONS[layer](mpmath.mpf(x)) for x in u]
        slopes = [mpmath.diff(FUNCTIONS[layer], mpmath.mpf(x)) for x in u]
    size = np.maximum(1.0, np.abs(u))
    with jax.enable_x64(True):
        for numbers in (u, jax.numpy.asarray(u)):
            rest, slope = phi.with_slope(numbers)
            assert namespace.of(rest, slope) is namespace.of(numbers)
            for found, wanted in ((phi.at_zero + rest, exact), (slope, slopes)):
                error = [abs(mpmath.mpf(float(f)) - w) for f, w in zip(found, wanted, strict=True)]
                assert max(float(e) / s for e, s in zip(error, size, strict=True)) < 1e-15


def test_a_scan_over_a_thousand_architectures_keeps_nothing() -> None:
    """A program for each would take 350 memory maps, and megabytes; the system allows 65,530 maps."""

    def maps() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    activations = (lnk.Relu(), lnk.Abs(), lnk.LeakyRelu(0.2), lnk.Gelu(), lnk.Erf())
    activations += (lnk.Identity(), lnk.RectifiedPower(2), lnk.Step())
    norms = ((), (lnk.LayerNorm(),), (lnk.RMSNorm(),), (lnk.LayerNorm(eps=0.1),))
    blocks = [(*norm, act, lnk.Dense(8)) for norm in norms for act in activations]
    networks = [
        lnk.serial(lnk.Dense(8), *one, *two, lnk.Dense(1))
        for one, two in itertools.product(blocks, repeat=2)
    ]
    assert len(set(networks)) == 1024
    for arch in networks[::60]:  # libraries and tables are loaded once
        lnk.nngp(arch)(X[:3])
    before = maps(), resident()
    for arch in networks:
        lnk.nngp(arch)(X[:3])
    assert maps() < before[0] + 100
    assert resident() < before[1] + 2**25


@pytest.mark.parametrize("act", [lnk.Silu(), lnk.Tanh(), lnk.Softplus()], ids=repr)
def test_products_in_place_of_a_sum_over_polynomials(
    act: lnk.Elementwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same digits for few points, of which some are close, antipodal or on a ray."""
    x = np.delete(X, 30, axis=0)  # without the zero vector
    arch = lnk.mlp(hidden=3, activation=act, W_std=1.0)
    by_products = lnk.ntk(arch)(x)
    monkeypatch.setattr(arithmetic, "FEW_PAIRS", x.size**2)
    by_sums = lnk.ntk(arch)(x)
    ends = np.sqrt(np.diag(by_sums))
    assert np.abs((by_products - by_sums) / ends / ends[:, None]).max() < 1e-14
    assert (by_products != by_sums).any()  # two ways


def test_features_of_inputs_that_stand_in_many_pairs() -> None:
    lengths = RNG.choice([0.3, 0.7, 1.1], 40)
    once, each = (features(lnk.Tanh(), r, 512) for r in (lengths, lengths[:, None]))
    for one, other in zip(once, each, strict=True):
        # those of u phi'(u) are multiplied by up to 512, and so are rounding errors
        np.testing.assert_allclose(one, other[..., 0], rtol=0, atol=1e-14)
