"""UTKFace (Zhang, Song and Qi 2017) as features of its images, with age and ethnic group.

The images are for non-commercial research only, and the features of them no less.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from lnkernel.datasets import locate
from lnkernel.errors import DataFileError, MissingDataError

PAGE = "https://susanqq.github.io/UTKFace/"
NAMES = ("utkface/features.npz", "utkface/features_resnet50.npz")
ETHNICITIES = ("White", "Black", "Asian", "Indian", "Others")
# Files that do not say themselves what made them: SHA-256, backbone.
KNOWN = {
    "fac384cf4967f987f7859b5668c9d999f2ebca86f44fa670c9bc4dc4a8ae717b": (
        "ResNet-50 (Keras, ImageNet; images of 128 × 128)"
    )
}


class Faces(NamedTuple):
    """Features of photographs of faces."""

    x: Float32[np.ndarray, "n d"]
    age: Float64[np.ndarray, " n"]  # in years
    ethnicity: Int[np.ndarray, " n"]  # an index into ETHNICITIES
    backbone: str  # the frozen network that made the features

    @property
    def others(self) -> Bool[np.ndarray, " n"]:
        """Which faces are of the group "Others"."""
        return self.ethnicity == ETHNICITIES.index("Others")


def utkface(path: str | Path | None = None) -> Faces:
    """Features of UTKFace's images.

    The file is `path`, or `utkface/features.npz` (or `features_resnet50.npz`) in the folder that
    the environment variable LNKERNEL_DATA names, or in the cache. It is a .npz with the arrays
    `features` (n, d), `age` (n,), `ethnicity` (n,) from 0 to 4, and possibly `backbone`, a text.
    Nobody offers such a file for download: `lnkernel.datasets.images.extract` makes one.

    >>> import pathlib, tempfile, numpy as np, lnkernel as lnk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "features.npz")
    >>> np.savez(file, features=np.eye(2), age=[30, 50], ethnicity=[0, 4], backbone="identity")
    >>> faces = lnk.datasets.utkface(file)
    >>> faces.others.tolist(), faces.backbone
    ([False, True], 'identity')
    """
    file = locate.search(NAMES) if path is None else locate.require_file("utkface", path)
    if file is None:
        raise MissingDataError(
            "utkface",
            locate.candidates(NAMES),
            "There is no public address for it. Download the aligned and cropped images from "
            f"{PAGE} and run `lnkernel reproduce utkface --images FOLDER`, which makes it. Or save a "
            ".npz with the arrays features (n, d), age (n,) and ethnicity (n,; "
            f"{', '.join(f'{i} {name}' for i, name in enumerate(ETHNICITIES))}) as one of these, or "
            f"as {NAMES[0]} below any folder with {locate.VARIABLE} set to that folder; or name it "
            "by `lnkernel reproduce utkface --features FILE.npz`",
        )
    return _read(file)


def _read(path: Path) -> Faces:
    remedy = "Make it anew with `lnkernel reproduce utkface --images FOLDER`"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise DataFileError(path, "expected a .npz of NumPy", [str(problem)], remedy) from problem
    missing = [f"no {name}" for name in ("features", "age", "ethnicity") if name not in found]
    if missing:
        raise DataFileError(path, "expected features, age and ethnicity", missing, remedy)
    x, age = found["features"].astype(np.float32), found["age"].astype(np.float64)
    groups = found["ethnicity"].astype(int)
    if x.ndim != 2 or age.shape != (len(x),) or groups.shape != (len(x),):
        shapes = [f"{name} {found[name].shape}" for name in ("features", "age", "ethnicity")]
        raise DataFileError(path, "expected shapes (n, d), (n,) and (n,)", shapes, remedy)
    if not (np.isfinite(x).all() and np.isfinite(age).all()):
        raise DataFileError(path, "expected finite numbers only", ["others"], remedy)
    if not ((groups >= 0) & (groups < len(ETHNICITIES))).all():
        problems = [str(value) for value in np.unique(groups).tolist()]
        raise DataFileError(path, "expected groups from 0 to 4", problems, remedy)
    return Faces(x, age, groups, _backbone(path, found))


def _backbone(path: Path, found: dict[str, np.ndarray]) -> str:
    if "backbone" in found:
        return str(found["backbone"])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return KNOWN.get(digest, f"unknown (the file {path.name} does not say)")
