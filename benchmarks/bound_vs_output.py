"""The claim: with LayerNorm the output stays bounded, however far the input lies from the data.

    python -m benchmarks.bound_vs_output            # the whole grid on a GPU, else the quick one
    python -m benchmarks.bound_vs_output --full     # the whole grid: a night on a GPU
    python -m benchmarks.bound_vs_output --quick    # a few minutes on two cores
    python -m benchmarks.bound_vs_output --quick --activation tanh

Over targets, dimensions, numbers of points, depths, places of the LayerNorm, widths and two ways
of training: B(D) in its forms; the largest |mean| of the infinitely wide network; and the largest
|output| of trained networks, along rays out to a million times the longest training input. The two
ways are `practice`, standard parametrisation and Adam 1e-3, and `theory`, NTK parametrisation and
plain gradient descent.

Two things are claimed of every network with a LayerNorm, and the exit code is 1 if one fails:
|mean| ≤ rkhs ≤ sharp ≤ paper ≤ norms (a theorem), and the outputs of the trained networks do not
grow: over the last three decades their largest follows a power of |x| below 0.01. That single
trained networks stay below the bound on the mean of infinitely wide ones is not a theorem; the
table tells how many do.

`--activation tanh` takes networks of another activation than the ReLU. Where theory then gives no
bound in spite of the LayerNorm, or where it is silent, nothing is claimed: the row says `no bound`, and
the reasons stand below the table. Analytic activations have kernels so smooth that Θ(X, X) can be
singular to float64; mean and bound are then those of training with a little noise (`noise` in the
table's JSON).

`out/bound_vs_output/` (of another activation, with its name) gets rows.jsonl, from which `--resume`
goes on after an interruption, table.json, outputs.png (output against |x|) and bounds.png (largest
output against bound).
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

import lnkernel as lnk
from benchmarks import bound_vs_output_figures as figures
from benchmarks.bound_vs_output_cell import (
    RADII,
    TARGETS,
    Cell,
    Row,
    Settings,
    as_dict,
    measure,
)
from lnkernel.bounds import FORMS
from lnkernel.experiments.activations import DEFAULT, find_activation, folder_suffix, key_of
from lnkernel.tables import plain

OUT = "out/bound_vs_output"


def grid(quick: bool) -> tuple[list[Cell], Settings]:
    """The cells, and how they are measured."""
    places: tuple[str | None, ...] = (None, "first", "last", "all")
    if quick:
        axes: list[Collection[Any]] = [TARGETS.keys(), (1, 2, 9), (50,), (2,), places, (128,)]
        cells = [Cell(*cell) for cell in itertools.product(*axes, ("practice",))]
        # in 9 dimensions, where the matrix is so well conditioned that plain descent converges
        cells += [Cell("sinusoid", 9, 50, 2, place, 128, "theory") for place in places]
        return cells, Settings(seeds=3, steps=1000, directions=16, seed=0)
    axes = [TARGETS.keys(), (1, 2, 9), (20, 100, 500), (1, 2, 4), places, (128, 512, 2048)]
    cells = [Cell(*cell) for cell in itertools.product(*axes, ("practice", "theory"))]
    return cells, Settings(seeds=10, steps=3000, directions=64, seed=0)


def on_a_gpu() -> bool:
    """Whether the whole grid takes a night, and not weeks; where not, a line says so."""
    found = jax.default_backend() == "gpu"
    if not found:
        print("No GPU: the quick grid. --full is the whole one, which takes a GPU a night.")
    return found


# ---------------------------------------------------------------- rows that are kept


def key(cell: Cell, settings: Settings) -> str:
    return json.dumps([lnk.__version__, as_dict(cell), asdict(settings)], sort_keys=True)


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of an earlier run by their keys; a last line that was cut off does not count."""
    rows: dict[str, Row] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            content = json.loads(line)
        except json.JSONDecodeError:
            continue
        row = content["row"] | {"cell": Cell(**content["row"]["cell"])}
        rows[content["key"]] = Row(**row)
    return rows


def measure_all(
    cells: list[Cell], settings: Settings, path: Path, resume: bool
) -> tuple[list[Row], list[str]]:
    """Each cell once, and the problems of those that could not be measured.

    If the run is to go on, what is in the file already is taken from there.
    """
    done: dict[str, Row] = read_rows(path) if resume else {}
    rows: list[Row] = []
    problems: list[str] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if resume else "w") as file:
        file.write("\n" * resume)  # the last line may have been cut off
        for cell in tqdm(cells, unit="cell", desc="bound and output"):
            row = done.get(key(cell, settings))
            if row is None:
                try:
                    row = measure(cell, settings)
                except (
                    lnk.errors.LnkernelError
                ) as problem:  # one cell is no reason to end the night
                    problems.append(f"{cell}: {problem}")
                    tqdm.write(problems[-1], file=sys.stdout)
                    continue
                content = {"key": key(cell, settings), "row": as_dict(row)}
                file.write(json.dumps(content) + "\n")  # infinities as Python writes them
                file.flush()
            rows.append(row)
            tqdm.write(line(row), file=sys.stdout)
    return rows, problems


# ---------------------------------------------------------------- the table

HEAD = (
    f"{'target':9} {'d':>2} {'n':>4} {'hidden':>6} {'norm':5} {'width':>5} {'training':8} "
    f"{'max|output|':>11} {'growth':>7} {'sup|mean|':>10} {'growth':>7} "
    + " ".join(f"{form:>9}" for form in FORMS)
    + f" {'loss':>8} {'s':>5}"
)


def line(row: Row) -> str:
    c = row.cell
    bounds = " ".join(f"{row.bounds[form]:9.4g}" for form in FORMS)
    verdict = "" if row.bound_holds and row.stays_bounded else "  FAILED"
    verdict += "  no bound" if row.no_bound else ""
    return (
        f"{c.target:9} {c.dimension:2} {c.n:4} {c.hidden:6} {c.norm or 'none':5} {c.width:5} "
        f"{c.training:8} {row.sup_output:11.4g} {_power(row.output_growth)} {row.sup_mean:10.4g} "
        f"{_power(row.mean_growth)} {bounds} {row.loss:8.1e} {row.seconds:5.1f}{verdict}"
    )


def _power(value: float) -> str:
    return f"{round(value, 3) + 0.0:7.3f}"  # no -0.000


def summary(rows: list[Row]) -> dict[str, Any]:
    """How many networks do what; medians over the cells."""
    bounded = [row for row in rows if row.has_bound]
    free = [row for row in rows if not row.has_norm]
    silent = [row for row in rows if row.has_norm and not row.has_bound]
    ratios = [row.bounds["rkhs"] / row.sup_output for row in bounded]
    without_bound = {
        "cells with LayerNorm and no bound": len(silent),
        "largest output of these": max((row.sup_output for row in silent), default=None),
    }
    return {
        "cells with LayerNorm": len(bounded),
        "of these with every trained network below rkhs": sum(r >= 1 for r in ratios),
        "of these with every trained network below sharp": sum(
            row.sup_output <= row.bounds["sharp"] for row in bounded
        ),
        "median of rkhs / largest output": float(np.median(ratios)) if ratios else None,
        "largest growth with LayerNorm": max((abs(r.output_growth) for r in bounded), default=None),
        "cells without": len(free),
        "least growth without": min((row.output_growth for row in free), default=None),
        "largest output without": max((row.sup_output for row in free), default=None),
        **(without_bound if silent else {}),
    }


def reasons(rows: list[Row]) -> dict[str, str]:
    """Why there is no bound, by the place of the LayerNorm."""
    return {f"LayerNorm {row.cell.norm or 'none'}": row.no_bound for row in rows if row.no_bound}


def as_json(
    rows: list[Row], problems: list[str], settings: Settings, seconds: float
) -> dict[str, Any]:
    """All that was found; infinities as text."""
    checks = {
        "|mean| <= rkhs <= sharp <= paper <= norms": all(row.bound_holds for row in rows),
        "outputs do not grow with LayerNorm": all(row.stays_bounded for row in rows),
        "every cell was measured": not problems,
    }
    return {
        "seconds": seconds,
        "settings": asdict(settings),
        "radii": RADII.tolist(),
        "checks": checks,
        "summary": summary(rows),
        "problems": problems,
        "rows": plain([as_dict(row) for row in rows]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a small grid")
    size.add_argument("--full", action="store_true", help="the whole grid, on a CPU too")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument(
        "--activation",
        default=key_of(DEFAULT),
        help="the networks' activation, e.g. tanh (default: relu)",
    )
    parser.add_argument("--out", type=Path, help=f"folder of the results (default: {OUT})")
    for field in fields(Settings):
        parser.add_argument(f"--{field.name}", type=int, help="instead of the grid's own")
    options = parser.parse_args(arguments)
    activation = find_activation(options.activation)
    out = options.out or Path(OUT + folder_suffix(activation))
    cells, settings = grid(options.quick or not (options.full or on_a_gpu()))
    cells = [replace(cell, activation=key_of(activation)) for cell in cells]
    given = {name: getattr(options, name) for name in asdict(settings)}
    settings = Settings(
        **asdict(settings) | {name: value for name, value in given.items() if value is not None}
    )
    begin = time.perf_counter()
    tqdm.write(HEAD, file=sys.stdout)
    rows, problems = measure_all(cells, settings, out / "rows.jsonl", options.resume)
    seconds = time.perf_counter() - begin
    content = as_json(rows, problems, settings, seconds)
    (out / "table.json").write_text(json.dumps(content, indent=1) + "\n")
    figures.draw_outputs(rows, RADII, out / "outputs.png")
    figures.draw_bounds(rows, out / "bounds.png")
    print()
    for place, reason in reasons(rows).items():
        print(f"{place}: no bound: {reason}")
    for name, value in content["summary"].items():
        print(f"{name}: {value if isinstance(value, int | None) else f'{value:.4g}'}")
    for claim, holds in content["checks"].items():
        print(f"{claim}: {'yes' if holds else 'NO'}")
    print(f"{seconds:.0f} s; written to {out}")
    return 0 if all(content["checks"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
