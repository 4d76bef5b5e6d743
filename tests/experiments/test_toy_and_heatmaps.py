"""The experiments on a line: registered, small, resumed, and in their quick versions."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from lnkernel.errors import InputError
from lnkernel.experiments import REGISTRY, toy
from lnkernel.experiments.folder import Folder, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.experiments.variants import VARIANTS


def test_the_registry_finds_every_module() -> None:
    """Every file of the package that has a `conduct` is an experiment."""
    files = Path(toy.__file__).parent.glob("*.py")
    conducted = {path.stem for path in files if "\ndef conduct(" in path.read_text("utf-8")}
    assert conducted == set(REGISTRY)
    assert all(name == experiment.name for name, experiment in REGISTRY.items())


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rows: expected an option of the experiment toy"):
        REGISTRY["toy"].run(tmp_path, rows=3)


def test_the_paper_s_setting() -> None:
    plan = toy.ToyPlan(seeds_from(0, None, 5))
    assert (len(toy.POINTS), toy.POINTS[0], toy.POINTS[-1]) == (100, -5, 5)
    assert (plan.steps, plan.width, plan.hidden, toy.LEARNING_RATE) == (3000, 128, 2, 1e-3)
    assert [variant.norm for variant in VARIANTS] == [None, "first", "last", "all"]
    x = toy.points()
    assert (x[0], x[-1]) == (-1e4, 1e4) and np.allclose(x, -x[::-1])


def test_one_network_is_refused_before_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "compute", lambda *_: pytest.fail("trained"))
    with pytest.raises(InputError, match="takes two networks: --seeds 2"):
        REGISTRY["toy"].run(tmp_path, seeds=1, progress=False)


def test_the_report_counts_the_networks_within_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those without LayerNorm have no bound, and are not counted."""
    x, y = toy.points(), np.sin(toy.POINTS)
    outputs = np.outer([1.0, 3.0, -1.5], np.ones_like(x))
    bounds = [{"rkhs": limit, "sharp": 2 * limit} for limit in (np.inf, 2.0, 5.0)]
    cells = [
        toy.Cell("sinusoid", variant, y, x, outputs, 0.1, 0 * x, both, both["rkhs"], 1.0)
        for variant, both in zip(VARIANTS, bounds, strict=False)
    ]
    folder = Folder(tmp_path, "toy", quick=True, progress=False)
    monkeypatch.setattr(toy.toy_figures, "draw", lambda *_: folder.write("drawn.png", ""))
    report = Report("Toy", "")
    toy.add_to(report, folder, toy.ToyPlan([0, 1, 2]), cells)
    assert "5 of 6 stay within" in report.html()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "figures"), [("toy", 2), ("heatmaps", 1)])
def test_quick_versions(name: str, figures: int, tmp_path: Path) -> None:
    """Whole experiments: all files are there, and the second time nothing is computed."""
    page = REGISTRY[name].run(tmp_path, quick=True, progress=False)
    assert len(list(tmp_path.glob("*.png"))) == len(list(tmp_path.glob("*.pdf"))) == figures
    assert page.read_text().count("data:image/png") == figures
    (table,) = tmp_path.glob("*.csv")
    assert len(table.read_text().splitlines()) == (13 if name == "toy" else 5)
    start = time.perf_counter()
    REGISTRY[name].run(tmp_path, quick=True, progress=False)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert all(piece["stored"] for piece in manifest["pieces"])
    assert time.perf_counter() - start < 30
