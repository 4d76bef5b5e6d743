"""Doctests in docstrings become blocks of code; Markdown would take `>>>` for a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

# from a prompt to the next empty line
EXAMPLE = re.compile(r"(?:(?<=\n)|\A)>>> .*?(?=\n\s*\n|\Z)", re.DOTALL)


class Examples(griffe.Extension):
    """Fences around every doctest."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
