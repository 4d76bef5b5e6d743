"""`lnkernel.sklearn.NTKRegressor`: scikit-learn's own checks, and that it says what `posterior` says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lnkernel as lnk
from lnkernel.sklearn import NTKRegressor, networks
from lnkernel.sklearn.networks import choose_network

SMALL = lnk.mlp(hidden=1, norm="first", b_std=1.0)
LINEAR = lnk.serial(lnk.Dense(1, b_std=1.0))
X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.sin(X[:, 0]) + X[:, 1]


# a linear network, which compiles quickest: every check brings a dimension of its own
@parametrize_with_checks([NTKRegressor(LINEAR, noise=1e-3)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([NTKRegressor(), NTKRegressor(SMALL, kernel="nngp", noise=1e-3)])
def test_scikit_learns_checks_of_more(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_it_is_the_posterior(kernel: str, noise: float) -> None:
    model = NTKRegressor(SMALL, kernel=kernel, noise=noise).fit(X, Y)
    post = lnk.posterior(SMALL, X, Y, kernel=kernel, noise=noise)
    mean, std = model.predict(3 * X, return_std=True)
    spread = post.variance if kernel == "nngp" else post.ensemble_variance
    np.testing.assert_array_equal(mean, post.mean(3 * X))
    np.testing.assert_array_equal(std, np.sqrt(spread(3 * X)))


def test_several_outputs() -> None:
    model = NTKRegressor(SMALL).fit(X, np.stack([Y, -Y], axis=1))
    mean, std = model.predict(X[:4] + 1, return_std=True)
    assert mean.shape == std.shape == (4, 2)
    np.testing.assert_array_equal(std[:, 0], std[:, 1])
    np.testing.assert_allclose(mean[:, 0], NTKRegressor(SMALL).fit(X, Y).predict(X[:4] + 1))


def test_the_text_of_a_network() -> None:
    by_text = NTKRegressor("mlp(hidden=1, norm='first', b_std=1.0)").fit(X, Y)
    assert by_text.arch_ == SMALL
    with pytest.raises(
        lnk.errors.ArchitectureError, match="expected an architecture or its text, got 3"
    ):
        NTKRegressor(3).fit(X, Y)


def test_equal_inputs_are_where_training_ends() -> None:
    """The least-squares solution of smallest norm, which gradient flow tends to."""
    twice, targets = np.concatenate([X, X[:5]]), np.concatenate([Y, Y[:5] + 1])
    theta = lnk.ntk(SMALL)
    trained = theta(3 * X, twice) @ np.linalg.pinv(theta(twice), rcond=1e-12) @ targets
    found = NTKRegressor(SMALL).fit(twice, targets).predict(3 * X)
    np.testing.assert_allclose(found, trained, rtol=1e-7)


def test_equal_inputs_can_be_an_error() -> None:
    twice, targets = np.concatenate([X, X[:1]]), np.append(Y, 7.0)
    with pytest.raises(lnk.errors.DuplicateInputsError, match=r"0 = 30 \(different targets\)"):
        NTKRegressor(SMALL, merge_duplicates=False).fit(twice, targets)


def test_with_noise_every_row_counts() -> None:
    twice, targets = np.concatenate([X, X]), np.concatenate([Y, Y])
    found = NTKRegressor(SMALL, noise=0.2).fit(twice, targets).predict(3 * X)
    np.testing.assert_allclose(found, NTKRegressor(SMALL, noise=0.1).fit(X, Y).predict(3 * X))


def test_bound() -> None:
    model = NTKRegressor(SMALL, noise=0.1).fit(X, Y)
    expected = lnk.bound(SMALL, X, Y, noise=0.1)
    assert model.bound_.rkhs == expected.rkhs
    assert model.bound_ is model.bound_  # computed once
    assert abs(model.predict(1e6 * X)).max() < model.bound_.rkhs
    assert model.fit(X, 2 * Y).bound_.rkhs == pytest.approx(2 * expected.rkhs)


def test_no_bound_without_data_or_ntk() -> None:
    with pytest.raises(NotFittedError):
        _ = NTKRegressor(SMALL).bound_
    with pytest.raises(AttributeError, match="kernel=\"ntk\"; this one has kernel='nngp'"):
        _ = NTKRegressor(SMALL, kernel="nngp").fit(X, Y).bound_


def test_search_over_networks_in_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), NTKRegressor())
    grid = {
        "ntkregressor__arch": [LINEAR, SMALL],
        "ntkregressor__noise": [1e-3, 1e3],
    }
    bent = abs(X[:, 0])  # which no linear network fits
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, bent)
    assert search.best_params_ == {"ntkregressor__arch": SMALL, "ntkregressor__noise": 1e-3}
    assert search.best_score_ > 0.5
    assert search.best_estimator_[-1].bound_.n == len(X)


WORDS: list[tuple[dict[str, Any], lnk.Node]] = [
    ({}, lnk.mlp(hidden=2, norm="first")),
    ({"hidden": 1, "norm": None}, lnk.mlp(hidden=1)),
    ({"hidden": np.int64(1), "norm": "all"}, lnk.mlp(hidden=1, norm="all")),
    ({"activation": "gelu"}, lnk.mlp(norm="first", activation=lnk.Gelu())),
    ({"activation": "leaky_relu"}, lnk.mlp(norm="first", activation=lnk.LeakyRelu())),
    ({"activation": "Clip(-1, 1)"}, lnk.mlp(norm="first", activation=lnk.Clip(-1, 1))),
    ({"activation": lnk.Tanh(), "W_std": 1.0}, lnk.mlp(norm="first", activation=lnk.Tanh(), W_std=1.0)),
    ({"activation": "identity", "b_std": 1}, lnk.mlp(norm="first", activation=lnk.Identity(), b_std=1)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "arch"), WORDS)
def test_a_network_in_words(words: dict[str, Any], arch: lnk.Node) -> None:
    assert choose_network(None, **networks.WORDS | words) == arch


def test_a_search_prints_words() -> None:
    grid = {"hidden": [1], "norm": [None, "first"], "noise": [1e-3]}
    search = GridSearchCV(NTKRegressor(), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ in [{"hidden": 1, "norm": n, "noise": 1e-3} for n in (None, "first")]
    chosen = lnk.mlp(hidden=1, norm=search.best_params_["norm"])
    np.testing.assert_array_equal(
        search.predict(3 * X), lnk.posterior(chosen, X, Y, noise=1e-3).mean(3 * X)
    )
    assert repr(NTKRegressor(hidden=3, norm="all")) == "NTKRegressor(hidden=3, norm='all')"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"arch": SMALL, "hidden": 3}, "arch: expected None where hidden=3 is given"),
        ({"arch": "mlp()", "norm": None, "W_std": 1.0}, "None where norm=None, W_std=1.0 is given"),
        ({"hidden": 0}, "hidden must be an integer >= 1, got 0"),
        ({"hidden": True}, "hidden must be an integer >= 1, got True"),
        ({"norm": "second"}, "norm='second' is not known"),
        ({"activation": "rely"}, r"Write Relu\?"),
        ({"activation": "LayerNorm()"}, "activation: expected an activation, its name or its text"),
        ({"activation": 3}, "activation: expected an activation, its name or its text, got 3"),
    ],
)
def test_words_that_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        NTKRegressor(**words).fit(X, Y)


def test_a_clone_is_equal_and_unfitted() -> None:
    model = NTKRegressor(SMALL, noise=0.1).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "posterior_")


def test_without_scikit_learn() -> None:
    """In a process of its own, where scikit-learn cannot be imported."""
    program = "import sys; sys.modules['sklearn'] = None; import lnkernel; lnkernel.sklearn"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    assert "lnkernel.sklearn needs scikit-learn, which is not installed" in run.stderr
    assert "pip install 'lnkernel[sklearn]'" in run.stderr
