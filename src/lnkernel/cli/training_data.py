"""Inputs and targets of a CSV file: duplicates told by line, a sample, one scale for all."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from lnkernel.cli.command import add_seed, data_file, positive_integer
from lnkernel.cli.table import Table, count_of_lines, list_of_lines, read, split_names
from lnkernel.errors import DataFileError, InputError


@dataclass(frozen=True)
class CsvData:
    """X (n, d) and y (n,), and how they came about. The targets of the file are centre + unit·y."""

    inputs: tuple[str, ...]
    target: str
    X: np.ndarray
    y: np.ndarray
    lines: np.ndarray  # the line in which each point is first found
    centre: float
    unit: float
    noise: float  # variance of that of y
    notes: tuple[str, ...]
    input_centre: float | np.ndarray = 0.0  # X is (inputs of the file - centre) / unit
    input_unit: float | np.ndarray = 1.0

    def scale_inputs(self, values: np.ndarray) -> np.ndarray:
        """Other inputs in the units of X."""
        return np.asarray((values - self.input_centre) / self.input_unit)

    @property
    def targets(self) -> np.ndarray:
        """The targets as they are in the file."""
        return self.centre + self.unit * self.y


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, its columns, and what is to be done about its lines."""
    parser.add_argument(
        "data",
        type=data_file,
        help="a CSV file with the names of its columns on top, - for standard input",
    )
    parser.add_argument("--target", required=True, help="the column to predict")
    parser.add_argument("--columns", help="the inputs, e.g. x1,x2 (default: all but the target)")
    parser.add_argument("--drop-nan", action="store_true", help="omit lines that lack a number")
    parser.add_argument(
        "--merge-duplicates", action="store_true", help="merge equal inputs, with their mean target"
    )
    parser.add_argument(
        "--standardise",
        action="store_true",
        help="scale inputs and target to mean 0 and standard deviation 1 before training",
    )
    parser.add_argument("--noise", type=float, default=0.0, help="variance of the targets' noise")
    parser.add_argument(
        "--sample", type=positive_integer, help="use only this many lines, drawn at random"
    )
    add_seed(parser, "the sample")


def load(options: argparse.Namespace) -> CsvData:
    """What the options ask for."""
    table, inputs = _columns(options)
    notes = list(table.notes)
    if options.sample is not None and options.sample < len(table.values):
        rng = np.random.default_rng(options.seed)
        kept = np.sort(rng.choice(len(table.values), options.sample, replace=False))
        notes.append(f"a sample of {options.sample} of {len(table.values)} lines")
    else:
        kept = np.arange(len(table.values))
    X, y, lines = table.values[kept, :-1], table.values[kept, -1], table.lines[kept]
    X, y, lines, merged = _without_duplicates(options, X, y, lines)
    notes += merged
    centre, unit = 0.0, 1.0
    inputs_scale: tuple[Any, Any] = (0.0, 1.0)
    if options.standardise:
        X, constant, inputs_scale = _standardise(X)
        notes += [f"{inputs[place]} is the same in every line" for place in constant]
        centre, unit = float(y.mean()), float(y.std()) or 1.0
        centre = (
            centre if abs(centre) > 1e-12 * unit else 0.0
        )  # a sum that cancels but for rounding
        y = (y - centre) / unit
    noise = options.noise / unit**2
    return CsvData(
        inputs, options.target, X, y, lines, centre, unit, noise, tuple(notes), *inputs_scale
    )


def _columns(options: argparse.Namespace) -> tuple[Table, tuple[str, ...]]:
    """The table with the inputs first and the target last."""

    def choose(names: list[str]) -> list[str]:
        if options.columns is None:
            inputs = [name for name in names if name != options.target]
        else:
            inputs = split_names(options.columns)
        if options.target in inputs or not inputs:
            raise InputError(
                "--columns",
                "inputs, without the target",
                ", ".join(inputs) or "none",
                "Name others",
            )
        return [*inputs, options.target]

    table = read(options.data, choose, drop_nan=options.drop_nan)
    return table, table.columns[:-1]


def _without_duplicates(
    options: argparse.Namespace, X: np.ndarray, y: np.ndarray, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Equal inputs merged, or kept where the targets carry noise; otherwise an error."""
    from lnkernel.gp.duplicates import different_points, merge_duplicates

    firsts, repeated = different_points(X)
    if not repeated:
        return X, y, lines, []
    if options.merge_duplicates:
        X, y = (np.asarray(part) for part in merge_duplicates(X, y))
        count = sum(map(len, repeated)) - len(repeated)
        return X, y, lines[firsts], [f"{count_of_lines(count)} merged with others of equal inputs"]
    if options.noise > 0:
        return X, y, lines, [f"{len(repeated)} inputs occur more than once"]
    problems = [
        f"lines {list_of_lines(lines[group])}: equal inputs, "
        + ("equal targets" if np.ptp(y[group]) == 0 else "different targets")
        for group in repeated
    ]
    raise DataFileError(
        options.data,
        "expected different inputs in every line, because equal ones make the Gram matrix singular",
        problems,
        "Merge them with --merge-duplicates, which averages their targets, or state the variance of "
        "the targets' noise by --noise",
    )


def _standardise(X: np.ndarray) -> tuple[np.ndarray, list[int], tuple[np.ndarray, np.ndarray]]:
    """Mean 0 and standard deviation 1 in every column, but for constant ones: those are 0."""
    middle, spread = X.mean(axis=0), X.std(axis=0)
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    spread[constant] = 1.0
    return (X - middle) / spread, constant.tolist(), (middle, spread)
