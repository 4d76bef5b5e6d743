"""The benchmark suite, and what `bound_vs_output` claims: wrong results are caught."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import shows_something

from benchmarks import bound_vs_output as outputs
from benchmarks import bound_vs_output_cell as one
from benchmarks import bound_vs_output_figures as figures
from benchmarks import suite
from lnkernel import cli
from lnkernel.cli import bench
from lnkernel.errors import DivergedError, InputError
from lnkernel.experiments.limit import Limit

CELL = one.Cell("line", 1, 5, 1, "first", 8, "practice")
FLAT = [1.0] * len(one.RADII)
ROW = one.Row(
    cell=CELL,
    bounds={"rkhs": 2.0, "sharp": 3.0, "paper": 4.0, "norms": 5.0},
    sup_mean=1.0,
    sup_output=1.0,
    mean=FLAT,
    output=FLAT,
    mean_growth=0.0,
    output_growth=0.0,
    loss=0.0,
    seconds=1.0,
)
FREE = dataclasses.replace(
    ROW,
    cell=dataclasses.replace(CELL, norm=None),
    bounds=dict.fromkeys(one.FORMS, math.inf),
    output_growth=1.0,
)
SETTINGS = one.Settings(seeds=2, steps=20, directions=2, seed=0)


@pytest.mark.parametrize(
    ("change", "claims"),
    [
        ({}, [True, True]),
        ({"sup_mean": 2.1}, [False, True]),
        ({"bounds": ROW.bounds | {"sharp": 1.5}}, [False, True]),
        ({"output_growth": 0.1}, [True, False]),
    ],
)
def test_what_is_claimed(change: dict[str, Any], claims: list[bool]) -> None:
    row = dataclasses.replace(ROW, **change)
    checks = outputs.as_json([row, FREE], [], SETTINGS, 1.0)["checks"]
    assert list(checks.values()) == [*claims, True]


def test_relu_rows_are_kept_as_ever() -> None:
    """So that an older run goes on; what another activation adds is read back."""
    plain = one.as_dict(ROW)
    assert "activation" not in plain["cell"] and not {"noise", "no_bound"} & set(plain)
    assert list(plain["cell"]) == [
        "target",
        "dimension",
        "n",
        "hidden",
        "norm",
        "width",
        "training",
    ]
    tanh = dataclasses.replace(CELL, activation="Tanh()")
    assert one.as_dict(tanh)["activation"] == "Tanh()" and one.Cell(**one.as_dict(tanh)) == tanh


UNKNOWN = dict.fromkeys(one.FORMS, math.nan)
SILENT = dataclasses.replace(
    ROW, bounds=UNKNOWN, sup_mean=math.nan, output_growth=0.5, no_bound="Tanh: not known."
)


def test_without_a_bound_nothing_is_claimed() -> None:
    found = outputs.as_json([ROW, FREE, SILENT], [], SETTINGS, 1.0)
    assert all(found["checks"].values())
    assert found["summary"]["cells with LayerNorm"] == 1
    assert found["summary"]["cells with LayerNorm and no bound"] == 1
    assert outputs.line(SILENT).endswith("  no bound")
    assert outputs.reasons([ROW, FREE, SILENT]) == {"LayerNorm first": "Tanh: not known."}


def test_a_cell_of_which_theory_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit_of(arch: Any, x: Any, y: Any, points: np.ndarray) -> Limit:
        return Limit(np.full(len(points), math.nan), no_bound="Tanh: not known.")

    monkeypatch.setattr(one, "limit_of", limit_of)
    cell = dataclasses.replace(CELL, activation="tanh")
    row = one.measure(cell, SETTINGS)
    assert row.no_bound == "Tanh: not known." and not row.has_bound and row.bound_holds
    assert math.isnan(row.sup_mean) and math.isnan(row.mean_growth) and row.sup_output > 0
    with pytest.raises(InputError, match="Train these networks as in practice"):
        one.measure(dataclasses.replace(cell, training="theory"), SETTINGS)


def test_growth_is_the_power_far_out() -> None:
    bent = np.where(one.RADII < 10, 3.0, one.RADII**0.7)
    assert one.growth(bent) == pytest.approx(0.7)


def test_one_cell() -> None:
    """The bound holds for the mean, and a trained network with LayerNorm does not grow."""
    row = one.measure(CELL, SETTINGS)
    assert row.bound_holds and row.stays_bounded
    assert abs(row.output_growth) < one.GROWTH and abs(row.mean_growth) < one.GROWTH
    assert row.sup_output == max(row.output) > 0


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(cell: one.Cell, settings: one.Settings) -> one.Row:
        asked.append(cell.width)
        return dataclasses.replace(FREE, cell=cell)

    monkeypatch.setattr(outputs, "measure", measure)
    cells = [dataclasses.replace(CELL, width=width) for width in (1, 2, 3)]
    path = tmp_path / "new" / "rows.jsonl"
    first, _ = outputs.measure_all(cells[:2], SETTINGS, path, resume=False)
    path.write_text(path.read_text() + '{"key": "cut o')
    rows, _ = outputs.measure_all(cells, SETTINGS, path, resume=True)
    assert asked == [1, 2, 3] and rows[:2] == first
    assert outputs.measure_all(cells, SETTINGS, path, resume=True)[0] == rows
    assert asked == [1, 2, 3]
    outputs.measure_all(cells[:1], dataclasses.replace(SETTINGS, seed=1), path, resume=True)
    assert asked == [1, 2, 3, 1]
    outputs.measure_all(cells[:1], SETTINGS, path, resume=False)
    assert asked == [1, 2, 3, 1, 1]


def test_a_cell_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(cell: one.Cell, settings: one.Settings) -> one.Row:
        if cell.width == 1:
            raise DivergedError(3, 0, 9.0, 1.0, 5, limit=None, rate=None)
        return ROW

    monkeypatch.setattr(outputs, "measure", measure)
    cells = [dataclasses.replace(CELL, width=width) for width in (1, 2)]
    rows, problems = outputs.measure_all(cells, SETTINGS, tmp_path / "rows.jsonl", resume=False)
    assert rows == [ROW] and len(problems) == 1 and "training diverged" in problems[0]
    checks = outputs.as_json(rows, problems, SETTINGS, 1.0)["checks"]
    assert list(checks.values()) == [True, True, False]


def test_figures(tmp_path: Path) -> None:
    figures.draw_outputs([ROW, FREE, SILENT], one.RADII, tmp_path / "outputs.png")
    figures.draw_bounds([ROW, FREE, SILENT], tmp_path / "bounds.png")
    assert all(shows_something(tmp_path / name) for name in ("outputs.png", "bounds.png"))


def test_grids() -> None:
    """Every axis that is to be varied is, and every cell is there once."""
    whole, _ = outputs.grid(quick=False)
    assert len(set(whole)) == len(whole) == 3 * 3 * 3 * 3 * 4 * 3 * 2
    assert {cell.dimension for cell in outputs.grid(quick=True)[0]} == {1, 2, 9}


@pytest.mark.parametrize(
    ("arguments", "backend", "whole"),
    [
        ([], "cpu", False),
        ([], "gpu", True),
        (["--full"], "cpu", True),
        (["--quick"], "gpu", False),
    ],
)
def test_the_whole_grid_is_for_a_gpu_or_asked_for(
    arguments: list[str],
    backend: str,
    whole: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[int] = []

    def measure_all(cells: list[one.Cell], *_: Any) -> tuple[list[one.Row], list[str]]:
        seen.append(len(cells))
        return [ROW, FREE], []

    monkeypatch.setattr(outputs, "measure_all", measure_all)
    monkeypatch.setattr(outputs.jax, "default_backend", lambda: backend)
    for name in ("draw_outputs", "draw_bounds"):
        monkeypatch.setattr(figures, name, lambda *_: None)
    assert outputs.main([*arguments, "--out", str(tmp_path)]) == 0
    assert seen == [len(outputs.grid(quick=not whole)[0])]
    assert ("No GPU" in capsys.readouterr().out) == (arguments == [] and backend == "cpu")


@pytest.mark.slow
def test_the_small_grid(tmp_path: Path) -> None:
    assert outputs.main(["--quick", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        *("rows.jsonl", "table.json", "outputs.png", "bounds.png")
    }


# ---------------------------------------------------------------- the suite

SCRIPTS = {
    "good": "import sys, pathlib; print('a < b'); pathlib.Path(sys.argv[1]).write_text('{\"a\": 1}')",
    "bad": "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('{}'); sys.exit(1)",
    "broken": "raise SystemExit('no such environment')",
}


def fake(name: str) -> suite.Benchmark:
    return suite.Benchmark(name, f"{name} & claimed", SCRIPTS[name], (), (), "results.json")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts of one line instead of modules."""

    def command(self: suite.Benchmark, out: Path, quick: bool, seed: int) -> list[str]:
        return [sys.executable, "-c", self.module, str(out / self.results)]

    monkeypatch.setattr(suite.Benchmark, "command", command)
    monkeypatch.setattr(suite, "BENCHMARKS", tuple(map(fake, SCRIPTS)))


@pytest.mark.usefixtures("fakes")
def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "results.json").write_text("{}")
    (folder / "stale.png").write_bytes(b"")
    assert suite.main(["--out", str(tmp_path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "report.json").read_text())
    found = {name: part["status"] for name, part in report["benchmarks"].items()}
    assert found == {"good": "holds", "bad": "FAILED", "broken": "did not run"}
    assert report["benchmarks"]["good"]["results"] == {"a": 1} and not report["ok"]
    page, text = ((tmp_path / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert "a &lt; b" in page and "good &amp; claimed" in page and "a < b" in text
    assert "no such environment" in page and "no such environment" in text
    assert "stale" not in page and "stale" not in text


@pytest.mark.usefixtures("fakes")
def test_some_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(["--out", str(tmp_path), "--only", "good"]) == 0
    assert "holds" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        suite.main(["--only", "good, speed"])
    assert caught.value.code == 2
    said = "argument --only: expected benchmarks, got 'speed'. There are good, bad, broken.\n"
    assert capsys.readouterr().err.endswith(f": error: {said}")


@pytest.mark.parametrize("benchmark", suite.BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_options_are_those_of_the_scripts(benchmark: suite.Benchmark, tmp_path: Path) -> None:
    """What the suite hands over is in the script's own help."""
    source = (suite.ROOT / "benchmarks" / f"{benchmark.module}.py").read_text()
    command = benchmark.command(tmp_path, quick=True, seed=0)
    options = [each.removeprefix("--") for each in command if each.startswith("--")]
    known = {*(field.name for field in dataclasses.fields(one.Settings))}
    assert [o for o in options if f'"--{o}"' not in source and o not in known] == []


def test_an_interrupted_benchmark_goes_on(tmp_path: Path) -> None:
    """One that has finished is measured anew."""
    (benchmark,) = [each for each in suite.BENCHMARKS if each.name == "bound_vs_output"]
    assert "--resume" in benchmark.command(tmp_path, quick=False, seed=0)
    (tmp_path / benchmark.results).write_text("{}")
    assert "--resume" not in benchmark.command(tmp_path, quick=False, seed=0)


@pytest.mark.parametrize(
    ("checks", "peers", "status"),
    [
        ({"gpjax runs": False, "exact": True}, {"gpjax": {}}, "did not run"),
        ({"gpjax runs": False, "exact": False}, {"gpjax": {}}, "FAILED"),
        ({"exact": False}, {"gpjax": {"gpjax": "1"}}, "FAILED"),
    ],
)
def test_a_peer_that_is_not_there_is_no_failed_claim(
    checks: dict[str, bool], peers: dict[str, dict[str, str]], status: str
) -> None:
    assert suite._status(1, {"checks": checks, "peers": peers}) == status


def test_bench_calls_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    called = {}

    def run(command: list[str], cwd: Path, check: bool) -> subprocess.CompletedProcess[str]:
        called.update(command=command, cwd=cwd)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(bench.subprocess, "run", run)
    assert cli.main(["bench", "--quick", "--only", "width", "--out", "there"]) == 1
    assert called["cwd"] == suite.ROOT
    assert called["command"][1:3] == ["-m", "benchmarks.suite"]
    assert {"--quick", "width", str(Path("there").resolve())} <= set(called["command"])


def test_bench_of_what_is_no_benchmark(capfd: pytest.CaptureFixture[str]) -> None:
    """It is said as all wrong use is, with the usage, and by the command that was called."""
    assert cli.main(["bench", "--only", "foo"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("usage: lnkernel bench [-h] [--quick] [--only ONLY]")
    error = "lnkernel bench: error: argument --only: expected benchmarks, got 'foo'. There are accuracy, "
    assert error in said and "--prog" not in said


def test_bench_without_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "SUITE", Path("benchmarks/nowhere.py"))
    assert cli.main(["bench"]) == 2
    assert "Get the repository" in capsys.readouterr().err
