"""`<!-- help: bound -->` on a page becomes what `lnkernel bound --help` prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import Any
from unittest.mock import patch

MARK = re.compile(r"<!-- help: ([\w ]*?) ?-->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    return MARK.sub(lambda found: _help(found[1].split()), markdown)


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
    return f"```text\n{printed.getvalue().rstrip()}\n```"
