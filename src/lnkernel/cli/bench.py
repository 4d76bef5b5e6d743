"""`lnkernel bench`: the benchmark suite, which is part of the repository and not of the package."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from lnkernel.cli.command import WRONG_USE, Command, add_json, add_seed, note

SUITE = Path("benchmarks/suite.py")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="the short form of each, on 2 cores")
    parser.add_argument("--only", help="some of them, e.g. accuracy,width")
    add_seed(parser, "bound_vs_output's networks")
    add_json(parser)
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the report (default: out/bench, with --quick out/bench-quick)",
    )


def _run(options: argparse.Namespace) -> int:
    root = checkout()
    if root is None:
        note(
            "lnkernel bench: the benchmarks are not installed with the package, because they use the "
            "tests' tables and other libraries in environments of their own. Get the repository, "
            "and run `make bench` or `lnkernel bench` in its folder."
        )
        return WRONG_USE
    out = options.out or Path("out") / ("bench-quick" if options.quick else "bench")
    command = [sys.executable, "-m", "benchmarks.suite", "--out", str(out.resolve())]
    command += ["--seed", str(options.seed), "--prog", "lnkernel bench"]
    command += ["--quick"] * options.quick + ["--json"] * options.json
    command += [] if options.only is None else ["--only", options.only]
    return subprocess.run(command, cwd=root, check=False).returncode


def checkout() -> Path | None:
    """The repository: this folder or one above it, or the one that the package was installed from."""
    here = Path.cwd()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / SUITE).is_file() and (folder / "src" / "lnkernel").is_dir():
            return folder
    return None


COMMAND = Command(
    "bench",
    "run the benchmark suite and write one report",
    "lnkernel bench --quick --only accuracy,width",
    _add_arguments,
    _run,
)
