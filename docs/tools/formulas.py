"""Formulas become MathML when the site is built: browsers show it without scripts or fonts of ours."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

# what pymdownx.arithmatex makes of $...$ and $$...$$
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>',
    re.DOTALL,
)
# a vertical bar is half of |x| here; as an operator between two terms it would get space around it
BAR = re.compile(r'<mo(?: stretchy="false")?>(&#x0007C;)</mo>')


def on_page_content(content: str, **_: Any) -> str:
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    formula = convert(html.unescape(found[2]).strip(), display=display)
    if "\\" in formula:
        raise ValueError(f"a command that latex2mathml does not know, in the formula {found[2]}")
    formula = BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', formula)
    return f'<div class="formula">{formula}</div>' if display == "block" else formula
