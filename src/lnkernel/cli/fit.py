"""`lnkernel fit`: train an infinitely wide network on a CSV file, and predict another; on one machine or on many."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lnkernel.cli import training_data
from lnkernel.cli.command import (
    OK,
    STANDARD_INPUT,
    Command,
    add_json,
    data_file,
    note,
    positive_integer,
    print_json,
)
from lnkernel.errors import InputError

if TYPE_CHECKING:
    from lnkernel.cli.training_data import CsvData
    from lnkernel.gp.posterior import Posterior


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    training_data.add_arguments(parser)
    parser.add_argument(
        "--arch",
        default="mlp(hidden=2, norm='first')",
        help="the network, as Python writes it (default: %(default)s)",
    )
    parser.add_argument(
        "--predict",
        type=data_file,
        required=True,
        help="a CSV file of new inputs, - for standard input",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/predictions.csv"),
        help="the file of the predictions (default: %(default)s)",
    )
    parser.add_argument("--std", action="store_true", help="add the posterior standard deviation")
    parser.add_argument(
        "--tolerance",
        type=float,
        help="iterate, until no prediction can be off by more than this (in units of the target)",
    )
    parser.add_argument(
        "--rank", type=positive_integer, help="of the preconditioner of --tolerance"
    )
    parser.add_argument("--tiles", type=Path, help="keep the matrix in this folder, to go on from")
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="this is one process of many, started by SLURM, Open MPI or Kubernetes",
    )
    parser.add_argument("--coordinator", help="host:port of process 0, without such a launcher")
    parser.add_argument("--processes", type=positive_integer, help="how many processes there are")
    parser.add_argument("--process", type=int, help="the number of this process, from 0 on")
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from lnkernel.arch.parse import parse
    from lnkernel.cli.table import read
    from lnkernel.cli.unresolved import by_lines, too_many
    from lnkernel.errors import (
        DuplicateInputsError,
        NotEnoughMemoryError,
        SingularGramError,
        TooManyPointsError,
    )

    arch = parse(options.arch)
    if options.data is options.predict is STANDARD_INPUT:
        remedy = "It can be read only once: put one of the two into a file"
        raise InputError("--predict", "a file that is not that of the data", "- for both", remedy)
    mesh = _join(options)
    data = training_data.load(options)
    new = read(options.predict, data.inputs, drop_nan=options.drop_nan)
    for path, notes in ((options.data, data.notes), (options.predict, new.notes)):
        for each in notes:
            _note(f"{path}: {each}")
    _announce(len(data.X), mesh, options)
    try:
        post = _posterior(arch, data, mesh, options)
    except (DuplicateInputsError, SingularGramError) as problem:
        raise by_lines(problem, data, options) from None
    except (NotEnoughMemoryError, TooManyPointsError) as problem:
        raise too_many(problem, data, options) from None
    x = data.scale_inputs(new.values)
    columns = {data.target: data.centre + data.unit * np.asarray(post.mean(x))}
    if options.std:
        columns[f"std of {data.target}"] = data.unit * np.asarray(post.std(x))
    if _is_first():
        _write(options.out, columns)
        _report(options, arch, data, post, len(x))
    return OK


def _join(options: argparse.Namespace) -> Any:
    """The devices of all processes, or None for this one alone."""
    named = (options.coordinator, options.processes, options.process)
    if not options.distributed and named == (None, None, None):
        return None
    from lnkernel import distributed

    distributed.initialize(*named)
    return distributed.mesh()


def _posterior(arch: Any, data: CsvData, mesh: Any, options: argparse.Namespace) -> Posterior:
    from lnkernel.gp.posterior import posterior

    if options.tiles is not None and mesh is None and options.tolerance is None:
        from lnkernel.distributed import mesh as all_devices

        mesh = all_devices()
    tolerance = None if options.tolerance is None else options.tolerance / data.unit
    return posterior(
        arch,
        data.X,
        data.y,
        noise=data.noise,
        sharding=mesh,
        tolerance=tolerance,
        rank=options.rank,
        tiles=options.tiles,
    )


def _announce(n: int, mesh: Any, options: argparse.Namespace) -> None:
    """What it takes, before it begins."""
    from lnkernel.gp.rectangular_packed import MOST
    from lnkernel.gp.strips import deal_out
    from lnkernel.gram.memory import available_memory

    if options.rank is not None and options.tolerance is None:
        raise InputError(
            "--rank", "--tolerance with it", "none", "Leave it out, or add --tolerance"
        )
    free = f"{available_memory() / 2**30:.1f} GiB are free here"
    if mesh is not None:
        _note(f"{deal_out(n, mesh).in_words()}; {free}")
    elif options.tolerance is not None:
        _note(f"{n} points by conjugate gradients, which need no matrix in memory; {free}")
    elif n >= 1000:
        whole = 8 * n * n / 2**30
        half = f", or {whole / 2:.2f} GiB where half of it is kept" if n <= MOST else ""
        _note(f"The kernel matrix of {n} points takes {whole:.2f} GiB of memory{half}; {free}")


def _write(path: Path, columns: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*(map(repr, map(float, c)) for c in columns.values()), strict=True))


def _report(
    options: argparse.Namespace, arch: Any, data: CsvData, post: Posterior, count: int
) -> None:
    error = None if options.tolerance is None else data.unit * post.error
    if options.json:
        shown = {"data": options.data, "arch": repr(arch), "points": len(data.X), "error": error}
        print_json(shown | {"predictions": count, "files": {"predictions": options.out}})
        return
    print(f"{options.data}: {len(data.X)} points, target {data.target}\nnetwork: {arch!r}")
    if error is not None:
        print(
            f"No prediction, wherever its input lies, is off by more than {error:.3g} from that of the exact posterior."
        )
    print(f"\n{count} predictions: {options.out}")


def _is_first() -> bool:
    import jax

    return jax.process_index() == 0


def _note(text: str) -> None:
    if _is_first():
        note(text)


COMMAND = Command(
    "fit",
    "train an infinitely wide network on your data and predict new inputs, on one machine or on many",
    "lnkernel fit data.csv --target y --noise 0.1 --predict new.csv --out predictions.csv",
    _add_arguments,
    _run,
)
