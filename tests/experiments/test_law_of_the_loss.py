"""The law of the loss: the cube's symmetry against the whole matrix, and a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.asymptotics import loss
from lnkernel.experiments import REGISTRY, asymptotics
from lnkernel.experiments.asymptotics_plan import NETWORKS
from lnkernel.experiments.cube_spectrum import cube_spectrum

ARCH = NETWORKS["LayerNorm, ReLU"]


@pytest.mark.parametrize(("d", "side"), [(1, 10), (2, 6), (3, 4)])
def test_blocks_have_the_spectrum_of_the_whole_grid(d: int, side: int) -> None:
    both = lnk.kernels(ARCH)

    def matrices(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        pair = both(x, y)
        return np.asarray(pair.ntk), np.asarray(pair.nngp)

    cube = cube_spectrum(matrices, d, side)
    axis = (np.arange(side) + 0.5) * 2 / side - 1
    x = np.stack([one.ravel() for one in np.meshgrid(*[axis] * d)], axis=1)
    values, vectors = np.linalg.eigh(np.asarray(both(x).ntk) / len(x))
    assert cube.size == len(x)
    np.testing.assert_allclose(cube.all_values(), values[::-1], atol=1e-13)

    def f(points: np.ndarray) -> np.ndarray:
        """Without any symmetry."""
        return np.exp(points @ np.arange(1.0, d + 1) / 3) + points[:, 0] ** 3

    t = np.geomspace(1, 1e3, 7) / values[-1]
    whole = loss(values, vectors.T @ f(x) / np.sqrt(len(x)))(t)
    np.testing.assert_allclose(loss(*cube.of_function(f))(t), whole, rtol=1e-10)
    covariance = np.asarray(both(x).nngp) / len(x)
    squares = np.einsum("ij,ij->j", vectors, covariance @ vectors)
    process = loss(values, np.sqrt(np.maximum(squares, 0)))(t)
    np.testing.assert_allclose(loss(*cube.of_process(0))(t), process, rtol=1e-10)


def test_a_tiny_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {
        "sides": {1: 200, 2: 20},  # blocks of 100 points, for which no program is compiled
        "points": {1: 8},
        "steps": 60,
        "networks": ("ReLU", "LayerNorm, ReLU", "no bias, LayerNorm, ReLU"),
        "width": 16,
    }
    monkeypatch.setattr(asymptotics, "FULL", sizes)
    monkeypatch.setattr(asymptotics, "SHARE", 8)
    page = REGISTRY["asymptotics"].run(tmp_path, progress=False, seeds=2).read_text()
    assert page.count("<img") == 3
    with (tmp_path / "spectra.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["d"], float(row["ν, law"])) for row in rows] == [
        *[("1", 2.0), ("2", 1.5)] * 2,
        ("2", 2.0),  # of directions alone
    ]
    assert all(float(row["95 % from"]) < float(row["ν, fitted"]) < float(row["to"]) for row in rows)
    constants = json.loads((tmp_path / "constants.json").read_text())
    assert [row["measured/law"] for row in constants] == pytest.approx([1.0, 1.0], abs=0.1)
    networks = json.loads((tmp_path / "networks.json").read_text())
    assert all(0.2 < row["loss, networks/kernel"] < 5 for row in networks)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["pieces"]) == 7
