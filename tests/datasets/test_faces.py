"""UTKFace's features: the file and what is checked of it; images and their names."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.datasets import images, locate, utk
from lnkernel.errors import DataFileError, MissingDataError, MissingPackageError

GOOD: dict[str, Any] = {
    "features": np.array([[1, 2], [3, 4], [5, 6]], np.float16),
    "age": np.array([20, 30, 40], np.int16),
    "ethnicity": np.array([0, 4, 3], np.int8),
}


def _saved(path: Path, **arrays: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def test_read(tmp_path: Path) -> None:
    faces = lnk.datasets.utkface(_saved(tmp_path / "f.npz", **GOOD, backbone="ResNet-18 (mine)"))
    assert (faces.x.dtype, faces.age.dtype) == (np.float32, np.float64)
    assert faces.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert faces.others.tolist() == [False, True, False]
    assert faces.backbone == "ResNet-18 (mine)"


def test_a_file_without_its_backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _saved(tmp_path / "f.npz", **GOOD)
    assert lnk.datasets.utkface(file).backbone == "unknown (the file f.npz does not say)"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setitem(utk.KNOWN, digest, "ResNet-50")
    assert lnk.datasets.utkface(file).backbone == "ResNet-50"


def test_found_by_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path))
    _saved(tmp_path / "utkface" / "features_resnet50.npz", **GOOD)
    assert lnk.datasets.utkface().age.tolist() == [20, 30, 40]


def test_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    monkeypatch.setattr(locate, "cache", lambda: tmp_path)
    with pytest.raises(MissingDataError) as caught:
        lnk.datasets.utkface()
    wanted = (str(tmp_path / "utkface" / "features.npz"), utk.PAGE, "--images", "--features")
    assert all(part in str(caught.value) for part in (*wanted, "4 Others", "LNKERNEL_DATA"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"age": None}, "no age"),
        ({"age": np.zeros(2)}, r"(?s)shapes.*age \(2,\)"),
        ({"features": np.full((3, 2), np.nan)}, "finite"),
        ({"ethnicity": np.array([0, 5, 1])}, r"(?s)from 0 to 4.*5"),
    ],
)
def test_a_file_of_another_kind(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    arrays = {name: value for name, value in (GOOD | change).items() if value is not None}
    with pytest.raises(DataFileError, match=said):
        lnk.datasets.utkface(_saved(tmp_path / "f.npz", **arrays))


def test_no_npz_at_all(tmp_path: Path) -> None:
    (tmp_path / "f.npz").write_text("hello")
    with pytest.raises(DataFileError, match=r"expected a \.npz of NumPy"):
        lnk.datasets.utkface(tmp_path / "f.npz")


NAMES = {
    "25_0_2_20170116174525125.jpg.chip.jpg": (25, 2),
    "116_1_4_20170117.jpg": (116, 4),
    "24_0_1_20170116220224657 .jpg.chip.jpg": (24, 1),
    "55_0_0_20170116232725357jpg.chip.jpg": (55, 0),
    "61_3_20170109150557335.jpg.chip.jpg": None,  # without a gender
    "39_1_20170116174525125.jpg.chip.jpg": None,
    "25_0_5_20170116174525125.jpg": None,
    "readme.txt": None,
}


def test_names_tell_age_and_group(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    found = {path.name: label for path, label in images.labels(tmp_path).items()}
    assert found == {name: label for name, label in NAMES.items() if label}


def test_extraction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, in the order of the labels; with a network that is none."""
    for age in range(1, 8):
        (tmp_path / f"{age}_0_{age % 5}_2017.jpg").touch()

    def first_digit(paths: Sequence[Path]) -> np.ndarray:
        assert len(paths) <= 3
        return np.array([[float(path.name[0]), 0.0] for path in paths])

    monkeypatch.setattr(images, "BATCH", 3)
    monkeypatch.setattr(images, "resnet18", lambda: first_digit)
    file = images.extract(tmp_path, tmp_path / "made" / "f.npz", progress=False)
    faces = lnk.datasets.utkface(file)
    assert faces.x[:, 0].tolist() == faces.age.tolist() == list(range(1, 8))
    assert faces.ethnicity.tolist() == [age % 5 for age in range(1, 8)]
    assert faces.backbone.startswith("ResNet-18")


def test_an_interrupted_extraction_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1_0_0_2017.jpg").touch()

    def killed(stream: IO[bytes], **_: Any) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(images, "resnet18", lambda: lambda paths: np.zeros((len(paths), 2)))
    monkeypatch.setattr(np, "savez_compressed", killed)
    with pytest.raises(KeyboardInterrupt):
        images.extract(tmp_path, tmp_path / "f.npz", progress=False)
    assert not (tmp_path / "f.npz").exists()


def test_extraction_needs_torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1_0_0_2017.jpg").touch()
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(MissingPackageError, match=r"lnkernel\[images\]"):
        images.extract(tmp_path, tmp_path / "f.npz", progress=False)
