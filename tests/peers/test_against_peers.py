"""How the report beside the peers is made, with peers that are not there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from benchmarks import against_peers, claims, memory, timing
from benchmarks.comparisons import digits, page
from benchmarks.comparisons.row import Row, Size
from benchmarks.peers import environment, process

ROW = Row(
    "gpjax",
    "a task",
    "another",
    agreement=1.2e-15,
    error=2e-16,
    seconds=0.5,
    peer_seconds=2.0,
    memory=2_000_000,
    checks={"agrees": True},
)


def comparison(
    monkeypatch: pytest.MonkeyPatch, *rows: Row, failure: Exception | None = None
) -> None:
    """Rows, and perhaps a failure after them, in place of what measures GPJax."""

    def measured(size: Size) -> Iterator[Row]:
        yield from rows
        if failure:
            raise failure

    fake = SimpleNamespace(rows=measured, versions=lambda: {"gpjax": "1.0"})
    monkeypatch.setitem(sys.modules, "benchmarks.comparisons.gpjax", fake)  # type: ignore[arg-type]


def run(tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    code = against_peers.main(["--only", "gpjax", "--out", str(tmp_path), *more])
    return code, json.loads((tmp_path / "peers.json").read_text())


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison(monkeypatch, ROW, Row("gpjax", "nothing", ""))
    code, report = run(tmp_path)
    assert code == 0 and report["peers"] == {"gpjax": {"gpjax": "1.0"}}
    assert [row["ratio"] for row in report["rows"]] == [4.0, None]
    text = (tmp_path / "peers.md").read_text()
    assert "| gpjax | a task | 1e-15 | 2e-16, – | 4 | 2 MB, – | another |" in text
    assert "| gpjax | nothing | – | – | – | – | – |" in text
    assert "Theirs: gpjax 1.0." in text
    assert page.quote(report).splitlines()[2:] == ["| gpjax | a task | 1e-15 | 2e-16, – | 4 |"]


def test_a_remark_is_told_wherever_the_numbers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison(monkeypatch, ROW)
    _, report = run(tmp_path, "--remark", "A busy machine.")
    assert page.table(report).endswith("**Note:** A busy machine.")
    assert page.quote(report).endswith("**Note:** A busy machine.")


def test_a_claim_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison(monkeypatch, replace(ROW, checks={"agrees": False}))
    assert run(tmp_path)[0] == 1
    assert "gpjax, a task: agrees: NO" in capsys.readouterr().out
    text = (tmp_path / "peers.md").read_text()
    assert "not so in this run:** gpjax, a task: agrees." in text


@pytest.mark.parametrize(
    "failure", [process.PeerFailedError("it ended"), environment.EnvironmentFailedError("no wheel")]
)
def test_a_peer_that_fails(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured before is kept, and the report says that the peer did not run."""
    comparison(monkeypatch, ROW, failure=failure)
    code, report = run(tmp_path)
    assert code == 1 and len(report["rows"]) == 1 and report["checks"]["gpjax runs"] is False


def test_only_the_whole_report_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        against_peers.main(["--publish", "--quick"])
    assert "the whole report" in capsys.readouterr().err


def test_rows_of_one_peer_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows, versions and failed claims go, those of the others stay; the page tells the runs apart."""
    files = {name: tmp_path / name for name in ("PAGE", "README", "DATA")}
    for name, file in files.items():
        monkeypatch.setattr(against_peers, name, file)
        file.write_text(f"{page.BEGIN} old {page.END}")
    other = asdict(replace(ROW, peer="PyTorch", task="training")) | {"ratio": 4.0}
    stale = asdict(replace(ROW, task="an old task", checks={"agrees": False})) | {"ratio": 1.0}
    whole = {
        "hardware": {"cores": 64, "processor": "Z80", "platform": "CP/M"},
        "versions": {"lnkernel": "0.0"},
        "quick": False,
        "remark": "",
        "peers": {"gpjax": {"gpjax": "0.1"}, "torch": {"torch": "2"}},
        "rows": [stale, other],
        "checks": {"gpjax, an old task: agrees": False, "PyTorch, training: agrees": True},
    }
    files["DATA"].write_text(json.dumps(whole))
    comparison(monkeypatch, ROW)
    assert run(tmp_path, "--renew", "--remark", "A busy machine.")[0] == 0
    report = json.loads(files["DATA"].read_text())
    assert [row["task"] for row in report["rows"]] == ["training", "a task"]
    assert report["checks"] == {"PyTorch, training: agrees": True, "gpjax, a task: agrees": True}
    assert list(report["peers"]) == ["gpjax", "torch"]
    text = files["PAGE"].read_text()
    assert "On 64 cores (Z80, CP/M). Ours: lnkernel 0.0. Theirs: torch 2." in text
    assert "In a run of its own, gpjax: On " in text
    assert "Theirs: gpjax 1.0. A busy machine." in text and "**Note:**" not in text
    assert "an old task" not in text and "a task" in files["README"].read_text()


def test_a_peer_that_failed_is_not_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_peers, "DATA", tmp_path / "DATA")
    comparison(monkeypatch, ROW, failure=process.PeerFailedError("it ended"))
    assert run(tmp_path, "--renew")[0] == 1 and not (tmp_path / "DATA").exists()


def test_what_is_renewed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        against_peers.main(["--renew"])
    assert "--renew takes --only" in capsys.readouterr().err


def test_documentation_and_readme_quote_the_report() -> None:
    report = json.loads(against_peers.DATA.read_text())
    assert not report["quick"] and list(report["peers"]) == list(against_peers.PEERS)
    for path, block in (
        (against_peers.PAGE, page.table(report)),
        (against_peers.README, page.quote(report)),
    ):
        text = path.read_text()
        assert page.replace_block(text, block) == text, "run `make peers-report`"


def test_marks_that_are_missing() -> None:
    assert page.replace_block(f"a {page.BEGIN} old {page.END} b", "new") == (
        f"a {page.BEGIN}\nnew\n{page.END} b"
    )
    with pytest.raises(ValueError, match="once"):
        page.replace_block("no marks", "new")


def test_checks_and_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "results.json"
    assert claims.conclude({"fast": True, "small": False}, path, rows=[asdict(ROW)], x=np.inf) == 1
    report = json.loads(path.read_text())
    assert report["checks"] == {"fast": True, "small": False} and report["x"] == "inf"
    assert {"hardware", "versions", "rows"} <= set(report)
    assert "fast: yes\nsmall: NO" in capsys.readouterr().out
    assert claims.conclude({"fast": True}, path) == 0


def test_calls_in_turns() -> None:
    order: list[str] = []

    def timed(name: str) -> float:
        order.append(name)
        return float(len(order))

    medians = timing.in_turns(lambda: timed("a"), lambda: timed("b"), rounds=3, series=2)
    assert "".join(order) == "aabb" * 3 and medians == [5.5, 7.5]


@pytest.mark.skipif(memory.high_water() is None, reason="the system does not tell")
def test_peak_memory() -> None:
    """That of a call is counted, also where it is freed again, and not the parent's."""
    kept = np.ones(30_000_000)  # 240 MB
    taken, seconds = memory.peak("import numpy as np", "x = np.ones(10_000_000)\ndel x")
    assert taken is not None and 75e6 < taken < 120e6 and seconds > 0
    assert kept.nbytes > taken


def test_errors_of_a_matrix() -> None:
    arch, x = lnk.Dense(4), np.array([[1.0, 2.0], [0.5, -1.0]])
    right = x @ x.T / 2
    wrong = right.copy()
    wrong[0, 1] += 1e-3 * np.sqrt(right[0, 0] * right[1, 1])
    lost = np.full_like(right, np.nan)
    found = digits.errors(arch, x, x, [(0, 1), (1, 1)], "nngp", right, wrong, lost)
    assert found == [pytest.approx(0, abs=2e-15), pytest.approx(1e-3), np.inf]


# ---------------------------------------------------------------- with the peers themselves


@pytest.mark.slow
def test_the_short_form(tmp_path: Path) -> None:
    assert against_peers.main(["--quick", "--out", str(tmp_path)]) == 0


@pytest.mark.slow
def test_the_reference_kernels_come_out_again() -> None:
    from benchmarks.peers import golden

    assert golden.main(["--check"]) == 0
