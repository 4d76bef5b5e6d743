"""`fit`: its gradient beside differences, its optimum beside scikit-learn's, known values recovered, bad input."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

import lnkernel as lnk
from lnkernel.check.arrays import as_data
from lnkernel.errors import DuplicateInputsError, InputError, SingularGramError, TransformationError
from lnkernel.gp import evidence as evidence_module
from lnkernel.gp.evidence import evidence
from lnkernel.gp.hyperparameters import places_of

RNG = np.random.default_rng(5)
X = RNG.normal(
    size=(14, 2)
)  # one tile of the smallest size, so that one program is compiled for all tests
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=14)
ARCH = lnk.mlp(hidden=1, W_std=1.3, b_std=0.5)


@pytest.mark.parametrize("which", ["ntk", "nngp"])
def test_gradient(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tiles, the last of them not full, with two outputs; differences are off by about 1e-9."""
    monkeypatch.setattr(evidence_module, "TILES", (5,))
    y = np.stack([Y, X[:, 1]], axis=1)
    found = evidence(ARCH, which, as_data(X, y), 0.1)
    assert found is not None
    leaves, tree = jax.tree.flatten(ARCH)

    def value(changes: np.ndarray, noise: float) -> float:
        arch = jax.tree.unflatten(
            tree, [a + float(b) for a, b in zip(leaves, changes, strict=True)]
        )
        return float(lnk.posterior(arch, X, y, which, noise).log_marginal_likelihood())

    assert found.value == pytest.approx(value(np.zeros(4), 0.1), rel=1e-13, abs=0)
    step = 1e-5
    for slope, direction in zip(found.by_leaves, np.eye(4), strict=True):
        two = value(step * direction, 0.1) - value(-step * direction, 0.1)
        assert slope == pytest.approx(two / (2 * step), rel=1e-6, abs=1e-7)
    two = value(np.zeros(4), 0.1 + step) - value(np.zeros(4), 0.1 - step)
    assert found.by_noise == pytest.approx(two / (2 * step), rel=1e-6)


def test_scikit_learn_finds_the_same() -> None:
    """Behind a last layer without bias its W_std² is a factor of K, which scikit-learn's own kernels search for."""
    hidden = [lnk.Dense(8, 1.3, 0.5), lnk.Relu()]
    arch = lnk.serial(*hidden, lnk.Dense(1))
    factor, white = ConstantKernel(1.0, (1e-6, 1e6)), WhiteKernel(0.1, (1e-6, 1e6))
    kernel = factor * lnk.sklearn.NTKKernel(arch, "nngp") + white
    theirs = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, Y)
    ours = lnk.fit(arch, X, Y, ("layers[2].W_std", "noise"), "nngp", noise=0.1)
    assert ours.converged
    assert ours.value == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-8)
    squares = ours.parameters["layers[2].W_std"] ** 2, ours.noise
    np.testing.assert_allclose(squares, np.exp(theirs.kernel_.theta), rtol=1e-3)


def test_known_hyperparameters_are_recovered() -> None:
    """Of 60 functions drawn from the prior; twice the gain over the truth is chi² with 2 degrees of freedom."""
    truth = lnk.mlp(hidden=1, W_std=1.7, b_std=0.5)
    root = np.linalg.cholesky(lnk.nngp(truth)(X) + 0.3 * np.eye(len(X)))
    y = root @ np.random.default_rng(1).normal(size=(len(X), 60))
    found = lnk.fit(ARCH, X, y, over=("W_std", "noise"), kernel="nngp")
    gain = found.value - float(lnk.posterior(truth, X, y, "nngp", 0.3).log_marginal_likelihood())
    assert found.converged and 0 <= 2 * gain < 20
    assert found.parameters == pytest.approx({"W_std": 1.7, "noise": 0.3}, rel=0.1)
    assert found.noise == found.parameters["noise"] and found.arch == lnk.mlp(
        hidden=1, W_std=found.parameters["W_std"], b_std=0.5
    )


def test_starts_agree_and_seeds_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    matrix = evidence_module.traced.matrix
    monkeypatch.setattr(
        evidence_module.traced, "matrix", lambda *args: traces.append(1) or matrix(*args)
    )
    jax.clear_caches()
    one, other = (lnk.fit(ARCH, X, Y, noise=0.1, starts=3, seed=4) for _ in range(2))
    assert len(traces) == 1  # one program for all starts, steps and calls
    assert one.parameters == other.parameters and one.starts[1].start == other.starts[1].start
    assert one.starts[0].start == pytest.approx(
        {"W_std": 1.3, "b_std": 0.5, "noise": 0.1}, rel=1e-15
    )
    assert all(start.converged for start in one.starts)
    assert len(one.starts) == 3 and one.value == max(start.value for start in one.starts)
    for start in one.starts:
        assert (np.diff(start.trace) >= 0).all() and start.trace[-1] == start.value
    slope = evidence(one.arch, "ntk", as_data(X, Y), one.noise)
    assert slope is not None and abs(slope.by_noise * one.noise) < 1e-3
    assert one.posterior.log_marginal_likelihood() == pytest.approx(one.value, rel=1e-12, abs=0)
    assert "the best of 3 starts" in str(one)


def test_names_paths_and_patterns() -> None:
    paths = [place.path for place in places_of(ARCH)]
    assert paths == ["layers[0].W_std", "layers[0].b_std", "layers[2].W_std", "layers[2].b_std"]
    kwargs: Any = {"noise": 0.1, "steps": 1}
    one = lnk.fit(ARCH, X, Y, over="layers[2].W_std", **kwargs)
    assert list(one.parameters) == ["layers[2].W_std"] and one.noise == 0.1
    assert one.arch.layers[0] == ARCH.layers[0] and one.arch.layers[2] != ARCH.layers[2]
    each = lnk.fit(ARCH, X, Y, over=("layers[*].W_std",), **kwargs)
    assert list(each.parameters) == ["layers[0].W_std", "layers[2].W_std"]
    slopes = np.full(len(X), 0.1)
    assert np.array_equal(lnk.fit(ARCH, X, Y, over="b_std", noise=slopes, steps=1).noise, slopes)


def test_what_ends_at_the_edge_is_named() -> None:
    """Targets without noise: the likelihood rises as the noise falls."""
    found = lnk.fit(ARCH, X, X[:, 0], over="noise", noise=1.0)
    assert found.at_edge == ("noise",) and "At the edge of their range: noise." in str(found)


def test_a_place_without_a_likelihood_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all noise above the start were singular, but for what is best: the search must come to it all the same."""
    usual = lnk.fit(ARCH, X, Y, over="noise", noise=1e-3)
    limit = usual.parameters["noise"] * 1.5

    def refuse(arch: Any, which: str, data: Any, noise: float) -> Any:
        return None if noise > limit else evidence(arch, which, data, noise)

    monkeypatch.setattr("lnkernel.gp.search.evidence", refuse)
    found = lnk.fit(ARCH, X, Y, over="noise", noise=1e-3)
    assert found.converged and found.value == pytest.approx(usual.value, rel=1e-8)


UNEQUAL = lnk.serial(lnk.Dense(8, b_std=0.1), lnk.Relu(), lnk.Dense(1, W_std=2.0))


@pytest.mark.parametrize(
    ("arch", "more", "message"),
    [
        (
            ARCH,
            {"over": ("w_std",)},
            "which are W_std, b_std, noise, got 'w_std'.*layers\\[0\\].W_std",
        ),
        (ARCH, {"over": ()}, "names of hyperparameters"),
        (ARCH, {"over": 3}, "names of hyperparameters"),
        (ARCH, {"over": ("W_std", "layers[0].W_std")}, "layers\\[0\\].W_std twice"),
        (ARCH, {"over": ("noise", "noise")}, "noise twice"),
        (UNEQUAL, {"over": "W_std"}, "one number wherever it occurs"),
        (UNEQUAL, {"over": "layers[2].b_std"}, "not 0, which is a fact about the structure"),
        (ARCH, {"over": "noise", "noise": np.ones(14)}, "one variance to start from"),
        (ARCH, {"over": "noise", "noise": -1.0}, "a variance, at least 0"),
        (ARCH, {"over": "noise", "starts": 0}, "starts"),
        (ARCH, {"over": "noise", "steps": 0}, "steps"),
        (ARCH, {"over": "noise", "seed": -1}, "seed"),
        (ARCH, {"over": "noise", "kernel": "rbf"}, "kernel"),
    ],
)
def test_refused(arch: lnk.Node, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lnk.fit(arch, X, Y, **more)


def test_a_start_without_a_likelihood_says_why() -> None:
    twice = np.concatenate([X[:3], X[:1]])
    with pytest.raises(DuplicateInputsError, match="0 = 3"):
        lnk.fit(ARCH, twice, Y[:4], over="W_std")
    with pytest.raises(SingularGramError, match="smallest eigenvalue"):
        lnk.fit(ARCH, [[0.0], [1e-15], [1.0]], [0.0, 1.0, 2.0], over="W_std")
    with pytest.raises(InputError, match="finite numbers"):
        lnk.fit(ARCH, X, np.where(Y > 1, np.nan, Y), over="W_std")
    with pytest.raises(InputError, match="targets of which one is not 0"):
        lnk.fit(ARCH, X, 0 * Y, over="noise")
    with pytest.raises(TransformationError):
        jax.grad(lambda y: lnk.fit(ARCH, X, y, over="noise").value)(Y)
