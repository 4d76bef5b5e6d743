"""The benchmark of the first number: a row beyond its aim is told, and every line of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import first_number as first
from benchmarks.peers.description import describe


def fake(monkeypatch: pytest.MonkeyPatch, *walls: float) -> None:
    """Processes that take so long, one after the other, for each of their lines."""
    left = iter(walls)

    def run(process: first.Process) -> list[first.Row]:
        wall = next(left)
        rows = [first.Row(line.name, wall, 0.0, line.aim) for line in process.lines]
        return [first.Row("import", 1.0, 1.0)] * first.IMPORTS + rows

    monkeypatch.setattr(first, "run", run)


@pytest.mark.parametrize(
    ("walls", "code", "beyond"),
    [
        ((0.9, 0.1, 0.1, 0.1, 0.1, 0.9), 0, 0),  # the best of two
        ((0.1, 0.1, 0.1, 0.1, 0.3, 0.21), 1, 1),
    ],
)
def test_a_row_beyond_its_aim(
    walls: tuple[float, ...],
    code: int,
    beyond: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(monkeypatch, *walls)
    path = tmp_path / "rows.json"
    assert first.main(["--quick", "--processes", "2", "--json", str(path)]) == code
    found = json.loads(path.read_text())
    assert list(found["checks"].values()).count(False) == beyond
    assert len(found["rows"]) == first.IMPORTS + len(first.QUICK)
    assert capsys.readouterr().out.count("BEYOND") == beyond


def test_some_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, 0.1)
    path = tmp_path / "rows.json"
    arguments = ["--quick", "--only", "GELU", "--processes", "1", "--json", str(path)]
    assert first.main(arguments) == 0
    assert list(json.loads(path.read_text())["checks"]) == ["GELU, 100: within 0.2 s"]


def test_a_fresh_process() -> None:
    lines = first.Line("one", "points(3)", 5.0), first.Line("two", "points(4)", beyond=True)
    *imports, one, two = first.run(first.Process(lines, "setup = 1"))
    assert [row.name for row in imports] == ["import with jax", "import beyond jax"]
    assert imports[0].wall > imports[1].wall > 0 and imports[1].processor > 0
    assert one.name == "one" and one.ok and 0 < one.wall < 5 and one.aim == 5.0
    assert two.name == "two" and two.aim is None and abs(two.wall) < 5


def test_lines_are_python_and_names_their_own() -> None:
    names = [line.name for process in first.PROCESSES for line in process.lines]
    assert len(set(names)) == len(names)
    for process in first.PROCESSES:
        compile(first.START + process.setup, "setup", "exec")
        for line in process.lines:
            compile(line.code, line.name, "eval")


def test_the_peer_is_asked_for_what_ours_are() -> None:
    ours = {line.name.split(", beyond")[0] for each in first.PROCESSES for line in each.lines}
    assert all(describe(arch)["layers"] for arch, _ in first.PEERS)
    assert {str(call["name"]) for _, calls in first.PEERS for call in calls} <= ours
