"""The command line: `lnkernel demo | bound | fit | kernel | verify | reproduce | bench`.

Exit codes: 0 all is well, 1 a check failed, 2 wrong use (of an option, a file, a text), 130
interrupted. Results are printed on stdout; notes, progress bars and errors on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from lnkernel.cli import bench, bound, demo, fit, kernel, reproduce, verify
from lnkernel.cli.command import INTERRUPTED, OK, WRONG_USE, file_problem
from lnkernel.errors import LnkernelError
from lnkernel.gram.stored import store_programs_unless_told
from lnkernel.version import __version__

COMMANDS = (
    demo.COMMAND,
    bound.COMMAND,
    fit.COMMAND,
    kernel.COMMAND,
    verify.COMMAND,
    reproduce.COMMAND,
    bench.COMMAND,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code."""
    options = parser().parse_args(arguments)
    if arguments is None:  # as a command of its own: the process is ours
        store_programs_unless_told()
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # e.g. of `| head`: nobody reads on, and that is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except LnkernelError as problem:
        print(f"lnkernel {options.command}: {problem}", file=sys.stderr)
        return WRONG_USE
    except OSError as problem:
        print(f"lnkernel {options.command}: {file_problem(problem, options)}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"lnkernel {options.command}: interrupted", file=sys.stderr)
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    made = argparse.ArgumentParser(
        prog="lnkernel",
        description="Exact kernels of infinitely wide networks, with LayerNorm.",
        epilog="`lnkernel COMMAND --help` shows the options of a command, with an example.",
    )
    made.add_argument("--version", action="version", version=f"lnkernel {__version__}")
    commands = made.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return made
