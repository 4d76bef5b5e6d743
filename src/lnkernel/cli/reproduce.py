"""`lnkernel reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from pathlib import Path
from typing import Any

from lnkernel.cli.command import (
    OK,
    WRONG_USE,
    Command,
    add_json,
    note,
    positive_integer,
    print_json,
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="of the experiment; without it they are listed")
    parser.add_argument("--out", type=Path, help="folder of the results (default: out/NAME)")
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    parser.add_argument("--seed", type=int, default=0, help="of the first network (default: 0)")
    parser.add_argument("--seeds", type=positive_integer, help="networks of each kind")
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    registry = _registry()
    if options.name is None:
        if options.json:
            print_json({"experiments": list(registry)})
        else:
            print("\n".join(registry) or "There are no experiments in this version.")
        return OK
    if options.name not in registry:
        known = ", ".join(registry) or "none in this version"
        note(f"lnkernel reproduce: no experiment {options.name!r}; there are: {known}")
        return WRONG_USE
    out = Path("out") / options.name if options.out is None else options.out
    registry[options.name].run(
        out, quick=options.quick, seed=options.seed, seeds=options.seeds, progress=not options.json
    )
    if options.json:
        print_json({"experiment": options.name, "out": out})
    else:
        print(f"results: {out}")
    return OK


def _registry() -> dict[str, Any]:
    if importlib.util.find_spec("lnkernel.experiments") is None:
        return {}
    registry: dict[str, Any] = importlib.import_module("lnkernel.experiments").REGISTRY
    return registry


COMMAND = Command(
    "reproduce",
    "run an experiment of the paper: figures, tables and a report",
    "lnkernel reproduce toy --quick --out out/toy",
    _add_arguments,
    _run,
)
