"""The benchmark of more points: its model by hand, its pieces, and what it publishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale, scale_model
from benchmarks.scale_one_machine import Clock


def test_the_model_by_hand() -> None:
    measured = scale_model.Constants(entry=1e-8, rate=1e10, cores=10, network=1e9)
    row = scale_model.factorised(30_000, 3, measured)
    assert row["entries"] == pytest.approx(4.5e8 * 1e-8 / 30)
    assert row["operations"] == pytest.approx(9e12 / 1e10 / 30)
    assert row["network"] == pytest.approx(3.6)
    assert row["bytes_of_host"] == pytest.approx(1.2e9)
    assert row["seconds"] == pytest.approx(0.15 + 30 + 3.6)
    many = scale_model.iterated(10**6, 8, measured)
    assert many["entries"] == pytest.approx(200 * 5e11 * 1e-8 / 80)


def test_pieces_are_computed_once(tmp_path: Path) -> None:
    calls = []
    for _ in range(2):
        found = scale.Results(tmp_path).get("piece", lambda: calls.append(1) or {"n": 1})
    assert found == {"n": 1} and len(calls) == 1


def test_what_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "scale.md"
    page.write_text("before\n<!-- tables of `make scale` -->\nold\n<!-- end of tables -->\nafter\n")
    monkeypatch.setattr(scale, "PAGE", page)
    scale.publish("new")
    assert "old" not in page.read_text() and "\nnew\n" in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("\nafter\n")
    assert scale._table("a | b", ["1 | 2"]) == "| a | b |\n|---|---|\n| 1 | 2 |"
    assert scale._duration(119.0) == "119 s" and scale._duration(600) == "10 min"


def test_parts_of_the_time_add_up() -> None:
    clock = Clock()
    for _ in range(2):
        assert clock.timed("part", lambda x: 2 * x)(3) == 6
    assert set(clock.wall) == set(clock.processor) == {"part"} and clock.wall["part"] > 0
