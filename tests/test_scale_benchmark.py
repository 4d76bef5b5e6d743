"""The benchmark of more points: its model by hand, its pieces, and what it publishes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale, scale_model
from benchmarks.peers.gpytorch_posterior import GPyTorch
from benchmarks.scale_one_machine import LENGTH, Clock


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


@pytest.mark.slow
def test_gpytorch_solves_the_same_task() -> None:
    """Its mean and likelihood by hand: it factorises, and does not iterate to a residual of 0.01."""
    draw = np.random.default_rng(0)
    x, y, new = draw.normal(size=(900, 3)), draw.normal(size=900), draw.normal(size=(5, 3))

    def gaussian(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        square = np.square(a[:, None] - b).sum(axis=-1)
        return np.asarray(np.exp(-square / (2 * LENGTH**2)))

    with GPyTorch() as peer:
        said = peer.fit(x, y, new, noise=0.1, length=LENGTH, threads=1)
        mean = peer.mean()
    matrix = gaussian(x, x) + 0.1 * np.eye(900)
    solution = np.linalg.solve(matrix, y)
    np.testing.assert_allclose(mean, gaussian(new, x) @ solution, atol=1e-9)
    log_det = np.linalg.slogdet(matrix)[1]
    expected = -(y @ solution + log_det + 900 * np.log(2 * np.pi)) / 2
    assert said["likelihood"] == pytest.approx(expected, rel=1e-10, abs=0)
    assert said["factorisations"] == 2 and set(said["processor"]) == set(said["wall"])
