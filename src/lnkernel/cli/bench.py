"""`lnkernel bench`: the benchmark suite, which is part of the repository and not of the package."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from lnkernel.cli.command import WRONG_USE, Command, add_json, add_out, note

SUITE = Path("benchmarks/suite.py")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="the short form of each, on 2 cores")
    parser.add_argument("--only", help="some of them, e.g. accuracy,width")
    parser.add_argument(
        "--seed", type=int, default=0, help="of bound_vs_output's networks (default: 0)"
    )
    add_json(parser)
    add_out(parser, "out/bench", "the report")


def _run(options: argparse.Namespace) -> int:
    root = checkout()
    if root is None:
        note(
            "lnkernel bench: the benchmarks are not installed with the package, because they use the "
            "tests' tables and other libraries in environments of their own. Get the repository, "
            "and run `make bench` or `lnkernel bench` in its folder."
        )
        return WRONG_USE
    command = [sys.executable, "-m", "benchmarks.suite", "--out", str(options.out.resolve())]
    command += ["--seed", str(options.seed)]
    command += ["--quick"] * options.quick + ["--json"] * options.json
    command += ["--only", options.only] if options.only else []
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
    "lnkernel bench --quick --out out/bench",
    _add_arguments,
    _run,
)
