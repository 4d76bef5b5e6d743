"""`lnkernel kernel`: the kernel matrix of points, as numbers and as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.cli.command import OK, WRONG_USE, Command, add_json, note, print_json

FEW = 10  # points whose matrix is printed


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    points = parser.add_mutually_exclusive_group(required=True)
    points.add_argument(
        "--x",
        nargs=3,
        type=float,
        metavar=("FROM", "TO", "COUNT"),
        help="so many points on a line, evenly spaced",
    )
    points.add_argument("--csv", type=Path, help="points in a CSV file with a header")
    parser.add_argument("--columns", help="of the CSV file, e.g. x1,x2 (default: all)")
    parser.add_argument(
        "--arch",
        default="mlp(hidden=2, norm='first')",
        help="the network, as Python writes it (default: %(default)s)",
    )
    parser.add_argument("--kernel", choices=("ntk", "nngp"), default="ntk", help="which of the two")
    parser.add_argument(
        "--format", choices=("npz", "csv"), default="npz", help="of the file (default: npz)"
    )
    parser.add_argument("--out", type=Path, help="folder of the file and the picture")
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from lnkernel.arch.parse import parse
    from lnkernel.gram.kernel import nngp, ntk

    arch = parse(options.arch)
    x = _points(options)
    if x is None:
        return WRONG_USE
    matrix = np.asarray((ntk if options.kernel == "ntk" else nngp)(arch)(x))
    files = {} if options.out is None else _write(options, x, matrix)
    if options.json:
        shown = {"arch": repr(arch), "kernel": options.kernel, "shape": matrix.shape}
        print_json(shown | {"x": x, "matrix": matrix, "files": files})
    else:
        print(_in_words(options, arch, x, matrix))
        print("".join(f"\n{name}: {path}" for name, path in files.items()), end="\n" * bool(files))
    return OK


def _points(options: argparse.Namespace) -> np.ndarray | None:
    if options.csv is not None:
        from lnkernel.cli.table import read

        columns = None if options.columns is None else options.columns.split(",")
        return read(options.csv, columns).values
    start, stop, count = options.x
    if count != int(count) or count < 1:
        note(f"lnkernel kernel: --x: expected a whole number of points, 1 or more, got {count:g}")
        return None
    return np.linspace(start, stop, int(count))[:, None]


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
    path, picture = options.out / f"kernel.{options.format}", options.out / "kernel.png"
    if options.format == "npz":
        np.savez(path, x=x, matrix=matrix)
    else:
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g")
    _draw(options, x, matrix, picture)
    return {"matrix": path, "picture": picture}


def _draw(options: argparse.Namespace, x: np.ndarray, matrix: np.ndarray, path: Path) -> None:
    """Over the points' coordinates where they are on a line, over their numbers otherwise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.6), layout="compressed")
    ax: Any = figure.subplots()
    even = options.x is not None and len(x) > 1
    half = (x[1, 0] - x[0, 0]) / 2 if even else 0.5
    ends = (x[0, 0], x[-1, 0]) if even else (1.0, float(len(x)))
    extent = (ends[0] - half, ends[1] + half) * 2
    image = ax.imshow(matrix, origin="lower", extent=extent, cmap="viridis")
    symbol = r"\Theta" if options.kernel == "ntk" else "K"
    ax.set_xlabel("$x'$" if even else "point")
    ax.set_ylabel("$x$" if even else "point")
    figure.colorbar(image, ax=ax, label=f"${symbol}(x, x')$")
    figure.savefig(path, dpi=150)


COMMAND = Command(
    "kernel",
    "the kernel matrix of points, printed or written to a file, with a heatmap",
    "lnkernel kernel --arch \"mlp(hidden=2, norm='first')\" --x -25 25 201 --out out/kernel",
    _add_arguments,
    _run,
)
