"""A report as one HTML file: pictures inside, nothing from elsewhere, light and dark, any width."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from lnkernel.tables import Rows

TEMPLATE = "report.html"  # in templates/, beside this file


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
        self._parts: list[dict[str, Any]] = []
        self.paragraph(summary)

    def heading(self, text: str) -> None:
        """The beginning of a section."""
        self._parts.append({"kind": "heading", "text": text})

    def paragraph(self, text: str) -> None:
        """A piece of text."""
        self._parts.append({"kind": "paragraph", "text": text})

    def figure(self, png: Path, caption: str, alt: str) -> None:
        """A picture, put into the page; `alt` says what is seen, for those who do not see it."""
        content = base64.b64encode(png.read_bytes()).decode()
        self._parts.append({"kind": "figure", "png": content, "caption": caption, "alt": alt})

    def table(self, rows: Rows, caption: str) -> None:
        """A column for each key of the first row; numbers are rounded to 4 digits."""
        columns = list(rows[0])
        with_words = {c for c in columns if any(isinstance(row[c], str) for row in rows)}
        part = {"kind": "table", "columns": columns, "with_words": with_words, "rows": rows}
        self._parts.append(part | {"caption": caption})

    def printed(self, text: str) -> None:
        """What a program has printed, with its line breaks and columns."""
        self._parts.append({"kind": "printed", "text": text})

    def html(self, manifest: Mapping[str, Any] | None = None) -> str:
        """The page, with what the manifest of an experiment says at its end."""
        return (
            _environment()
            .get_template(TEMPLATE)
            .render(
                title=self.title,
                parts=self._parts,
                circumstances=[] if manifest is None else _describe_circumstances(manifest),
            )
        )


def _environment() -> jinja2.Environment:
    """The template's environment: where it is, and what it calls; it escapes all that is put into it."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lnkernel.experiments"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"split_at_code": split_at_code, "in_digits": in_digits}
    return made


def _describe_circumstances(manifest: Mapping[str, Any]) -> list[str]:
    """What the manifest says, in sentences."""
    lines = [f"The experiment {manifest['experiment']}"]
    lines[0] += (
        ", in its quick version: smaller than the paper's." if manifest.get("quick") else "."
    )
    if "seeds" in manifest:
        lines.append(f"Seeds of the networks: {', '.join(map(str, manifest['seeds']))}.")
    if "hardware" in manifest:
        made = manifest["hardware"]
        lines.append(
            f"{made['cores']} core{'' if made['cores'] == 1 else 's'} ({made['processor']}, {made['platform']}), "
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
    return lines


def split_at_code(text: str) -> list[str]:
    """Prose and code by turns, where code stands between backticks.

    >>> split_at_code("See `table.csv`.")
    ['See ', 'table.csv', '.']
    """
    return re.split(r"`([^`]+)`", text)


def in_digits(value: Any) -> tuple[str, str]:
    """What a cell shows: its text and, where it is a number times a power of 10, the exponent.

    Floating-point numbers get four digits, as one writes them: 0.5, 12,345, 6 × 10¹², ∞.

    >>> in_digits(12345.0), in_digits(-1.6e-4), in_digits("text"), in_digits(None)
    (('12,345', ''), ('−1.6 × 10', '−4'), ('text', ''), ('–', ''))
    """
    if value is None:
        return "–", ""
    if not isinstance(value, float):
        return str(value), ""
    if math.isnan(value):
        return "–", ""
    size, sign = abs(value), "−" if value < 0 else ""
    if math.isinf(size):
        return f"{sign}∞", ""
    if size == 0:
        return "0", ""
    if size < 1e-3 or size >= 1e7:
        digits, power = f"{size:.3e}".split("e")
        return f"{sign}{float(digits):g} × 10", str(int(power)).replace("-", "−")
    return f"{sign}{size:,.0f}" if size >= 1e3 else f"{sign}{size:.4g}", ""
