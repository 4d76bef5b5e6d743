"""Inputs that float64 cannot tell apart, or that are too many: told by the file's lines and by options that help."""

from __future__ import annotations

import argparse

import numpy as np

from lnkernel.cli.table import list_of_lines
from lnkernel.cli.training_data import CsvData
from lnkernel.errors import (
    DataFileError,
    DuplicateInputsError,
    NotEnoughMemoryError,
    SingularGramError,
    TooManyPointsError,
    UnresolvedEigenvalueError,
)
from lnkernel.gp.diagnosis import nearest

Unresolved = DuplicateInputsError | SingularGramError | UnresolvedEigenvalueError


def by_lines(problem: Unresolved, data: CsvData, options: argparse.Namespace) -> DataFileError:
    """The same problem in the words of the command line."""
    if isinstance(problem, DuplicateInputsError):  # equal ones in the file were told before
        return DataFileError(
            options.data,
            "expected inputs that are different when they are scaled",
            [f"lines {list_of_lines(data.lines[group])}: equal" for group in problem.groups],
            f"Leave out all but one of them{_or_noise(options, '')}",
        )
    if isinstance(problem, SingularGramError):
        value, problems = problem.lambda_min, _culprits(problem, data, options)
        diagonal = " times Θ(x, x)" if problem.scaled else ""
        scale = 1.0 if problem.scaled else data.unit**2
    else:
        value, problems = problem.value, _sizes(data, options)
        diagonal, scale = "", data.unit**2
    problems.append(
        f"the smallest eigenvalue of the Gram matrix comes out as {value:.2g}, and float64 resolves "
        f"{problem.resolution:.2g} in it"
    )
    enough = f", well above {scale * problem.resolution:.1g}{diagonal}"
    return DataFileError(
        options.data,
        "expected inputs that float64 can tell apart with this network",
        problems,
        _remedy(problem, options) + _or_noise(options, enough),
    )


def too_many(
    problem: NotEnoughMemoryError | TooManyPointsError, data: CsvData, options: argparse.Namespace
) -> DataFileError:
    """More points than have room, with the options that take fewer, or that need no matrix."""
    fits = "" if problem.fits is None else f", e.g. --sample {problem.fits}"
    remedy = f"Use fewer lines by --sample{fits}"
    if getattr(options, "tolerance", 0.0) is None:  # the command has it, and it is not given
        noise = "" if options.noise else " and --noise"
        remedy += f"; or give --tolerance{noise}, which needs no matrix in memory"
    return DataFileError(
        options.data, f"expected fewer points than {len(data.X)}", [str(problem)], remedy
    )


def _culprits(problem: SingularGramError, data: CsvData, options: argparse.Namespace) -> list[str]:
    """Each pair once, though it may be both the nearest and the most alike."""
    if problem.zero is not None:
        return [f"line {data.lines[problem.zero]}: the kernel with itself is 0"]
    if problem.nearest is None or problem.alike is None:
        return []
    near, (i, j, short) = _near(problem.nearest, data, options), problem.alike
    how = "equal up to rounding" if short < 1e-15 else f"with correlation 1 - {short:.1e}"
    if problem.nearest[:2] == (i, j):
        return [f"{near}; to the kernel {how}"]
    return [near, f"lines {data.lines[i]} and {data.lines[j]}: most alike to the kernel, {how}"]


def _sizes(data: CsvData, options: argparse.Namespace) -> list[str]:
    """The smallest and the largest inputs, and the nearest: either may be to blame, and the reader can tell which."""
    pair, sizes = nearest(data.X), np.abs(data.X).max(axis=1)
    if pair is None:
        return []
    least, most = int(sizes.argmin()), int(sizes.argmax())
    return [
        _near(pair, data, options),
        f"lines {data.lines[least]} and {data.lines[most]}: the smallest and the largest inputs, with "
        f"numbers up to {sizes[least]:.3g} and {sizes[most]:.3g}",
    ]


def _near(pair: tuple[int, int, float], data: CsvData, options: argparse.Namespace) -> str:
    i, j, distance = pair
    scaled = " after scaling" if options.standardise else ""
    return (
        f"lines {data.lines[i]} and {data.lines[j]}: the nearest inputs, at distance "
        f"{distance:.3g}{scaled}"
    )


def _remedy(problem: Unresolved, options: argparse.Namespace) -> str:
    if isinstance(problem, SingularGramError):
        bias = "give the Dense layers of --arch a bias (b_std=0.1)"
        if problem.zero is not None:
            return f"Leave this line out, or {bias}"
        return (
            f"Leave one of these lines out; or {bias}, if the inputs differ only in their length, "
            "which the network normalises away"
        )
    if options.standardise:
        return "Leave out lines that nearly coincide, or that lie far from all others"
    return (
        "Scale the inputs to one size with --standardise; or leave out lines that nearly coincide"
    )


def _or_noise(options: argparse.Namespace, enough: str) -> str:
    """Noise is a remedy; more of it, where there is some already."""
    state = "a larger variance" if options.noise else "the variance"
    return f"; or state {state} of the targets' noise by --noise{enough}"
