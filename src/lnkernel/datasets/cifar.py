"""A part of CIFAR-10 (Krizhevsky 2009): 10,000 pictures to train on and 2,000 to test."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lnkernel.datasets import locate
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import DataFileError, MissingDataError

PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
NAMES = ("cifar10/cifar10_part.npz", "cifar10/cifar10.npz")
PARTS = ("train", "test")
# Files that do not say themselves where they come from: SHA-256, origin.
KNOWN = {
    "f61728e5390cf05418e820e38c9c6ead6c8dc98c95a8eda37ab766791c97263e": (
        "12,000 of CIFAR-10's pictures, decoded from JPEG copies: not bit for bit the originals"
    )
}


class Cifar(NamedTuple):
    """Pictures of CIFAR-10, apart for training and for testing."""

    train: Pictures
    test: Pictures
    origin: str  # where the file comes from, as far as it is known


def cifar(path: str | Path | None = None) -> Cifar:
    """Pictures of CIFAR-10, 32 × 32 in three colours, in the order of the file.

    The file is `path`, or `cifar10/cifar10_part.npz` (or `cifar10.npz`) in the folder that the
    environment variable LNKERNEL_DATA names, or in the cache. It is a .npz with the arrays
    `train_images` (n, 32, 32, 3) of bytes, `train_labels` (n,) from 0 to 9, `test_images`,
    `test_labels`, and possibly `origin`, a text.

    >>> import pathlib, tempfile, numpy as np, lnkernel as lnk
    >>> file, images = pathlib.Path(tempfile.mkdtemp(), "c.npz"), np.zeros((1, 32, 32, 3), np.uint8)
    >>> np.savez(file, train_images=images, train_labels=[3], test_images=images, test_labels=[9])
    >>> pictures = lnk.datasets.cifar(file)
    >>> pictures.train.x.shape, pictures.test.label
    ((1, 32, 32, 3), array([9]))
    """
    file = locate.search(NAMES) if path is None else locate.require_file("cifar", path)
    if file is None:
        raise MissingDataError(
            "cifar",
            locate.candidates(NAMES),
            f"Download CIFAR-10 (python version) from {PAGE} and save a .npz with the arrays "
            "train_images (n, 32, 32, 3) of bytes, train_labels (n,), test_images and test_labels "
            f"as one of these, or as {NAMES[1]} below any folder with {locate.VARIABLE} set to that "
            "folder; or name it by `lnkernel reproduce linearized --cifar FILE.npz`",
        )
    return _read(file)


def _read(path: Path) -> Cifar:
    remedy = f"Save the arrays of {PAGE} in this form"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise DataFileError(path, "expected a .npz of NumPy", [str(problem)], remedy) from problem
    names = [f"{part}_{kind}" for part in PARTS for kind in ("images", "labels")]
    missing = [f"no {name}" for name in names if name not in found]
    if missing:
        raise DataFileError(path, f"expected {', '.join(names)}", missing, remedy)
    train, test = (_pictures(path, part, found, remedy) for part in PARTS)
    return Cifar(train, test, _origin(path, found))


def _pictures(path: Path, part: str, found: dict[str, np.ndarray], remedy: str) -> Pictures:
    images, labels = found[f"{part}_images"], found[f"{part}_labels"]
    if images.shape[1:] != (32, 32, 3) or labels.shape != images.shape[:1]:
        shapes = [f"{part}_images {images.shape}", f"{part}_labels {labels.shape}"]
        raise DataFileError(path, "expected shapes (n, 32, 32, 3) and (n,)", shapes, remedy)
    if images.dtype != np.uint8:
        problems = [f"{part}_images of {images.dtype}"]
        raise DataFileError(path, "expected pixels as bytes, uint8", problems, remedy)
    if labels.size and not (labels.min() >= 0 and labels.max() <= 9):
        problems = [f"{part}_labels from {labels.min()} to {labels.max()}"]
        raise DataFileError(path, "expected classes from 0 to 9", problems, remedy)
    return Pictures((images / np.float32(255)).astype(np.float32), labels.astype(int))


def _origin(path: Path, found: dict[str, np.ndarray]) -> str:
    if "origin" in found:
        return str(found["origin"])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return KNOWN.get(digest, f"unknown (the file {path.name} does not say)")
