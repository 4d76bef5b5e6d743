"""A CSV file with a header, as numbers; what is wrong with it is told by line."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lnkernel.cli.command import read_bytes
from lnkernel.errors import DataFileError

SEPARATORS = ",;\t"
GZIP = b"\x1f\x8b"  # how such files begin


@dataclass(frozen=True)
class Table:
    """Numbers by column, and the line of the file in which each row starts."""

    path: Path
    columns: tuple[str, ...]
    values: np.ndarray  # (rows, columns)
    lines: np.ndarray  # (rows,), from 1 on
    dropped: tuple[int, ...]  # lines that were left out because a cell was no finite number

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a result should know of how the numbers were read."""
        if not self.dropped:
            return ()
        count = count_of_lines(len(self.dropped))
        return (f"{count} left out, without a number: {list_of_lines(self.dropped)}",)


Choice = Callable[[list[str]], Sequence[str]]  # some of all columns


def read(
    path: Path, columns: Sequence[str] | Choice | None = None, *, drop_nan: bool = False
) -> Table:
    """The columns of that name, in that order; all of them by default.

    A function for `columns` chooses among all names. The file is read once, because a pipe can
    be read only once.
    """
    header, records = _records(path)
    if callable(columns):
        columns = columns(header)
    chosen = list(header) if columns is None else list(columns)
    _check_names(path, header, chosen)
    places = [header.index(name) for name in chosen]
    numbers = np.array([[_number(cells[i]) for i in places] for _, cells in records])
    numbers = numbers.reshape(len(records), len(places))
    good = np.isfinite(numbers).all(axis=1)
    if not good.all():
        texts = [[cells[i] for i in places] for _, cells in records]
        _check_columns(path, chosen, numbers, texts)
        if not drop_nan:
            problems = [
                f"line {records[row][0]}: {chosen[column]} is {_show(texts[row][column])}"
                for row, column in np.argwhere(~np.isfinite(numbers))
            ]
            raise DataFileError(
                path,
                "expected a finite number in every cell",
                problems,
                "Correct these cells, or leave their lines out with --drop-nan",
            )
    if not good.any():
        raise DataFileError(
            path,
            "expected a line with a number in every column that is used",
            ["none is left"],
            "Leave out a column with few numbers: name the others by --columns",
        )
    lines = np.array([line for line, _ in records], dtype=int)
    return Table(path, tuple(chosen), numbers[good], lines[good], tuple(lines[~good].tolist()))


def split_names(text: str) -> list[str]:
    """The columns that an option names, e.g. `x1, x2`."""
    return [name.strip() for name in text.split(",")]


def count_of_lines(count: int) -> str:
    """The count in words: 1 line, 2 lines."""
    return f"{count} line{'' if count == 1 else 's'}"


def list_of_lines(lines: np.ndarray | Sequence[int]) -> str:
    """The first of these line numbers, as text."""
    shown = ", ".join(str(line) for line in lines[:8])
    return shown if len(lines) <= 8 else f"{shown}, ..."


def _records(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and each record with the line in which it starts; empty lines are passed over."""
    try:
        content = read_bytes(path)
        content = gzip.decompress(content) if content.startswith(GZIP) else content
        text = content.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise DataFileError(
            path, "expected a whole gzip file", [str(problem)], "Copy or download it again"
        ) from None
    except UnicodeDecodeError as problem:
        byte = f"0x{problem.object[problem.start]:02x}"
        came = f"the byte {byte} at place {problem.start}, which is no part of such a text"
        remedy = "Name a CSV file; a table of a spreadsheet is to be saved as one, in UTF-8"
        raise DataFileError(path, "expected a text in UTF-8", [came], remedy) from None
    first = text.lstrip().partition("\n")[0]
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    found, start = [], 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                found.append((start, [cell.strip() for cell in cells]))
            start = reader.line_num + 1
    except csv.Error as problem:
        raise DataFileError(
            path, "expected CSV", [f"line {start}: {problem}"], "Save it as CSV, UTF-8"
        ) from None
    _check_shape(path, found)
    return found[0][1], found[1:]


def _check_shape(path: Path, found: list[tuple[int, list[str]]]) -> None:
    if len(found) < 2:
        raise DataFileError(
            path,
            "expected a header and at least one line of numbers",
            [f"{len(found)} line{'' if len(found) == 1 else 's'} with text"],
            "Name the columns in the first line, e.g. x1,x2,y",
        )
    header = found[0][1]
    if all(math.isfinite(_number(cell)) for cell in header):
        raise DataFileError(
            path,
            "expected the names of the columns in the first line",
            [f"line {found[0][0]}: {', '.join(header)}"],
            "Put a line with names before it, e.g. x1,x2,y",
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataFileError(
            path, "expected different names of columns", repeated, "Rename all but one of them"
        )
    uneven = [
        f"line {line}: {len(cells)} cells" for line, cells in found[1:] if len(cells) != len(header)
    ]
    if uneven:
        raise DataFileError(
            path,
            f"expected {len(header)} cells in every line, as in the first",
            uneven,
            "A number with a decimal comma or a text with a comma needs quotation marks",
        )


def _check_names(path: Path, header: list[str], chosen: list[str]) -> None:
    unknown = [repr(name) for name in chosen if name not in header]
    if unknown:
        raise DataFileError(
            path, "expected columns of the file", unknown, f"It has {', '.join(header)}"
        )


def _check_columns(
    path: Path, chosen: list[str], numbers: np.ndarray, texts: list[list[str]]
) -> None:
    """A column without any number is no measurement that went wrong here and there."""
    without = [
        f"{name}, e.g. {_show(texts[0][place])}"
        for place, name in enumerate(chosen)
        if not np.isfinite(numbers[:, place]).any()
    ]
    if without:
        rest = [name for place, name in enumerate(chosen) if np.isfinite(numbers[:, place]).any()]
        raise DataFileError(
            path,
            "expected numbers in every column that is used; these have none",
            without,
            f"Name the inputs by --columns; numbers are in {', '.join(rest) or 'no column'}",
        )


def _number(cell: str) -> float:
    """The number in a cell, or NaN where it is none; `float` would take the _ of 1_000 as well."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def _show(cell: str) -> str:
    return repr(cell) if cell else "empty"
