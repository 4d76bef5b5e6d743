"""What a command of `lnkernel` is, and what several of them share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnkernel.experiments.tables import plain

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class Command:
    """One command: how it is called, and what it does; `run` returns the exit code."""

    name: str
    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]

    def add_to(self, commands: Any) -> None:
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=f"{self.help[0].upper()}{self.help[1:]}.",
            epilog=f"example: {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def add_out(parser: argparse.ArgumentParser, default: str, what: str) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path(default), help=f"folder of {what} (default: {default})"
    )


def positive_integer(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer, 1 or more, got {text}")
    return value


def note(text: str) -> None:
    """Something to know that is not the result: on stderr, so that `--json` stays JSON."""
    print(text, file=sys.stderr)


def print_json(content: dict[str, Any]) -> None:
    print(json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False))
