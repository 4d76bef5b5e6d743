"""UCI's Physicochemical Properties of Protein Tertiary Structure (P. Rana, 2013)."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from lnkernel.datasets import locate
from lnkernel.errors import DataFileError, MissingDataError

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/00265/CASP.csv"
PAGE = "https://doi.org/10.24432/C5QW3H"
NAMES = ("protein/CASP.csv.gz", "protein/CASP.csv")
HEADER = ("RMSD", *(f"F{i}" for i in range(1, 10)))
# SHA-256 of the numbers, row by row in little-endian float64, without the column F5: the files in
# circulation differ in their bytes, because spreadsheets cut F5 from 11 digits to 10.
ROUNDED = HEADER.index("F5")
SHA256 = "417ba66851c24588542acf37b9a034125319f7a08926e77761751640a2299ad3"


class Proteins(NamedTuple):
    """Proteins: their properties, and how far a predicted structure is from the true one."""

    x: Float64[np.ndarray, "n 9"]  # F1 to F9
    y: Float64[np.ndarray, " n"]  # RMSD, in ångström

    @property
    def surface(self) -> Float64[np.ndarray, " n"]:
        """F1, the total surface area."""
        return self.x[:, 0]


def protein(path: str | Path | None = None) -> Proteins:
    """The 45,730 proteins, in the order of the file.

    The file is `path`, or `protein/CASP.csv.gz` (or `.csv`) in the folder that the environment
    variable LNKERNEL_DATA names, or in the cache, or it is downloaded from UCI into the cache. The
    numbers are checked by their SHA-256; those of a `path` that you give are taken as they are.

    >>> import pathlib, tempfile, lnkernel as lnk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "one.csv")
    >>> _ = file.write_text("RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\\n1,2,3,4,5,6,7,8,9,10\\n")
    >>> lnk.datasets.protein(file).x.shape
    (1, 9)
    """
    if path is not None:
        return _split(_read_numbers(locate.require_file("protein", path)))
    file = locate.search(NAMES)
    if file is not None:
        return _split(_read_verified(file))
    fresh = locate.download(URL, NAMES[1])
    if fresh is None:
        raise MissingDataError(
            "protein",
            locate.candidates(NAMES),
            f"Download {URL} (described at {PAGE}) and save it as one of these; or save it as "
            f"{NAMES[1]} below any folder and set {locate.VARIABLE} to that folder; or give the "
            "file itself: `lnkernel reproduce protein --data CASP.csv`",
        )
    try:
        return _split(_read_verified(fresh))
    except DataFileError:
        fresh.unlink()  # or every later run would find it
        raise


def _read_verified(file: Path) -> Float64[np.ndarray, "n 10"]:
    """The table of a file that is to be UCI's."""
    numbers = _read_numbers(file)
    found = hashlib.sha256(
        np.ascontiguousarray(np.delete(numbers, ROUNDED, axis=1), "<f8").tobytes()
    ).hexdigest()
    if found != SHA256:
        raise DataFileError(
            file,
            f"expected the 45730 rows of {PAGE}, whose numbers without F5 have the SHA-256 {SHA256}",
            [f"{len(numbers)} rows with {found}"],
            f"Save {URL} in its place; or, if other data are meant, give the path explicitly",
        )
    return numbers


def _split(numbers: Float64[np.ndarray, "n 10"]) -> Proteins:
    return Proteins(numbers[:, 1:], numbers[:, 0])


def _read_numbers(path: Path) -> Float64[np.ndarray, "n 10"]:
    """The table, from a CSV that may be compressed by gzip."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
        header = tuple(name.strip().strip('"') for name in lines.readline().split(","))
        if header != HEADER:
            raise DataFileError(
                path,
                f"expected a first line {','.join(HEADER)}",
                [",".join(header)[:100]],
                f"The file is described at {PAGE}",
            )
        try:
            numbers = np.loadtxt(lines, delimiter=",", ndmin=2)
        except ValueError as problem:
            raise DataFileError(
                path, "expected rows of 10 numbers", [str(problem)], "Save the file anew"
            ) from problem
    if not np.isfinite(numbers).all():
        rows = np.flatnonzero(~np.isfinite(numbers).all(axis=1)) + 2
        problems = [f"line {row}" for row in rows.tolist()]
        raise DataFileError(path, "expected finite numbers only", problems, "Correct these lines")
    return numbers
