"""Tables for notebooks, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

TABLE = (
    "<table><thead><tr>{% for cell in head %}<th>{{ cell }}</th>{% endfor %}</tr></thead><tbody>"
    "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}"
    "</tbody></table>{% for note in notes %}<p>{{ note }}</p>{% endfor %}"
)


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A table with a head, and sentences below it; what is put into it is escaped."""
    return _template().render(head=head, rows=rows, notes=notes)


@cache
def _template() -> jinja2.Template:
    import jinja2  # at its first use, so that `import lnkernel` stays quick

    return jinja2.Environment(autoescape=True).from_string(TABLE)
