"""The folder of an experiment's results: pieces that are computed once, and a manifest."""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lnkernel.experiments.machine import hardware, versions
from lnkernel.finite.training.fingerprint import digest
from lnkernel.progress import show_progress
from lnkernel.tables import Rows, format_csv, format_json, plain
from lnkernel.version import __version__

T = TypeVar("T")
Arrays = Mapping[str, Any]


class Folder:
    """Where an experiment writes. What an earlier run has finished there is not computed again.

    Attributes:
        path: the folder.
        progress: whether bars are wanted.

    >>> import tempfile
    >>> folder = Folder(Path(tempfile.mkdtemp()), "toy", quick=True, progress=False)
    >>> for attempt in range(2):
    ...     found = folder.piece("squares", {"n": 3}, lambda scratch: {"y": np.arange(3) ** 2})
    >>> found["y"].tolist(), [piece["stored"] for piece in folder.finish()["pieces"]]
    ([0, 1, 4], [False, True])
    """

    def __init__(self, path: Path, experiment: str, *, quick: bool, progress: bool):
        self.path, self.progress = Path(path), progress
        self._began, self._pieces = time.perf_counter(), list[dict[str, Any]]()
        self._manifest: dict[str, Any] = {
            "experiment": experiment,
            "quick": quick,
            "finished": False,
            "started": _now(),
            "versions": versions(),
            "hardware": hardware(),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        self._write_manifest()

    def record(self, **facts: Any) -> None:
        """Put into the manifest what the experiment is run with: settings, seeds, data."""
        self._manifest |= facts
        self._write_manifest()

    def piece(
        self, name: str, settings: Mapping[str, Any], make: Callable[[Path], Arrays]
    ) -> dict[str, np.ndarray]:
        """Named arrays: those that are stored for the same settings, or new ones by `make`.

        Args:
            name: the name of the file, up to the key.
            settings: all that the arrays depend on, as JSON knows it; with the version of the
                library they are the key. In place of an array of data give its `fingerprint`.
            make: computes the arrays. It gets a folder of its own for checkpoints, see
                `lnkernel.finite.train_ensemble`, which is there again after an interruption and is
                removed when the arrays are stored.
        """
        key = _key({"version": __version__, "name": name, **settings})
        file, scratch = self.path / "pieces" / f"{name}-{key}.npz", self.path / f"run-{key}"
        began, found = time.perf_counter(), _read(file)
        stored = found is not None
        if found is None:
            found = {label: np.asarray(value) for label, value in make(scratch).items()}
            _store(file, found)
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = round(time.perf_counter() - began, 2)
        self._pieces.append({"name": name, "key": key, "stored": stored, "seconds": seconds})
        return found

    def each(self, items: Sequence[T], unit: str) -> Iterable[T]:
        """The items, with a bar that counts them if bars are wanted."""
        return show_progress(items, self.progress, unit)

    def write(self, name: str, text: str) -> Path:
        """A text file of the folder, whole or not at all."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partly = path.with_name(f".{path.name}.part")
        partly.write_text(text, encoding="utf-8")
        os.replace(partly, path)
        return path

    def write_table(self, name: str, rows: Rows) -> tuple[Path, Path]:
        """`name.csv` and `name.json`, with a column for each key of the first row.

        A cell that has no value is None: empty in the CSV, null in the JSON. Infinity and NaN are
        text.
        """
        written = self.write(f"{name}.csv", format_csv(rows))
        return written, self.write(f"{name}.json", format_json(rows))

    def finish(self) -> dict[str, Any]:
        """Complete the manifest, and return it."""
        seconds = round(time.perf_counter() - self._began, 1)
        self.record(finished=True, ended=_now(), seconds=seconds, pieces=self._pieces)
        return self._manifest

    def _write_manifest(self) -> None:
        self.write("manifest.json", json.dumps(plain(self._manifest), indent=1) + "\n")


def seeds_from(seed: int, seeds: int | None, default: int) -> list[int]:
    """`seeds` seeds, or `default` where nobody said how many, from `seed` on.

    >>> seeds_from(7, None, 3)
    [7, 8, 9]
    """
    return list(range(seed, seed + (default if seeds is None else seeds)))


def fingerprint(*arrays: Any) -> str:
    """A short text that differs where arrays do, to stand for them in a piece's settings.

    >>> fingerprint([1.0, 2.0]) == fingerprint([1.0, 2.0]), fingerprint([1.0]) == fingerprint([2.0])
    (True, False)
    """
    return digest(*map(np.asarray, arrays))


def _key(settings: Mapping[str, Any]) -> str:
    return digest(json.dumps(plain(dict(settings)), sort_keys=True))


def _read(file: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a file, or None where there is none, or half of one."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def _store(file: Path, arrays: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partly = file.with_suffix(".part")
    with partly.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    os.replace(partly, file)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
