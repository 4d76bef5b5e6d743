"""Fine-tuning beside its linearization: what is proved of it, and a tiny run from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments import REGISTRY, finetuning
from lnkernel.experiments.finetuning_bounds import bend_of_mlp, prove, start_of, weyl
from lnkernel.experiments.finetuning_choices import choices_of, condition, spectra
from lnkernel.experiments.finetuning_gap import Task, compare
from lnkernel.experiments.finetuning_plan import TuningPlan, shrink
from lnkernel.experiments.intervals import interval
from lnkernel.experiments.small_networks import Transformer, tanh_mlp


@pytest.fixture(scope="module")
def task() -> Task:
    draw = np.random.default_rng(0)
    x, labels = draw.normal(size=(24, 6)), draw.integers(0, 2, 24)
    return Task(x[:8], np.eye(2)[labels[:8]], x[8:], labels[8:])


@pytest.fixture(scope="module")
def mlp() -> Any:
    return tanh_mlp(6, 8, 2, 2, seed=1)


def _hessian_norm(function: Any, params: Any, x: np.ndarray) -> float:
    """The largest |f̈| over random and the worst single-output unit directions, by dense Hessians."""
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    most = 0.0
    for point in x:
        for output in range(2):
            second = jax.hessian(lambda p: function(unravel(p), point)[output])(flat)  # noqa: B023
            most = max(most, float(np.linalg.norm(np.asarray(second), 2)))
    return most


@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_the_bend_of_an_mlp_bounds_its_hessian(mlp: Any, task: Task, radius: float) -> None:
    """At the start, and at points of the ball in random directions."""
    with jax.enable_x64(True):
        t = lnk.tangent(mlp, dtype=jnp.float64)
        proved = bend_of_mlp(start_of(mlp, task.x), [True] * 3, radius)
        flat, unravel = jax.flatten_util.ravel_pytree(t.params)
        away = np.random.default_rng(0).normal(size=flat.size)
        moved = unravel(flat + radius * away / np.linalg.norm(away))
        seen = _hessian_norm(t.function, moved, task.x[:2])
    assert 0 < seen <= proved


def test_a_layer_in_which_the_network_is_linear_has_no_bend(mlp: Any, task: Task) -> None:
    start = start_of(mlp, task.x)
    assert bend_of_mlp(start, [False, False, True], 1.0) == 0
    assert bend_of_mlp(start, [True, False, False], 1.0) > 0


def test_all_bounds_hold_and_the_gap_falls_as_the_square(mlp: Any, task: Task) -> None:
    t = lnk.tangent(mlp, dtype=jnp.float64)
    largest = float(np.linalg.norm(t.gram(task.x).reshape(16, 16), 2))
    risk = 0.5 * float(np.square(t.value(task.x) - task.y).sum())
    start = start_of(mlp, np.concatenate([task.x, task.tests]))

    def bounds(strength: float) -> Any:
        return prove(start, [True] * 3, len(task.x), np.sqrt(largest), risk, strength)

    rows = [compare(t, task, s * largest, bounds) for s in (0.1, 100.0, 1000.0)]
    for row in rows:
        assert row["slope left"] < 1e-6
        assert row["distance"] <= row["distance along the way"] <= row["ball"]
        assert row["gap"] <= row["gap, proved after training"] * (1 + 1e-9) + 1e-12
        assert row["gap"] <= row["gap, proved before training"]
        assert row["largest gap of outputs"] <= row["gap of outputs, proved"]
    assert np.log10(rows[2]["gap"] / rows[1]["gap"]) == pytest.approx(-2, abs=0.02)
    assert rows[0]["gap"] > 1e3 * rows[1]["gap"]


def test_weyl() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        parts = [m @ m.T for m in draw.normal(size=(3, 5, 4))]
        values = np.linalg.eigvalsh(sum(parts))
        a, b, c, d = weyl([np.linalg.eigvalsh(part) for part in parts])
        assert a - 1e-12 <= values[0] <= b + 1e-12 and c - 1e-12 <= values[-1] <= d + 1e-12


def test_spectra_of_choices_are_those_of_their_own_tangent(mlp: Any, task: Task) -> None:
    chosen = choices_of(3)
    found = spectra(lnk.tangent(mlp, dtype=jnp.float64), task.x, chosen)
    for pick, least, most in zip(chosen, found["least"], found["most"], strict=True):
        paths = [f"layers/{2 * layer}" for layer in np.flatnonzero(pick)]
        kernel = lnk.tangent(mlp, wrt=paths, dtype=jnp.float64).gram(task.x).reshape(16, 16)
        values = np.linalg.eigvalsh(kernel)
        assert most == pytest.approx(values[-1], rel=1e-9)
        assert least == pytest.approx(values[0], abs=1e-9 * most)
    a, b, c, d = found["weyl"].T
    slack = found["rounding"]
    assert (a - slack <= found["least"]).all() and (found["least"] <= b + slack).all()
    assert (c - slack <= found["most"]).all() and (found["most"] <= d + slack).all()
    assert (condition(found) >= 1).all()


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    ends = [interval(draw.normal(size=4).tolist())[1:] for _ in range(2000)]
    assert np.mean([low <= 0 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.015)


def test_a_transformer_sees_the_order_of_the_rows() -> None:
    net = Transformer(4, 4, 8, 2, 3, seed=0)
    x = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    turned = x.reshape(2, 4, 4)[:, ::-1].reshape(2, 16)
    assert net(x).shape == (2, 3) and not np.allclose(net(x), net(turned), atol=1e-3)


def test_shrunk_pictures() -> None:
    pictures = Pictures(np.zeros((1, 28, 28, 1), np.float32), np.zeros(1, int))
    pictures.x[0, :2, 2:4, 0] = [[1, 2], [3, 6]]
    assert shrink(pictures)[0, 1] == 3 and shrink(pictures).sum() == 3


@pytest.mark.slow
def test_a_tiny_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables and figures; the second time nothing is computed."""
    draw = np.random.default_rng(0)
    digits = Pictures(draw.random((120, 28, 28, 1), np.float32), np.repeat(np.arange(10), 12))
    monkeypatch.setattr(finetuning, "mnist", lambda: digits)
    plan = TuningPlan(
        [0], 0, pretraining=2, points=10, tests=20, kernel_points=4, strengths=(1.0, 10.0)
    )
    small = {"steps": 2, "choices": ("MLP",), "rule_steps": 2, "singles": False}
    monkeypatch.setattr(finetuning, "TuningPlan", lambda seeds: plan)
    monkeypatch.setattr(finetuning, "replace", lambda plan, **_: _replace(plan, **small))
    for _ in range(2):
        page = REGISTRY["finetuning"].run(tmp_path, quick=True, progress=False).read_text()
    assert page.count("<img") == 5 and "These hold" in page
    with (tmp_path / "gap.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["trained"] for row in rows} == {"all parameters", "LoRA"} and len(rows) == 4
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [piece["stored"] for piece in manifest["pieces"]] == [True]


def _replace(plan: TuningPlan, **changes: Any) -> TuningPlan:
    from dataclasses import replace

    return replace(plan, **changes)
