"""`lnkernel reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lnkernel.cli.command import OK, Command, add_json, add_seed, positive_integer, print_json
from lnkernel.errors import InputError
from lnkernel.experiments import REGISTRY
from lnkernel.experiments.activations import find_activation, folder_suffix


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the experiment; without it all are listed")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the results (default: out/NAME, with --quick out/NAME-quick; the name of an "
        "activation other than ReLU is added)",
    )
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    add_seed(parser, "the first network")
    parser.add_argument("--seeds", type=positive_integer, help="how many networks of each kind")
    add_json(parser)
    for option, takers in _options().items():
        helps = "; ".join(f"{name}: {text}" for name, text in takers.items())
        parser.add_argument(f"--{option.replace('_', '-')}", dest=option, help=helps)


def _options() -> dict[str, dict[str, str]]:
    """What experiments take beyond the common arguments: by option, the experiments and help."""
    found: dict[str, dict[str, str]] = {}
    for name, experiment in REGISTRY.items():
        for option, text in experiment.options.items():
            found.setdefault(option, {})[name] = text
    return found


def _run(options: argparse.Namespace) -> int:
    if options.name is None:
        titles = {name: experiment.title for name, experiment in REGISTRY.items()}
        if options.json:
            print_json({"experiments": titles})
        else:
            print("\n".join(f"{name:12} {title}" for name, title in titles.items()))
        return OK
    if options.name not in REGISTRY:
        known = f"There are {', '.join(REGISTRY)}"
        raise InputError("name", "that of an experiment", repr(options.name), known)
    given: dict[str, Any] = {name: getattr(options, name) for name in _options()}
    out = options.out or Path("out") / _folder(options.name, options.quick, given.get("activation"))
    report = REGISTRY[options.name].run(
        out,
        quick=options.quick,
        seed=options.seed,
        seeds=options.seeds,
        **{name: value for name, value in given.items() if value is not None},
    )
    if options.json:
        print_json({"experiment": options.name, "out": out, "report": report})
    else:
        print(f"report: {report}")
    return OK


def _folder(name: str, quick: bool, activation: str | None) -> str:
    """A quick run never replaces the results of a full one, nor one activation those of another."""
    chosen = "" if activation is None else folder_suffix(find_activation(activation))
    return name + chosen + "-quick" * quick


COMMAND = Command(
    "reproduce",
    "run an experiment of the paper: figures, tables and a report",
    "lnkernel reproduce toy --quick",
    _add_arguments,
    _run,
)
