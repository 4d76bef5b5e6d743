"""docs/command-line.md, as a file: what it shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from test_docs import DOCS, tool

from lnkernel import cli

PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# where a curve that is flat far out is largest, and the size of a rounding error, are not the same
# on every machine
UNSTEADY = re.compile(r"\(\S+ standard deviations|± \S+,")


def test_the_help_is_what_the_commands_print() -> None:
    """But for line breaks, which are not the same in all versions of Python."""
    printed = tool("command_help").on_page_markdown(PAGE)
    assert PAGE.split() == printed.split(), "run python docs/tools/command_help.py"


def test_the_session_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words, and the same numbers to three digits."""
    (session,) = re.findall(r"```console\n\$ (.*?)\n```", PAGE, re.DOTALL)
    asked, shown = re.split(r"(?<!\\)\n", session, maxsplit=1)
    (tmp_path / "notebooks").symlink_to(DOCS.parent / "notebooks")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(asked.replace("\\\n", ""))
    assert program == "lnkernel" and cli.main(arguments) == 0
    captured = capsys.readouterr()
    texts = [UNSTEADY.sub("", text) for text in (shown, captured.err + captured.out)]
    page, printed = (NUMBER.sub("#", text).split() for text in texts)
    assert page == printed
    page_numbers, printed_numbers = ([float(n) for n in NUMBER.findall(text)] for text in texts)
    assert page_numbers == pytest.approx(printed_numbers, rel=1e-3)
