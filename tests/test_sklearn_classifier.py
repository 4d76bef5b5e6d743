"""`lnkernel.sklearn.NTKClassifier`: scikit-learn's own checks, points left out, probabilities that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

import lnkernel as lnk
from lnkernel.sklearn import NTKClassifier
from lnkernel.sklearn.calibration import leave_one_out

LINEAR = lnk.serial(lnk.Dense(1, b_std=1.0))
DIGITS, LABELS = load_digits(return_X_y=True)
X = np.random.default_rng(0).normal(size=(40, 2))
CLASSES = np.where(X[:, 0] > 0.5, "c", np.where(X[:, 1] > 0, "b", "a"))


@parametrize_with_checks([NTKClassifier(LINEAR, noise=1e-3)])  # it compiles quickest
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([NTKClassifier(), NTKClassifier(hidden=1, kernel="nngp", noise=1e-3)])
def test_scikit_learns_checks_of_more(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_is_least_squares_on_the_classes() -> None:
    model = NTKClassifier(hidden=1, noise=0.1).fit(X, CLASSES)
    rows = (CLASSES[:, None] == np.array(["a", "b", "c"])) - 1 / 3
    expected = lnk.posterior(lnk.mlp(hidden=1, norm="first"), X, rows, noise=0.1).mean(2 * X)
    np.testing.assert_array_equal(model.decision_function(2 * X), expected)
    np.testing.assert_array_equal(model.predict(2 * X), model.classes_[expected.argmax(axis=1)])
    likely = model.classes_[model.predict_proba(2 * X).argmax(axis=1)]
    np.testing.assert_array_equal(likely, model.predict(2 * X))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_points_left_out_one_by_one(noise: float) -> None:
    """The formula beside training again without each of them."""
    model = NTKClassifier(hidden=1, noise=noise).fit(X, CLASSES)
    rows = (CLASSES[:, None] == model.classes_) - 1 / 3
    found = leave_one_out(model.posterior_._fit)
    for i in range(0, len(X), 13):
        others = np.arange(len(X)) != i
        again = lnk.posterior(model.arch_, X[others], rows[others], noise=noise)
        np.testing.assert_allclose(found[i], again.mean(X[i : i + 1])[0], rtol=1e-9, atol=1e-10)


def test_sharpness_is_the_likeliest() -> None:
    model = NTKClassifier(hidden=1, noise=0.1).fit(X, CLASSES)
    n, classes = len(X), 3
    left_out = leave_one_out(model.posterior_._fit)
    targets = (n * (CLASSES[:, None] == model.classes_) + 1 / classes) / (n + 1)

    def misfit(beta: float) -> float:
        log = beta * left_out - np.log(np.exp(beta * left_out).sum(axis=1, keepdims=True))
        return float(-(targets * log).sum())

    best = model.sharpness_
    assert best > 1
    assert misfit(best) < min(misfit(0.98 * best), misfit(1.02 * best))


def test_labels_without_a_pattern_get_even_odds() -> None:
    """On a line of alternating classes every point is mistaken by its neighbours."""
    line = np.arange(12.0)[:, None]
    model = NTKClassifier(hidden=1).fit(line, np.arange(12) % 2)
    assert model.sharpness_ == 0
    np.testing.assert_array_equal(model.predict_proba(line), 0.5)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_probabilities_are_kept(noise: float) -> None:
    """Two overlapping clouds, also interpolated, where the training data alone would claim certainty.

    The claimed and the found share of right answers, over 5 x 200 points to learn from: by chance
    they differ by sqrt(0.2 x 0.8/1000) = 0.013, of which three are allowed.
    """
    excess = []
    for seed in range(5):
        (points, which), (others, asked) = clouds(200, seed), clouds(2000, 100 + seed)
        model = NTKClassifier(hidden=1, b_std=1.0, noise=noise).fit(points, which)
        claimed = model.predict_proba(others).max(axis=1).mean()
        excess.append(claimed - model.score(others, asked))
        if noise == 0:
            assert model.score(points, which) == 1
    assert abs(np.mean(excess)) < 0.039


def clouds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n points on a line around -1 and 1, and around which."""
    rng = np.random.default_rng(seed)
    which = rng.integers(2, size=n)
    return rng.normal(size=(n, 1)) + (2 * which - 1)[:, None], which


def test_digits_of_a_part() -> None:
    rest = train_test_split(
        DIGITS / 16, LABELS, train_size=600, test_size=600, stratify=LABELS, random_state=0
    )
    train, test, known, asked = rest
    model = NTKClassifier().fit(train, known)
    assert model.score(test, asked) >= 0.97
    sure = model.predict_proba(test).max(axis=1).mean()
    chance = np.sqrt(2 * 0.02 * 0.98 / 600)  # of 600 digits to learn from and as many asked for
    assert sure == pytest.approx(model.score(test, asked), abs=3 * chance)


@pytest.mark.slow
def test_digits() -> None:
    """Every digit predicted by four fifths of the others."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    odds = cross_val_predict(NTKClassifier(), DIGITS / 16, LABELS, cv=folds, method="predict_proba")
    accuracy = (odds.argmax(axis=1) == LABELS).mean()
    assert accuracy >= 0.98
    assert odds.max(axis=1).mean() == pytest.approx(accuracy, abs=0.005)


def test_equal_inputs_of_two_classes_are_even() -> None:
    twice = np.concatenate([X[:9], X[:1]])
    labels = np.array([0] + [0, 1] * 4 + [1])
    model = NTKClassifier(hidden=1).fit(twice, labels)
    np.testing.assert_allclose(model.decision_function(X[:1]), 0.0, atol=1e-9)
    with pytest.raises(lnk.errors.DuplicateInputsError, match=r"0 = 9 \(different targets\)"):
        NTKClassifier(hidden=1, merge_duplicates=False).fit(twice, labels)


def test_what_cannot_be_classified() -> None:
    with pytest.raises(lnk.errors.InputError, match="at least two classes, got one class, 'a'"):
        NTKClassifier().fit(X, ["a"] * len(X))
    with pytest.raises(NotFittedError):
        _ = NTKClassifier().sharpness_
