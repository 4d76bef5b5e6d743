"""The help of the commands on a page: after `<!-- help: bound -->` what `lnkernel bound --help` prints.

    python docs/tools/command_help.py

writes it into docs/command-line.md, so that the file can be read as it is. The site is built with
what the commands print at that time.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

PAGE = Path(__file__).parents[1] / "command-line.md"
MARK = re.compile(r"<!-- help: ([\w ]*?) ?-->(?:\n\n```text\nusage: .*?\n```)?", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return MARK.sub(_marked_help, markdown)


def _marked_help(found: re.Match[str]) -> str:
    command = found[1].split()
    mark = " ".join(["<!-- help:", *command, "-->"])
    return f"{mark}\n\n```text\n{_help(command)}\n```"


def _help(command: list[str]) -> str:
    from lnkernel.cli import main

    printed = io.StringIO()
    plain = {"COLUMNS": "80", "NO_COLOR": "1"}
    with patch.dict(os.environ, plain), contextlib.redirect_stdout(printed):
        try:
            main([*command, "--help"])
        except SystemExit as end:
            if end.code:
                raise ValueError(f"lnkernel has no command {' '.join(command)!r}") from None
    return printed.getvalue().rstrip()


if __name__ == "__main__":
    PAGE.write_text(on_page_markdown(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
