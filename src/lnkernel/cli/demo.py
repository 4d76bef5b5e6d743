"""`lnkernel demo`."""

from __future__ import annotations

import argparse
import contextlib
import sys

from lnkernel.cli.command import OK, Command, add_json, add_out, add_seed, print_json


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_seed(parser, "the first network")
    add_json(parser)
    add_out(parser, "out/demo", "the pictures, tables and page")


def _run(options: argparse.Namespace) -> int:
    from lnkernel import demo

    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        shown = demo.run(options.out, seed=options.seed)
    if options.json:
        print_json({"tables": shown.tables, "report": shown.page})
    return OK


COMMAND = Command(
    "demo",
    "what one LayerNorm does far from the data, to the kernel and to trained networks",
    "lnkernel demo --out out/demo",
    _add_arguments,
    _run,
)
