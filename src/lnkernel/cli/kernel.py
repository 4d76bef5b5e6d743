"""`lnkernel kernel`: the kernel matrix of points, as numbers and as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.cli.command import OK, Command, add_json, announce, data_file, note, print_json
from lnkernel.errors import InputError

FEW = 10  # points whose matrix is printed
MOST = 10**6  # points on a line; the matrix of so many would take 8 TB


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    points = parser.add_mutually_exclusive_group(required=True)
    points.add_argument(
        "--x",
        nargs=3,
        type=float,
        metavar=("FROM", "TO", "COUNT"),
        help="COUNT points on a line, evenly spaced",
    )
    points.add_argument(
        "--csv", type=data_file, help="points in a CSV file with a header, - for standard input"
    )
    parser.add_argument("--columns", help="columns of the CSV file, e.g. x1,x2 (default: all)")
    parser.add_argument(
        "--drop-nan", action="store_true", help="omit lines of the CSV file that lack a number"
    )
    parser.add_argument(
        "--arch",
        default="mlp(hidden=2, norm='first')",
        help="the network, as Python writes it (default: %(default)s)",
    )
    parser.add_argument(
        "--kernel", choices=("ntk", "nngp"), default="ntk", help="the kernel (default: ntk)"
    )
    parser.add_argument(
        "--format", choices=("npz", "csv"), help="format of the file in --out (default: npz)"
    )
    parser.add_argument("--out", type=Path, help="folder of the file and the picture")
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from lnkernel.arch.parse import parse
    from lnkernel.gram.kernel import nngp, ntk
    from lnkernel.gram.memory import demand_memory

    _check_that_all_are_used(options)
    arch = parse(options.arch)
    x = _points_on_a_line(*options.x) if options.csv is None else _points_of_a_file(options)
    demand_memory(len(x), _matrices(options), "The kernel matrix")
    announce(len(x))
    matrix = np.asarray((ntk if options.kernel == "ntk" else nngp)(arch)(x))
    files = {} if options.out is None else _write(options, x, matrix)
    if options.json:
        shown = {"arch": repr(arch), "kernel": options.kernel, "shape": matrix.shape}
        print_json(shown | {"x": x, "matrix": matrix, "files": files})
    else:
        print(_in_words(options, arch, x, matrix))
        print("".join(f"\n{name}: {path}" for name, path in files.items()), end="\n" * bool(files))
    return OK


def _matrices(options: argparse.Namespace) -> int:
    """What is in memory at once: the matrix, its picture, and its numbers as Python's, with their text."""
    return 1 + 2 * (options.out is not None) + 8 * options.json


def _check_that_all_are_used(options: argparse.Namespace) -> None:
    for given, option, needed in (
        (options.columns is not None, "--columns", "csv"),
        (options.drop_nan, "--drop-nan", "csv"),
        (options.format is not None, "--format", "out"),
    ):
        if given and getattr(options, needed) is None:
            remedy = f"Leave {option} out, or add --{needed}"
            raise InputError(option, f"--{needed} with it", "none", remedy)


def _points_of_a_file(options: argparse.Namespace) -> np.ndarray:
    from lnkernel.cli.table import read, split_names

    columns = None if options.columns is None else split_names(options.columns)
    table = read(options.csv, columns, drop_nan=options.drop_nan)
    for each in table.notes:
        note(f"{options.csv}: {each}")
    return table.values


def _points_on_a_line(start: float, stop: float, count: float) -> np.ndarray:
    remedy = "Write e.g. --x -25 25 201"
    if not (1 <= count <= MOST and count == int(count)):
        raise InputError("--x", f"a whole number of points, 1 to {MOST}", f"{count:g}", remedy)
    with np.errstate(all="ignore"):
        x = np.linspace(start, stop, int(count))
    if not np.isfinite(x).all():
        ends = "finite ends, less than 1.8e308 apart"
        raise InputError("--x", ends, f"{start:g} and {stop:g}", remedy)
    return x[:, None]


def _in_words(options: argparse.Namespace, arch: Any, x: np.ndarray, matrix: np.ndarray) -> str:
    symbol = "Θ" if options.kernel == "ntk" else "K"
    diagonal = np.diag(matrix)
    text = (
        f"{symbol} of {arch!r}\n{len(x)} points in {x.shape[1]} dimension{'s' * (x.shape[1] > 1)}; {symbol}(x, x) from "
        f"{diagonal.min():.10g} to {diagonal.max():.10g}, {symbol}(x, x') from {matrix.min():.10g}"
    )
    if len(x) <= FEW:
        rows = ["  ".join(f"{value:12.6g}" for value in row) for row in matrix]
        return "\n".join([text, "", *rows])
    rest = "" if options.out is not None else "\nWrite the matrix to a file with --out FOLDER."
    return text + rest


def _write(options: argparse.Namespace, x: np.ndarray, matrix: np.ndarray) -> dict[str, Path]:
    options.out.mkdir(parents=True, exist_ok=True)
    path, picture = options.out / f"kernel.{options.format or 'npz'}", options.out / "kernel.png"
    if options.format == "csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g")
    else:
        np.savez(path, x=x, matrix=matrix)
    if len(x) == 1:  # a number is no picture
        return {"matrix": path}
    _draw(options, x, matrix, picture)
    return {"matrix": path, "picture": picture}


def _draw(options: argparse.Namespace, x: np.ndarray, matrix: np.ndarray, path: Path) -> None:
    """Draw the matrix over the points' coordinates where they are on a line, over their numbers otherwise."""
    from matplotlib.figure import Figure

    from lnkernel.plot.heatmaps import heatmap

    figure = Figure(figsize=(5.6, 4.6), layout="compressed")
    ax: Any = figure.subplots()
    # points of a line that float64 hardly tells apart are not evenly spaced
    even = options.x is not None and abs(x[1, 0] - x[0, 0]) > 1e-9 * np.abs(x).max()
    image = heatmap(matrix, x if even else np.arange(1, len(x) + 1), ax=ax)
    symbol = r"\Theta" if options.kernel == "ntk" else "K"
    if not even:
        ax.set(xlabel="point", ylabel="point")
        ax.locator_params(integer=True)
    figure.colorbar(image, ax=ax, label=f"${symbol}(x, x')$")
    figure.savefig(path, dpi=150)


COMMAND = Command(
    "kernel",
    "the kernel matrix of points, printed or written to a file, with a heatmap",
    "lnkernel kernel --arch \"mlp(hidden=2, norm='first')\" --x -25 25 201 --out out/kernel",
    _add_arguments,
    _run,
)
