"""`lnkernel demo`."""

from __future__ import annotations

import argparse

from lnkernel.cli.command import OK, Command, add_out


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_out(parser, "out/demo", "the pictures")


def _run(options: argparse.Namespace) -> int:
    from lnkernel import demo

    demo.run(options.out)
    return OK


COMMAND = Command(
    "demo",
    "what one LayerNorm does to the kernel far from the data",
    "lnkernel demo --out out/demo",
    _add_arguments,
    _run,
)
