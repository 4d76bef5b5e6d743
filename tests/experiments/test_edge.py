"""The edge of stability: the two-layer linear network in closed form, the edge, divergence, a tiny run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

import lnkernel as lnk
from lnkernel.experiments import REGISTRY
from lnkernel.experiments.edge import Labelled, train_rates
from lnkernel.experiments.edge_linear import (
    POINTS,
    closed_form,
    linear_data,
    linear_network,
    train_linear,
)
from lnkernel.experiments.edge_plan import EdgePlan
from lnkernel.experiments.edge_report import first_at, pair_rows


def test_closed_form_of_the_kernel() -> None:
    """On the manifold of solutions the kernel of the network itself has this λ_max and this KTA."""
    X, y = linear_data()
    with jax.enable_x64(True):
        network = linear_network(0)
        t = lnk.tangent(network)
        direction = np.linalg.lstsq(X, y)[0]
        size = np.linalg.norm(direction)
        for rate in (0.01, 0.06):
            law = closed_form(rate)
            alpha = np.sqrt(law.squared_head)
            unit = np.eye(len(direction))[:, :1]
            first = (size / alpha) * np.outer(direction / size, unit)
            network.layers[0].kernel[...] = jax.numpy.asarray(first)
            network.layers[1].kernel[...] = jax.numpy.asarray(alpha * unit)
            t = lnk.tangent(network)
            np.testing.assert_allclose(t.value(X), y, atol=1e-11)
            s = t.spectrum(X)
            np.testing.assert_allclose(s.values[0] / POINTS * rate / 2, law.ratio, rtol=1e-10)
            np.testing.assert_allclose(s.kta(y), law.kta, rtol=1e-10)


def test_gradient_descent_finds_the_closed_form() -> None:
    """Below the edge the balanced solution; above it λ_max at 2/η, within 10 %; far above it diverges."""
    rates = (0.03, 0.06, 1.0)
    found = train_linear(rates, [0, 1], 3000)
    below, above = closed_form(0.03), closed_form(0.06)
    assert (found["diverged"][:2] == -1).all() and (found["diverged"][2] > 0).all()
    assert np.isnan(found["kta"][2]).all() and found["loss"][:2].max() < 1e-20
    np.testing.assert_allclose(found["squared_head"][0], below.squared_head, rtol=1e-3)
    np.testing.assert_allclose(found["kta"][0], below.kta, rtol=5e-3)
    # it lands below the edge, as far as the last oscillation threw it
    assert (found["ratio"][1] <= 1.001).all() and (found["ratio"][1] > 0.9).all()
    np.testing.assert_allclose(found["kta"][1], above.kta, rtol=0.1)
    assert above.kta > 1.5 * below.kta


@pytest.fixture(scope="module")
def task() -> Labelled:
    draw = np.random.default_rng(0)
    x = draw.uniform(size=(40, 6))
    return Labelled(x, np.where(x[:, 0] > x[:, 1], 1.0, -1.0))


def test_a_rate_that_diverges_does_not_hide_the_others(task: Labelled) -> None:
    """Starts with a rate each in one program: each as `train_ensemble` trains it on its own."""
    arch = lnk.mlp(hidden=1, width=8, activation=lnk.Tanh(), b_std=0.1)
    starts = [
        lnk.finite.network(arch, 6, rngs=seed, parameterization="standard") for seed in (0, 1)
    ]
    found = train_rates(starts, task, [0.1, 1e4], 10, 6)
    assert found["diverged"][0] == -1 and found["diverged"][1] >= 0
    assert np.isnan(found["kta"][1]).all() and np.isnan(found["alignment"][1]).all()
    assert found["alignment"].shape == (2, len(found["steps"]), 20)
    w = lnk.watch(*task, ["loss", "kta"], at=found["steps"].tolist(), loss="half-mean")
    for seed, rate in enumerate((0.1, 1e4)):
        train = partial(
            lnk.finite.train_ensemble, arch, *task, [seed], optax.sgd(rate / 40), 10, watch=w
        )
        if seed == 0:
            train(parameterization="standard")
            np.testing.assert_allclose(found["loss"][0], w["loss"][0], rtol=1e-5)
            np.testing.assert_allclose(found["kta"][0], w["kta"][0], rtol=1e-5)
        else:
            with pytest.raises(lnk.errors.DivergedError) as problem:
                train(parameterization="standard")
            assert found["diverged"][1] == problem.value.step


def test_all_rates_diverge(task: Labelled) -> None:
    """Training ends there, and what could not be measured is NaN."""
    arch = lnk.mlp(hidden=1, width=8, activation=lnk.Tanh(), b_std=0.1)
    starts = [
        lnk.finite.network(arch, 6, rngs=seed, parameterization="standard") for seed in (0, 1)
    ]
    found = train_rates(starts, task, [1e4, 2e4], 10, 6)
    assert (found["diverged"] >= 0).all() and (found["diverged"] < 9).all()
    assert found["loss"].shape == (2, len(found["steps"])) and np.isnan(found["loss"]).all()


def cell(losses: Any, kta: Any, diverged: Any = (-1, -1)) -> dict[str, Any]:
    values = {"loss": losses, "kta": kta, "diverged": diverged}
    return {key: np.array(value) for key, value in values.items()}


def test_rates_are_compared_at_equal_loss() -> None:
    """Not at equal steps; a rate that diverges, and a level that is not reached, are left out."""
    slow = cell([[0.5, 0.2, 0.09], [0.5, 0.1, 0.08]], [[0.1, 0.2, 0.3], [0.1, 0.25, 0.4]])
    fast = cell([[0.5, 0.05, 0.01], [0.5, 0.06, 0.01]], [[0.1, 0.5, 0.8], [0.1, 0.5, 0.9]])
    gone = cell(np.full((2, 3), np.nan), np.full((2, 3), np.nan), (3, -1))
    runs = {0.5: (slow, 0.1), 1.0: (fast, 0.2), 8.0: (gone, 1.6)}
    whole = {f"{f} {key}": value for f, (run, _) in runs.items() for key, value in run.items()}
    whole |= {f"{f} rate": np.array(rate) for f, (_, rate) in runs.items()}
    assert first_at(whole, 0.5, 0.1) == [2, 1] and first_at(whole, 0.5, 0.01) == [None, None]
    plan = EdgePlan([0, 1], fractions=(0.5, 1.0, 8.0), levels=(0.1, 0.01))
    (row,) = pair_rows("net", whole, plan)
    assert (row["small rate"], row["large rate"], row["level"]) == (0.1, 0.2, 0.1)
    np.testing.assert_allclose(row["difference"], 0.5 - (0.3 + 0.25) / 2)


@pytest.mark.slow
def test_quick_run(tmp_path: Path) -> None:
    """The quick version, and what it claims: the largest rate diverges, and a smaller one ends at the edge."""
    REGISTRY["edge"].run(tmp_path, quick=True, progress=False)
    rates = json.loads((tmp_path / "rates.json").read_text())
    assert len(rates) == 6 and (tmp_path / "runs.png").is_file()
    at_edge = next(row for row in rates if row["rate"] == 0.14)
    assert abs(at_edge["median ratio"] - 1) < 0.1
    assert [row["diverged"] == row["starts"] for row in rates if row["rate"] > 0.2] == [True] * 2
    linear = json.loads((tmp_path / "linear.json").read_text())
    assert all(abs(row["KTA"] / row["KTA in closed form"] - 1) < 0.1 for row in linear)
    assert "nan" not in (tmp_path / "rates.csv").read_text().lower()
