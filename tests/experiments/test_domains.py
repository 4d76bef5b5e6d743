"""Splits by domain, scores, and the learners of the regression experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import MissingPackageError
from lnkernel.experiments import learners
from lnkernel.experiments.domains import (
    Published,
    Result,
    Split,
    by_seed,
    count_repeated,
    r_squared,
    split,
)
from lnkernel.experiments.learners import Recipe

DRAW = np.random.default_rng(0)
X = DRAW.normal(5.0, 3.0, (200, 2))
Y = 10 + 4 * np.sin(X[:, 0]) + DRAW.normal(0, 0.5, 200)
LARGE = X[:, 0] > 8


@pytest.fixture(scope="module")
def part() -> Split:
    return split(X, Y, LARGE, seed=3)


def test_every_point_is_in_one_part(part: Split) -> None:
    rows = [part.train.rows, part.inside.rows, part.outside.rows]
    assert sorted(np.concatenate(rows)) == list(range(200))
    assert sorted(part.outside.rows) == np.flatnonzero(LARGE).tolist()
    assert len(part.train.rows) == round(0.9 * (~LARGE).sum())


def test_only_training_points_standardise(part: Split) -> None:
    np.testing.assert_allclose(part.train.x.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(part.train.x.std(0), 1, rtol=1e-12)
    known = X[part.train.rows]
    for points in (part.inside, part.outside):
        expected = (X[points.rows] - known.mean(0)) / known.std(0)
        np.testing.assert_allclose(points.x, expected, rtol=1e-12)
        np.testing.assert_array_equal(points.y, Y[points.rows])
    assert part.outside.x[:, 0].min() > part.train.x[:, 0].max()


def test_targets_and_back(part: Split) -> None:
    assert abs(part.targets.mean()) < 1e-12
    np.testing.assert_allclose(part.targets.std(), 1, rtol=1e-12)
    np.testing.assert_allclose(part.in_units(part.targets), part.train.y, rtol=1e-12)


def test_seeds_split_differently_and_fewer_points_keep_the_tests(part: Split) -> None:
    assert set(split(X, Y, LARGE, seed=4).train.rows) != set(part.train.rows)
    few = split(X, Y, LARGE, seed=3, most=20)
    np.testing.assert_array_equal(few.train.rows, part.train.rows[:20])
    np.testing.assert_array_equal(few.inside.rows, part.inside.rows)


def test_a_constant_column_is_left_at_zero() -> None:
    made = split(np.column_stack([X, np.ones(200)]), Y, LARGE, seed=0)
    assert (made.train.x[:, 2] == 0).all()


def test_repeated_points() -> None:
    x, y = np.repeat(X[:50], 2, axis=0), np.repeat(Y[:50], 2)
    made = split(x, y, np.zeros(100, bool), seed=0)
    partners = {int(row) ^ 1 for row in made.inside.rows}
    assert count_repeated(made) == len(partners & set(made.train.rows.tolist())) > 0
    assert count_repeated(split(X, Y, LARGE, seed=0)) == 0


def test_r_squared() -> None:
    assert r_squared(Y, Y) == 1
    assert r_squared(Y, np.full_like(Y, Y.mean())) == 0
    assert r_squared(np.array([0.0, 2.0]), np.array([2.0, 0.0])) == -3


def test_row_of_the_table(part: Split) -> None:
    """Scores 1 and 0 have the mean 1/2 with the standard error 1/2."""
    exact = {"inside": part.inside.y, "outside": part.outside.y}
    flat = {name: np.full_like(values, values.mean()) for name, values in exact.items()}
    published = Published((0.6, 0.01), (0.31, 0.02))
    result = Result("some", "red", [part, part], [exact, flat], published, "a note")
    row = result.row()
    assert (row["R² in domain"], row["± (in domain)"], row["seeds"]) == (0.5, 0.5, 2)
    assert row["published R² out of domain"] == ".31 ± .02"
    assert row["note"] == "a note"
    assert list(result.row_in_words().values())[1:3] == [".500 ± .500", ".31 ± .02"]
    assert [line["R² out of domain"] for line in by_seed([result], [7, 8])] == [1, 0]


def test_trees_learn_and_do_not_extrapolate(part: Split) -> None:
    made = learners.boosted_trees(part)
    assert np.median(np.abs(part.inside.y - made["inside"])) < 0.3 * part.train.y.std()
    assert made["outside"].max() <= part.train.y.max() + 1
    assert made["outside"].shape == part.outside.y.shape


def test_trees_need_their_package(part: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingPackageError, match=r"lnkernel\[experiments\]"):
        learners.boosted_trees(part)


def test_infinite_network(part: Split) -> None:
    """The chosen noise beats those a step away; the tests have no say in it."""
    rows, validation = 60, 40
    made = learners.infinite_network(part, "first", rows, validation)
    others = slice(rows, rows + validation)

    def score(noise: float) -> float:
        arch, x, y = lnk.mlp(norm="first"), part.train.x, part.targets
        post = lnk.posterior(arch, x[:rows], y[:rows], noise=noise)
        return r_squared(y[others], post.mean(x[others]))

    noise = float(made["noise"])
    assert float(made["validation"]) == pytest.approx(score(noise), rel=1e-9)
    assert max(score(noise * 10**0.5), score(noise / 10**0.5)) <= score(noise)
    assert made["inside"].shape == part.inside.y.shape


@pytest.mark.parametrize("best", [0.01, 0.3, 30.0])
def test_climb_ends_at_the_top(best: float) -> None:
    tried: list[float] = []

    def fit(noise: float) -> tuple[float, Any]:
        tried.append(noise)
        return -abs(np.log(noise / best)), f"fit of {noise}"

    noise, score, made = learners.climb(fit, start=0.3)
    assert abs(np.log10(noise / best)) <= 0.25 + 1e-9
    assert (score, made) == fit(noise)
    assert len(tried) < 10


def test_networks_each_on_its_split(part: Split, tmp_path: Path) -> None:
    recipe = Recipe(steps=30, learning_rate=1e-2, width=8)
    other = Split(part.train._replace(y=-part.train.y), part.inside, part.outside)

    def made(splits: list[Split], seeds: list[int], scratch: str) -> np.ndarray:
        folder = tmp_path / scratch
        return learners.networks(splits, "first", recipe, seeds, folder, progress=False)["inside"]

    both = made([part, other], [5, 6], "a")
    assert both.shape == (2, len(part.inside.y))
    np.testing.assert_array_equal(both, made([part, other], [5, 6], "a"))  # from the checkpoint
    alone = [made([part], [5], "b")[0], made([other], [6], "c")[0]]
    np.testing.assert_allclose(both, alone, rtol=1e-4, atol=1e-4)  # float32, 30 steps of Adam
    assert abs(both[0].mean() - part.train.y.mean()) < 2  # in the targets' unit
