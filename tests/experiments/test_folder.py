"""The folder of an experiment: what is finished is not computed again, and all is on record."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lnkernel
from lnkernel.experiments import machine
from lnkernel.experiments.folder import Folder


def folder_in(path: Path) -> Folder:
    return Folder(path, "trial", quick=True, progress=False)


class Work:
    """A computation that counts its calls, and that somebody may interrupt."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.stop_at: int | None = None

    def run(self, folder: Folder, scale: float = 1.0) -> list[np.ndarray]:
        return [self._piece(folder, number, scale) for number in range(3)]

    def _piece(self, folder: Folder, number: int, scale: float) -> np.ndarray:
        def make(scratch: Path) -> dict[str, Any]:
            if number == self.stop_at:
                raise KeyboardInterrupt
            self.calls.append(number)
            return {"y": scale * number * np.ones(2)}

        return folder.piece(f"piece-{number}", {"number": number, "scale": scale}, make)["y"]


def test_goes_on_after_an_interruption(tmp_path: Path) -> None:
    work = Work()
    work.stop_at = 1
    with pytest.raises(KeyboardInterrupt):
        work.run(folder_in(tmp_path))
    assert json.loads((tmp_path / "manifest.json").read_text())["finished"] is False
    work.stop_at = None
    again = folder_in(tmp_path)
    found = work.run(again)
    assert work.calls == [0, 1, 2]  # 0 was finished before
    assert np.array_equal(found, [[0, 0], [1, 1], [2, 2]])
    assert [piece["stored"] for piece in again.finish()["pieces"]] == [True, False, False]


def test_other_settings_are_computed_anew(tmp_path: Path) -> None:
    work = Work()
    work.run(folder_in(tmp_path))
    assert np.array_equal(work.run(folder_in(tmp_path), scale=2.0)[2], [4, 4])
    assert work.calls == [0, 1, 2] * 2


def test_another_version_computes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    work.run(folder_in(tmp_path))
    monkeypatch.setattr("lnkernel.experiments.folder.__version__", "later")
    work.run(folder_in(tmp_path))
    assert work.calls == [0, 1, 2] * 2


def test_half_a_file_is_computed_anew(tmp_path: Path) -> None:
    work = Work()
    work.run(folder_in(tmp_path))
    (file,) = (tmp_path / "pieces").glob("piece-2-*.npz")
    file.write_bytes(file.read_bytes()[:100])
    assert np.array_equal(work.run(folder_in(tmp_path))[2], [2, 2])
    assert work.calls == [0, 1, 2, 2]


def test_checkpoints_last_until_the_piece_is_stored(tmp_path: Path) -> None:
    seen = []

    def make(scratch: Path) -> dict[str, Any]:
        seen.append(scratch.exists())
        scratch.mkdir(exist_ok=True)
        if len(seen) == 1:
            raise KeyboardInterrupt
        return {"y": 1.0}

    with pytest.raises(KeyboardInterrupt):
        folder_in(tmp_path).piece("trained", {}, make)
    folder_in(tmp_path).piece("trained", {}, make)
    assert seen == [False, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "pieces"]


def test_the_manifest_tells_versions_seeds_and_hardware(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.record(seeds=[3, 4], settings={"rate": np.float64(0.5), "most": np.inf})
    folder.finish()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["versions"]["lnkernel"] == lnkernel.__version__
    assert {"python", "jax", "numpy", "flax", "optax", "python-flint"} <= set(manifest["versions"])
    assert manifest["hardware"]["cores"] >= 1 and manifest["hardware"]["devices"]
    assert manifest["seeds"] == [3, 4] and manifest["settings"] == {"rate": 0.5, "most": "inf"}
    assert manifest["finished"] and manifest["seconds"] >= 0 and manifest["quick"]


def test_optional_packages_are_told_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {*machine.LIBRARIES, "xgboost-cpu", "torch"}

    def version(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(machine.importlib.metadata, "version", version)
    assert set(machine.versions()) == {"lnkernel", "python", *installed}


def test_tables(tmp_path: Path) -> None:
    rows = [{"name": "a, b", "value": np.inf}, {"name": "c", "value": None}]
    csv, as_json = folder_in(tmp_path).write_table("table", rows)
    assert csv.read_text() == 'name,value\n"a, b",inf\nc,\n'
    assert json.loads(as_json.read_text()) == [
        {"name": "a, b", "value": "inf"},
        {"name": "c", "value": None},
    ]
