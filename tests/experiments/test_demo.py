"""`lnkernel demo` at its smallest, and in it the experiments toy and heatmaps.

One test, because every part of it needs the same run, which is not to be repeated in each of
several processes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import cli, demo
from lnkernel.experiments import heatmaps, toy
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.variants import VARIANTS
from lnkernel.tables import plain

PLAN = toy.ToyPlan([0, 1], steps=3, width=4, hidden=1, variants=VARIANTS[:2])
SMALLEST = demo.Size(PLAN, kernel_seeds=(0, 1), kernel_points=3)
ARCH = lnk.mlp(hidden=1, width=4, norm="first")
X = np.linspace(-5, 5, 100)[:, None]


def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = watched(monkeypatch)
    out = tmp_path / "new" / "folder"
    assert cli.main(["demo", "--seed", "7", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    prints_both_diagonals(text)
    prints_outputs_and_bound(text)
    writes_pictures_and_a_page(text, out)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seeds"] == manifest["kernel_seeds"] == [7, 8]
    again = Folder(out, "demo", quick=True, progress=False)
    cells = toy.compute(again, replace(PLAN, seeds=[7, 8]))
    holds_what_the_library_computes(cells)
    pairs = heatmaps.compute(again, [7, 8], 3, VARIANTS[:2])
    holds_both_kernels(pairs)
    assert all(piece["stored"] for piece in again.finish()["pieces"])  # nothing twice

    monkeypatch.setattr(demo, "run", lambda out, seed: print("words") or shown[0])
    assert cli.main(["demo", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "words\n"
    prints_all_rows(json.loads(captured.out), cells, pairs, out)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[demo.Shown]:
    """What `demo.run` returns is kept, and it runs at its smallest."""
    found: list[demo.Shown] = []
    run = demo.run

    def kept(*arguments: Any, **options: Any) -> demo.Shown:
        found.append(run(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(demo, "Size", lambda: SMALLEST)
    monkeypatch.setattr(demo, "run", kept)
    return found


def prints_all_rows(
    printed: dict[str, Any], cells: list[toy.Cell], pairs: list[heatmaps.Pair], out: Path
) -> None:
    tables = printed["tables"]
    assert tables["diagonals"][-1]["no LayerNorm"] == pytest.approx(6e12 + 0.06)
    assert tables["outputs"] == plain([cell.row() for cell in cells])
    assert tables["kernels"] == plain([pair.row() for pair in pairs])
    assert printed["report"] == str(out / "report.html")


def prints_both_diagonals(text: str) -> None:
    """With |x|² = r it is 6r + 0.06 without a norm, and 3.03 everywhere with one."""
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    norms = [0.0, *(10.0**power for power in range(7))]
    assert [float(row[0]) for row in rows] == norms
    assert rows[-1][0] == "1e+06"
    assert [float(row[1]) for row in rows] == pytest.approx([6 * r * r + 0.06 for r in norms], 1e-9)
    assert [float(row[2]) for row in rows] == pytest.approx([3.03] * len(norms), 1e-9)


def prints_outputs_and_bound(text: str) -> None:
    (row,) = [line.split() for line in text.splitlines() if line.strip().startswith("sinusoid")]
    bound = lnk.bound(ARCH, X, np.sin(X[:, 0])).rkhs
    assert len(row) == 4 and float(row[-1]) == pytest.approx(bound, rel=1e-3)


def writes_pictures_and_a_page(text: str, out: Path) -> None:
    for name in ("extrapolation.png", "extrapolation-far.png", "heatmaps.png"):
        picture = (out / name).read_bytes()
        width, height = struct.unpack(">II", picture[16:24])
        assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture[-8:-4] == b"IEND"
        assert len(picture) > 10_000 and width > 1000 and height > 400
        assert (out / name).with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    page = out / "report.html"
    assert page.read_text().count("data:image/png;base64,") == 3
    assert text.rstrip().endswith(str(page))


def holds_what_the_library_computes(cells: list[toy.Cell]) -> None:
    """The networks trained once more, by hand."""
    (cell,) = (c for c in cells if (c.target, c.variant.norm) == ("sinusoid", "first"))
    trained = lnk.finite.train_ensemble(
        ARCH, X, np.sin(X[:, 0]), seeds=[7, 8], steps=3, parameterization="standard"
    )
    assert np.array_equal(cell.outputs, np.asarray(trained(cell.x[:, None]))[..., 0])
    errors = np.asarray(trained(X), float)[..., 0] - cell.y
    assert cell.rmse == pytest.approx(np.sqrt((errors**2).mean(axis=1)).mean(), rel=1e-4)
    assert np.abs(cell.mean).max() <= cell.bounds["rkhs"] <= cell.bounds["sharp"]
    (unbounded,) = (c for c in cells if (c.target, c.variant.norm) == ("line", None))
    assert unbounded.row()["networks within rkhs"] is None and np.isinf(unbounded.C)


def holds_both_kernels(pairs: list[heatmaps.Pair]) -> None:
    x = np.array([[-25.0], [0.0], [25.0]])
    for pair in pairs:
        assert np.array_equal(pair.exact, lnk.ntk(lnk.mlp(hidden=2, norm=pair.variant.norm))(x))
        assert 0 < pair.error < 0.5 and pair.empirical.shape == (3, 3)
