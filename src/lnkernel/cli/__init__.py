"""The command line: `lnkernel demo | bound | kernel | verify | reproduce | bench`.

Exit codes: 0 all is well, 1 a check failed, 2 wrong use (of an option, a file, a text), 130
interrupted. Results are printed on stdout; notes, progress bars and errors on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lnkernel.cli import bench, bound, demo, kernel, reproduce, verify
from lnkernel.cli.command import INTERRUPTED, WRONG_USE
from lnkernel.errors import LnkernelError

COMMANDS = (
    demo.COMMAND,
    bound.COMMAND,
    kernel.COMMAND,
    verify.COMMAND,
    reproduce.COMMAND,
    bench.COMMAND,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(
        prog="lnkernel",
        description="Exact kernels of infinitely wide networks, with LayerNorm.",
        epilog="`lnkernel COMMAND --help` shows the options of a command, with an example.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except (LnkernelError, OSError) as problem:
        print(f"lnkernel {options.command}: {problem}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"lnkernel {options.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
