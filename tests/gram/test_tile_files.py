"""Strips of a matrix on disk: read again, verified, and never computed twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from lnkernel.errors import TileFileError
from lnkernel.gram.tile_files import TileFiles, tile_files

A = np.arange(24.0).reshape(6, 4)


def _refuse() -> np.ndarray:
    raise AssertionError("it is on the disk")


def test_what_is_written_is_not_computed_again(tmp_path: Path) -> None:
    files = TileFiles(tmp_path)
    for start in (0, 3):
        made = files.part("0", (6, 4), start, 3, lambda start=start: A[start : start + 3])
        np.testing.assert_array_equal(made, A[start : start + 3])
    for start in (0, 3):
        found = TileFiles(tmp_path).part("0", (6, 4), start, 3, _refuse)
        np.testing.assert_array_equal(found, A[start : start + 3])
    np.testing.assert_array_equal(files.part("1", (6, 4), 0, 3, lambda: -A[:3]), -A[:3])


def test_a_damaged_chunk_is_told(tmp_path: Path) -> None:
    files = TileFiles(tmp_path)
    files.part("0", (6, 4), 0, 3, lambda: A[:3])
    chunk = next(path for path in (tmp_path / "0" / "c").rglob("*") if path.is_file())
    numbers = bytearray(chunk.read_bytes())
    numbers[20] ^= 1
    chunk.write_bytes(numbers)
    with pytest.raises(TileFileError, match=r"a chunk whose checksum is wrong. Delete"):
        files.part("0", (6, 4), 0, 3, _refuse)


def test_another_problem_has_files_of_its_own(tmp_path: Path) -> None:
    one = tile_files(tmp_path, {"network": "a"}, A)
    assert tile_files(tmp_path, {"network": "a"}, A) == one
    assert tile_files(tmp_path, {"network": "b"}, A) != one
    assert tile_files(tmp_path, {"network": "a"}, A + 1e-16 + (A == 3)) != one


def test_a_full_disk_is_told_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    files = TileFiles(tmp_path / "new")
    files.demand_room(1000)
    with monkeypatch.context() as small:
        small.setattr(shutil, "disk_usage", lambda _: Usage(2**29))
        files.demand_room(2**28)
        with pytest.raises(TileFileError, match=r"1.00 GiB of space on its disk, got 0.50 GiB"):
            files.demand_room(2**30)

    class Full:
        def __getitem__(self, place: object) -> Full:
            return self

        def read(self) -> Full:
            return self

        def write(self, values: np.ndarray) -> Full:
            raise OSError(28, "No space left on device")

        def result(self) -> np.ndarray:
            return np.full((3, 4), np.nan)

    monkeypatch.setattr(TileFiles, "_open", lambda *_: Full())
    with pytest.raises(TileFileError, match=r"No space left on device. Make room on the disk"):
        files.part("0", (6, 4), 0, 3, lambda: A[:3])
