"""Experiments with other activations than the ReLU; and that those with it are as they always were."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import ArchitectureTextError, InputError
from lnkernel.experiments import toy
from lnkernel.experiments.activations import find_activation
from lnkernel.experiments.folder import Folder, fingerprint
from lnkernel.experiments.limit import NOISE, Limit, limit_of
from lnkernel.experiments.report import Report
from lnkernel.experiments.toy_cell import Cell
from lnkernel.experiments.toy_text import remarks
from lnkernel.experiments.variants import VARIANTS

LAST = next(variant for variant in VARIANTS if variant.name == "last")
FEW = np.linspace(-1, 1, 4)[:, None]
ALL = [
    *(lnk.Relu(), lnk.Abs(), lnk.Gelu(), lnk.Silu(), lnk.Tanh(), lnk.Erf(), lnk.Sigmoid()),
    *(lnk.Softplus(), lnk.Sin(), lnk.Cos(), lnk.Gaussian()),
]


@pytest.mark.parametrize("layer", ALL, ids=lambda layer: type(layer).__name__)
def test_activations_by_name(layer: lnk.Elementwise) -> None:
    name = type(layer).__name__
    assert find_activation(name.lower()) == find_activation(name) == layer


def test_other_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"name of an activation, got 'dense'. There are relu,"):
        find_activation("dense")
    with pytest.raises(InputError, match="name of an activation"):
        find_activation("Dense(3)")
    with pytest.raises(ArchitectureTextError, match="Write Tanh"):
        find_activation("Tanhh()")


def test_noise_is_added_where_it_must_be() -> None:
    """A linear network's Gram matrix of four points on a line has rank 2."""
    dense, y = lnk.Dense(8, b_std=1.0), FEW[:, 0]
    linear = limit_of(lnk.serial(dense, lnk.LayerNorm(), dense), FEW, y, FEW)
    bent = limit_of(lnk.mlp(1, norm="first"), FEW, y, FEW)
    assert (linear.noise, bent.noise) == (NOISE, 0.0)
    for found in (linear, bent):
        assert found.no_bound == "" and found.posterior is not None
        assert np.abs(found.mean).max() <= found.bounds["rkhs"] <= found.bounds["sharp"] < math.inf
    assert np.allclose(bent.mean, y)


def test_where_theory_gives_no_bound_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise lnk.errors.GrowthError("Tanh")

    monkeypatch.setattr("lnkernel.experiments.limit.bound", refuse)
    found = limit_of(lnk.mlp(1, norm="first"), FEW, FEW[:, 0], FEW)
    assert found.no_bound.startswith("Tanh: how Θ(x, x) behaves as |x| → ∞") and math.isnan(found.C)
    assert np.allclose(found.mean, FEW[:, 0])  # which needs no bound


@pytest.mark.slow
def test_tanh_networks() -> None:
    """On a line their Gram matrix is singular to float64; a LayerNorm behind them gives no bound."""
    line = np.linspace(-1, 1, 100)[:, None]
    places = ("first", "last")
    first, last = (
        limit_of(lnk.mlp(2, norm=place, activation=lnk.Tanh()), line, np.sin(line[:, 0]), FEW)
        for place in places
    )
    assert first.noise == last.noise == NOISE
    assert first.no_bound == "" and np.abs(first.mean).max() <= first.bounds["rkhs"] < math.inf
    assert last.no_bound.endswith(".") and not math.isfinite(last.C)


def test_what_is_refused_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise lnk.errors.ActivationRangeError("Tanh", 7.0, 2.8)

    monkeypatch.setattr("lnkernel.experiments.limit.posterior", refuse)
    found = limit_of(lnk.mlp(activation=lnk.Tanh()), FEW, FEW[:, 0], FEW)
    assert found.posterior is None and np.isnan([*found.mean, *found.bounds.values()]).all()
    assert found.no_bound.startswith("Tanh: its inputs have a standard deviation of 7")


def settings_of_pieces(plan: toy.ToyPlan, folder: Folder, patch: Any) -> dict[str, dict[str, Any]]:
    """What each piece of the experiment depends on, by its name."""
    asked: dict[str, dict[str, Any]] = {}

    def piece(name: str, settings: dict[str, Any], make: Any) -> dict[str, Any]:
        asked[name] = settings
        return dict.fromkeys(
            ("outputs", "rmse", "mean", "rkhs", "sharp", "C", "lambda_min"), np.float64(0)
        )

    patch.setattr(folder, "piece", piece)
    toy.compute(folder, plan)
    return asked


def test_results_of_relu_networks_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path, "toy", quick=True, progress=False)
    found = settings_of_pieces(toy.ToyPlan([0, 1]), folder, monkeypatch)["line-last-trained"]
    assert found == {
        **{"target": "line", "norm": "last", "hidden": 2, "steps": 3000, "width": 128},
        **{"activation": "relu", "parameterization": "standard", "W_std": 2**0.5, "b_std": 0.1},
        **{"optimizer": "adam(0.001)", "batch": "all points", "seeds": [0, 1]},
        "data": fingerprint(toy.POINTS, toy.POINTS, toy.points()),
    }
    limits = settings_of_pieces(toy.ToyPlan([0, 1]), folder, monkeypatch)["line-last-limit"]
    assert set(limits) == {"target", "norm", "hidden", "data"}
    plan = toy.ToyPlan([0, 1], activation=lnk.Tanh())
    assert (
        settings_of_pieces(plan, folder, monkeypatch)["line-last-limit"]["activation"] == "Tanh()"
    )


UNKNOWN = Limit(np.full(len(toy.points()), math.nan), no_bound="Tanh: it is too long.")


def test_the_report_says_why_there_is_no_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = toy.points()
    outputs, unknown = np.zeros((2, len(x))), math.nan
    bounds = {"rkhs": unknown, "sharp": unknown}
    cell = Cell(
        *("line", LAST, toy.POINTS, x, outputs, 0.1, UNKNOWN.mean, bounds, unknown, unknown),
        no_bound=UNKNOWN.no_bound,
    )
    folder = Folder(tmp_path, "toy", quick=True, progress=False)
    monkeypatch.setattr(toy.toy_figures, "draw", lambda *_: folder.write("drawn.png", ""))
    report = Report("Toy", "")
    toy.add_to(report, folder, toy.ToyPlan([0, 1], activation=lnk.Tanh()), [cell])
    page = report.html()
    assert "LayerNorm in the last hidden layer: no bound: Tanh: it is too long." in page
    assert "is not computed" in page and "Tanh networks with 2 hidden layers" in page
    assert (tmp_path / "table.csv").read_text().splitlines()[1].endswith(",,,,,,")


@pytest.mark.slow
def test_why_there_is_no_bound_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is computed; the figures are drawn without what is not known."""
    monkeypatch.setattr(toy, "TARGETS", {"line": toy.TARGETS["line"]})
    monkeypatch.setattr(toy, "limit_of", lambda *_: UNKNOWN)
    folder = Folder(tmp_path, "toy", quick=True, progress=False)
    plan = toy.ToyPlan([0, 1], steps=2, width=8, variants=[LAST], activation=lnk.Tanh())
    first, again = (toy.compute(folder, plan) for _ in range(2))
    assert first[0].no_bound == again[0].no_bound == UNKNOWN.no_bound
    toy.add_to(Report("Toy", ""), folder, plan, again)
    assert [piece["stored"] for piece in folder.finish()["pieces"]] == [False, False, True, True]
    assert len(list(tmp_path.glob("*.png"))) == 2


def test_noise_is_told() -> None:
    x, bounds = toy.points(), {"rkhs": 2.0, "sharp": 3.0}
    outputs = np.zeros((2, len(x)))
    cell = Cell("line", LAST, toy.POINTS, x, outputs, 0.1, 0 * x, bounds, 1.0, NOISE, noise=NOISE)
    (said,) = remarks([cell])
    assert "noise of variance 0.0001" in said
