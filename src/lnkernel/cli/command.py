"""What a command of `lnkernel` is, and what several of them share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnkernel.tables import plain

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
LARGEST = 2**31 - 1  # the largest integer on the command line; JAX takes no seeds beyond 64 bits
MANY = 1000  # points from which on a result takes long enough to be announced


@dataclass(frozen=True)
class Command:
    """One command: how it is called, and what it does; `run` returns the exit code."""

    name: str
    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]

    def add_to(self, commands: Any) -> None:
        """Make it one of the commands of a parser."""
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
    """`--json`, of the same meaning everywhere."""
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def add_out(parser: argparse.ArgumentParser, default: str, what: str) -> None:
    """`--out`, the folder of what the command writes."""
    parser.add_argument(
        "--out", type=Path, default=Path(default), help=f"folder of {what} (default: {default})"
    )


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """`--seed`, from which all that is random follows."""
    parser.add_argument(
        "--seed", type=non_negative_integer, default=0, help=f"the seed of {what} (default: 0)"
    )


STANDARD_INPUT = Path("standard input")  # this very object, so that a file may have its name


def data_file(text: str) -> Path:
    """A file to read, as the type of an argument; - is standard input, as everywhere."""
    return STANDARD_INPUT if text == "-" else Path(text)


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input."""
    return sys.stdin.buffer.read() if path is STANDARD_INPUT else path.read_bytes()


def file_problem(problem: OSError, options: argparse.Namespace) -> str:
    """What the system says of a file or folder, and what helps: another name for what is read or written."""
    if problem.filename is None:
        return str(problem)
    path = Path(str(problem.filename))
    said = f"{path}: {(problem.strerror or str(problem)).lower()}"
    out, named = getattr(options, "out", None), vars(options)
    is_read = path in [named.get(each) for each in ("data", "csv", "predict", "file")]
    if (
        not is_read
        and out is not None
        and (path == out or {path, out} & {*path.parents, *out.parents})
    ):
        return f"{said}, so that nothing can be written there. Name another place by --out."
    if isinstance(problem, FileNotFoundError):
        return f"{path}: there is no such file. Correct its name, which is looked up from {Path.cwd()} on."
    if isinstance(problem, IsADirectoryError):
        return f"{said}. Name a file in it."
    return f"{said}. Name a file that can be read."


def positive_integer(text: str) -> int:
    """1, 2, ..., as the type of an argument."""
    return _integer(text, 1)


def non_negative_integer(text: str) -> int:
    """0, 1, ..., as the type of an argument."""
    return _integer(text, 0)


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"expected an integer, {least} to {LARGEST}, got {text}")
    return value


def note(text: str) -> None:
    """Something to know that is not the result: on stderr, so that `--json` stays JSON."""
    print(text, file=sys.stderr)


def announce(points: int) -> None:
    """Say that something happens, where it takes more than a few seconds."""
    if points >= MANY:
        note(f"computing with {points} points, which can take a while ...")


def print_json(content: dict[str, Any]) -> None:
    """The result for other programs: infinities and paths are text."""
    print(json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False))
