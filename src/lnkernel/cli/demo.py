"""`lnkernel demo`."""

from __future__ import annotations

import argparse

from lnkernel.cli.command import OK, Command, add_out


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_out(parser, "out/demo", "the pictures, tables and page")


def _run(options: argparse.Namespace) -> int:
    from lnkernel import demo

    demo.run(options.out)
    return OK


COMMAND = Command(
    "demo",
    "what one LayerNorm does far from the data, to the kernel and to trained networks",
    "lnkernel demo --out out/demo",
    _add_arguments,
    _run,
)
