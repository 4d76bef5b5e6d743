"""Laplace's approximation around classifiers: the scores by hand, one trial, the whole in small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import MissingDataError
from lnkernel.experiments import REGISTRY, laplace
from lnkernel.experiments.calibration import (
    accuracy,
    best_temperature,
    ece,
    nll,
    reliability,
    softmax,
)
from lnkernel.experiments.classifier import Recipe, flatten, make_mlp, train_classifier
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.laplace_report import report_of
from lnkernel.experiments.laplace_scores import Results
from lnkernel.experiments.laplace_task import Task, draw_parts
from lnkernel.experiments.laplace_trial import run_trial
from lnkernel.tangents.ella import covariance_of, directions, features

# confidence .9 right, .9 wrong, .6 right, .35 wrong (of three classes)
P = np.array([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.2, 0.2, 0.6], [0.35, 0.33, 0.32]])
LABELS = np.array([0, 2, 2, 1])


def test_scores_by_hand() -> None:
    assert accuracy(P, LABELS) == 0.5
    assert np.isclose(nll(P, LABELS), -np.log([0.9, 0.05, 0.6, 0.33]).mean())
    # three bins of a confidence each: |.5 - .9| of a half, |1 - .6| and |0 - .35| of a quarter
    assert np.isclose(ece(P, LABELS), 0.5 * 0.4 + 0.25 * 0.4 + 0.25 * 0.35)
    assert np.isclose(ece(P, LABELS, bins=1), abs(0.5 - (0.9 + 0.9 + 0.6 + 0.35) / 4))


def test_ece_is_zero_where_confidence_is_accuracy_and_seen_where_it_is_not() -> None:
    sure = np.tile([[0.8, 0.2]], (10, 1))
    labels = np.repeat([0, 1], [8, 2])
    assert np.isclose(ece(sure, labels), 0, atol=1e-12)
    assert np.isclose(ece(sure, 1 - labels), 0.6)


def test_bins_are_closed_above_as_in_the_paper() -> None:
    """Of 1/3 the bin is the fifth of fifteen, of certainty the last."""
    third = reliability(np.full((1, 3), 1 / 3), np.zeros(1, int))
    certain = reliability(np.array([[1.0, 0.0]]), np.zeros(1, int))
    assert third.share.argmax() == 4 and certain.share.argmax() == 14


def test_a_label_without_probability() -> None:
    assert nll(np.array([[1.0, 0.0]]), np.array([1])) == np.inf


def test_the_best_temperature_undoes_a_scale() -> None:
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(4000, 3))
    labels = np.array([rng.choice(3, p=p) for p in softmax(outputs)])
    one = best_temperature(outputs, labels)
    assert abs(one - 1) < 0.15
    assert np.isclose(best_temperature(7 * outputs, labels), 7 * one, rtol=1e-5)


def blobs(n: int, seed: int) -> Pictures:
    """Ten classes of 3 × 3 pictures, mixed up enough for mistakes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 10
    middles = np.random.default_rng(0).normal(size=(10, 3, 3, 1))
    x = middles[labels] + rng.normal(size=(n, 3, 3, 1))
    return Pictures(x.astype(np.float32), labels)


def small(exact: bool = True) -> Task:
    return Task(
        *("blobs", "blobs, 40 of them", blobs(160, 1), None, 40, 60, 60, make_mlp),
        *(Recipe(30, 0.01, batch=20), (5, 20), 40, exact, 10),
    )


def test_parts_have_nothing_in_common_and_tests_are_mixed() -> None:
    numbered = Pictures(np.arange(160.0, dtype=np.float32).reshape(-1, 1, 1, 1), np.arange(160))
    parts = draw_parts(replace(small(), known=numbered), seed=3)
    seen = [parts.train.label, parts.validation.label, parts.test.label]
    assert len(np.unique(np.concatenate(seen))) == 40 + 60 + 60
    apart = draw_parts(replace(small(), known=numbered, unseen=numbered, test=20), seed=3)
    assert apart.test.label.max() > 20  # not the first ones of an ordered file


def test_the_mode_is_stationary() -> None:
    """Of a linear model the slope of -log likelihood is in the end minus that of the prior."""

    def make(shape: tuple[int, ...], classes: int, rngs: nnx.Rngs) -> nnx.Sequential:
        return nnx.Sequential(flatten, nnx.Linear(int(np.prod(shape)), classes, rngs=rngs))

    data = blobs(60, 2)
    net = make((3, 3, 1), 10, nnx.Rngs(0))
    train_classifier(net, data.x, data.label, Recipe(400, 5.0, rate=3e-2, batch=60), seed=0)
    t = lnk.tangent(net)
    outputs = np.asarray(t.value(data.x), np.float64)
    slopes = t.vjp(data.x, softmax(outputs) - np.eye(10)[data.label])
    slope, theta = (
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
        for tree in (slopes, t.params)
    )
    assert np.abs(slope + 5.0 * theta).max() < 1e-2 * np.abs(5.0 * theta).max()


def test_features_of_the_largest_rank_serve_all_ranks() -> None:
    """The experiment's covariance is that of `Tangent.laplace` of the rank and prior asked for."""
    data, more = blobs(40, 3), blobs(7, 4)
    t = lnk.tangent(make_mlp((3, 3, 1), 10, nnx.Rngs(0)))
    basis = directions(t, data.x, data.label, 10, 20, 40, seed=0)
    train, test = features(t, data.x, basis), features(t, more.x, basis)
    p = softmax(np.asarray(t.value(data.x), np.float64))
    hessians = p[:, :, None] * np.eye(10) - p[:, :, None] * p[:, None, :]
    curvature = np.einsum("iar,iab,ibs->rs", train, hessians, train)[:5, :5]
    found = covariance_of(test[..., :5], curvature + 3.0 * np.eye(5))
    library = t.laplace(data.x, data.label, "categorical", 3.0, rank=5, subsample=40)
    assert np.allclose(found, library.covariance(more.x), rtol=1e-4, atol=1e-6)


def test_a_trial_and_its_report(tmp_path: Path) -> None:
    task = small()
    found = Results(task, [run_trial(task, draw_parts(task, seed), seed) for seed in (0,)])
    assert found.methods == ["map", "scaled", "ella 5", "ella 20", "stopped", "exact", "evidence"]
    trial = {name: np.asarray(value) for name, value in found.trials[0].items()}
    for method in found.methods:
        p = trial[f"p {method}"]
        assert p.shape == (60, 10) and np.allclose(p.sum(1), 1) and (p >= 0).all()
    assert trial["used"] in trial["checks"] and trial["checks"][-1] == 40
    best = np.unravel_index(trial["losses"].argmin(), trial["losses"].shape)
    assert (
        trial["used"] == trial["checks"][best[1]] and trial["tau stopped"] == trial["taus"][best[0]]
    )
    made = Results(task, [{k: np.asarray(v) for k, v in one.items()} for one in found.trials])
    folder = Folder(tmp_path, "laplace", quick=True, progress=False)
    page = report_of(folder, [made], "CIFAR-10 is left out").html()
    assert page.count("data:image/png") == 3 and "CIFAR-10 is left out" in page
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 8


def test_without_cifar_it_says_so_unless_the_file_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LNKERNEL_DATA", raising=False)
    monkeypatch.setattr("lnkernel.datasets.locate.cache", lambda: tmp_path)
    monkeypatch.setattr(
        laplace, "load_mnist", lambda: blobs(20, 0)
    )  # reading all digits takes seconds
    seen: list[list[Task]] = []

    def fake(folder: Folder, tasks: list[Task], seeds: list[int]) -> list[Results]:
        seen.append(tasks)
        raise StopIteration

    monkeypatch.setattr(laplace, "compute", fake)
    for quick in (False, True):
        with pytest.raises(StopIteration):
            REGISTRY["laplace"].run(tmp_path, quick=quick, progress=False)
    assert [[task.name for task in tasks] for tasks in seen] == [
        ["few-digits", "digits"],
        ["few-digits"],
    ]
    assert [task.exact for task in seen[0]] == [True, False]
    with pytest.raises(MissingDataError):
        REGISTRY["laplace"].run(
            tmp_path, quick=True, progress=False, cifar=str(tmp_path / "no.npz")
        )
