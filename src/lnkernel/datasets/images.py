"""Features of a folder of UTKFace's images, by a frozen ResNet-18 of torchvision."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from lnkernel.datasets.utk import PAGE
from lnkernel.errors import InputError, MissingDataError, MissingPackageError
from lnkernel.progress import show_progress

BACKBONE = "ResNet-18 (torchvision, ImageNet)"
BATCH = 64
# age_gender_ethnicity_date.jpg.chip.jpg; in a few names a label or a dot is missing
NAME = re.compile(
    r"(\d{1,3})_([01])_([0-4])_\d+ ?\.?(?:jpg\.chip\.)?(?:jpg|jpeg|png)", re.IGNORECASE
)

Batch = Callable[[Sequence[Path]], Float32[np.ndarray, "images 512"]]


def extract(images: str | Path, out: str | Path, *, progress: bool = True) -> Path:
    """Write the features of all images below a folder to the file `out`, a .npz; its path.

    Images whose names do not tell age and group are left out (UTKFace has three such).

    >>> import tempfile
    >>> extract(tempfile.mkdtemp(), "features.npz")
    Traceback (most recent call last):
    ...
    lnkernel.errors.InputError: images: expected a folder with images of UTKFace, ...
    """
    folder, target = Path(images).expanduser(), Path(out).expanduser()
    labelled = labels(folder)
    if not labelled:
        raise InputError(
            "images",
            "a folder with images of UTKFace, named like 25_0_2_20170116174525125.jpg.chip.jpg",
            f"{folder} without any" if folder.is_dir() else f"{folder}, which is no folder",
            f"Download the aligned and cropped images from {PAGE}",
        )
    features_of = resnet18()
    parts = [
        features_of(batch) for batch in show_progress(_batches(sorted(labelled)), progress, "batch")
    ]
    ages, groups = zip(*(labelled[path] for path in sorted(labelled)), strict=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    partly = target.with_suffix(".part")
    with partly.open("wb") as stream:
        np.savez_compressed(
            stream,
            features=np.concatenate(parts).astype(np.float16),
            age=np.array(ages, np.int16),
            ethnicity=np.array(groups, np.int8),
            backbone=BACKBONE,
        )
    os.replace(partly, target)  # whole or not at all
    return target


def labels(folder: Path) -> dict[Path, tuple[int, int]]:
    """Age and group of every image below the folder, as its name tells them.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("25_0_2_20170116174525125.jpg.chip.jpg", "61_3_20170109150557335.jpg.chip.jpg"):
    ...     (folder / name).touch()
    >>> list(labels(folder).values())
    [(25, 2)]
    """
    named = ((path, NAME.fullmatch(path.name)) for path in folder.rglob("*"))
    return {path: (int(found[1]), int(found[3])) for path, found in named if found}


def resnet18() -> Batch:
    """The function that turns files of images into the ResNet's pooled features."""
    try:
        import torch
        import torchvision
        from PIL import Image
    except ImportError as problem:
        part = "lnkernel reproduce utkface --images"
        raise MissingPackageError(part, "torchvision", "images") from problem
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    try:
        network = torchvision.models.resnet18(weights=weights).eval()
    except OSError as problem:  # there is no network
        file = Path(torch.hub.get_dir(), "checkpoints", weights.url.rpartition("/")[2])
        raise MissingDataError(
            "torchvision's ResNet-18", [file], f"Download it from {weights.url} and put it there"
        ) from problem
    network.fc = torch.nn.Identity()
    prepare: Any = weights.transforms()

    def features(paths: Sequence[Path]) -> Float32[np.ndarray, "images 512"]:
        pictures = torch.stack([prepare(Image.open(path).convert("RGB")) for path in paths])
        with torch.no_grad():
            return np.asarray(network(pictures).numpy(), np.float32)

    return features


def _batches(paths: Sequence[Path]) -> list[Sequence[Path]]:
    return [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
