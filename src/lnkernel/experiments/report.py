"""A report as one HTML file: pictures inside, nothing from elsewhere, light and dark, any width."""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lnkernel.experiments.tables import Rows

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5a6472; --paper: #fff; --line: #d9dee5;
        --shade: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #a3adba; --paper: #14181e; --line: #353d48; --shade: #1d232b; }
}
* { box-sizing: border-box; }
body { font: 17px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 44rem; }
code { font-size: .9em; background: var(--shade); padding: .1em .3em; border-radius: 4px; }
figure { margin: 1.2rem 0; }
figcaption { margin-top: .4rem; }
figcaption, .soft { color: var(--soft); font-size: .88rem; max-width: 44rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px;
          width: fit-content; max-width: 100%; }
.picture { background: #fff; width: 100%; }
img { display: block; width: 100%; height: auto; min-width: 38rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
th { background: var(--shade); font-weight: 600; white-space: normal; vertical-align: bottom; }
tr:last-child td { border-bottom: 0; }
th.text, td.text { text-align: left; }
figure.sheet figcaption { margin-bottom: .4rem; }
pre { font-size: .8rem; line-height: 1.35; padding: .8rem; margin: 0; }
"""


class Report:
    """Headings, paragraphs, figures and tables, in the order in which they are added.

    In paragraphs and captions text between backticks is shown as code; all else is taken literally.

    >>> report = Report("Twice two", "A short demonstration.")
    >>> report.heading("Result")
    >>> report.table([{"n": 2, "n²": 4}], "Squares.")
    >>> "<td>4</td>" in report.html({"experiment": "squares"})
    True
    """

    def __init__(self, title: str, summary: str):
        self.title = title
        self._parts = [f"<h1>{html.escape(title)}</h1>"]
        self.paragraph(summary)

    def heading(self, text: str) -> None:
        """The beginning of a section."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """A piece of text."""
        self._parts.append(f"<p>{_marked(text)}</p>")

    def figure(self, png: Path, caption: str, alt: str) -> None:
        """A picture, put into the page; `alt` says what is seen, for those who do not see it."""
        content = base64.b64encode(png.read_bytes()).decode()
        self._parts.append(
            '<figure><div class="scroll picture" tabindex="0">'
            f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{content}"></div>'
            f"<figcaption>{_marked(caption)}</figcaption></figure>"
        )

    def table(self, rows: Rows, caption: str) -> None:
        """A column for each key of the first row; numbers are rounded to 4 digits."""
        words = {c: any(isinstance(row[c], str) for row in rows) for c in rows[0]}
        kind = {c: ' class="text"' if is_text else "" for c, is_text in words.items()}
        head = "".join(f"<th{kind[c]}>{html.escape(c)}</th>" for c in kind)
        body = "".join(
            "<tr>" + "".join(f"<td{kind[c]}>{_cell(row[c])}</td>" for c in kind) + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<figure class="sheet"><figcaption>{_marked(caption)}</figcaption>'
            f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div></figure>"
        )

    def printed(self, text: str) -> None:
        """What a program has printed, with its line breaks and columns."""
        self._parts.append(f'<div class="scroll" tabindex="0"><pre>{html.escape(text)}</pre></div>')

    def html(self, manifest: Mapping[str, Any] | None = None) -> str:
        """The page, with what the manifest of an experiment says at its end."""
        made = "" if manifest is None else f"<h2>How this was made</h2>{_circumstances(manifest)}"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style></head><body>\n"
            + "\n".join(self._parts)
            + f"\n{made}</body></html>\n"
        )


def _circumstances(manifest: Mapping[str, Any]) -> str:
    lines = [f"The experiment {manifest['experiment']}"]
    lines[0] += (
        ", in its quick version: smaller than the paper's." if manifest.get("quick") else "."
    )
    if "seeds" in manifest:
        lines.append(f"Seeds of the networks: {', '.join(map(str, manifest['seeds']))}.")
    if "hardware" in manifest:
        made = manifest["hardware"]
        lines.append(
            f"{made['cores']} cores ({made['processor']}, {made['platform']}), "
            f"devices: {', '.join(made['devices'])}."
        )
    if "seconds" in manifest:
        earlier = sum(piece["stored"] for piece in manifest["pieces"])
        parts = f"{len(manifest['pieces'])} pieces, {earlier} of them from an earlier run"
        lines.append(f"{manifest['seconds']:.0f} seconds up to {manifest['ended']}; {parts}.")
    if "versions" in manifest:
        found = manifest["versions"].items()
        lines.append(", ".join(f"{name} {number}" for name, number in found) + ".")
    lines.append("The same in full: manifest.json, beside this page.")
    return "".join(f'<p class="soft">{html.escape(line)}</p>' for line in lines)


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return _number(value)
    return html.escape(str(value))


def _number(value: float) -> str:
    """Four digits, as one writes them: 0.5, 12,345, 6 × 10¹², ∞."""
    if math.isnan(value):
        return "–"
    size, sign = abs(value), "−" if value < 0 else ""
    if math.isinf(size):
        return f"{sign}∞"
    if size < 1e-3 or size >= 1e7:
        digits, power = f"{size:.3e}".split("e")
        text = f"{float(digits):g} × 10<sup>{int(power)}</sup>".replace("<sup>-", "<sup>−")
        return f"{sign}{text}" if size else "0"
    return f"{sign}{size:,.0f}" if size >= 1e3 else f"{sign}{size:.4g}"
