"""The report of the benchmark suite: one Markdown file, one self-contained page, one JSON file."""

from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.suite import Outcome

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #137333; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --good: #81c995; --bad: #f28b82; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
pre { font-size: .8rem; line-height: 1.35; overflow-x: auto; border: 1px solid var(--line);
      border-radius: 6px; padding: .8rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
         vertical-align: top; }
.holds { color: var(--good); } .not { color: var(--bad); font-weight: 600; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
"""


def as_dict(outcomes: list[Outcome], machine: dict[str, Any], quick: bool) -> dict[str, Any]:
    """All numbers of all benchmarks."""
    return {
        "ok": all(outcome.ok for outcome in outcomes),
        "quick": quick,
        "machine": machine,
        "benchmarks": {
            outcome.benchmark.name: {
                "claim": outcome.benchmark.claim,
                "status": outcome.status,
                "seconds": round(outcome.seconds, 1),
                "results": outcome.results,
            }
            for outcome in outcomes
        },
    }


def table(outcomes: list[Outcome]) -> str:
    """For the terminal."""
    return "\n".join(
        f"{o.status:11} {o.seconds:7.0f} s  {o.benchmark.name}: {o.benchmark.claim}"
        for o in outcomes
    )


def write(outcomes: list[Outcome], report: dict[str, Any], out: Path) -> None:
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "report.md").write_text(markdown(outcomes, report, out))
    (out / "report.html").write_text(page(outcomes, report))


def markdown(outcomes: list[Outcome], report: dict[str, Any], out: Path) -> str:
    parts = [
        f"# Benchmarks of lnkernel\n\n{_circumstances(report)}\n",
        "| benchmark | claim | | seconds |\n|---|---|---|---:|",
        *(
            f"| {o.benchmark.name} | {o.benchmark.claim} | {o.status} | {o.seconds:.0f} |"
            for o in outcomes
        ),
    ]
    for o in outcomes:
        parts.append(f"\n## {o.benchmark.name}: {o.status}\n\n```\n{o.text}\n```\n")
        parts += [f"![{figure.stem}]({os.path.relpath(figure, out)})\n" for figure in o.figures]
    return "\n".join(parts)


def page(outcomes: list[Outcome], report: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{o.benchmark.name}">{o.benchmark.name}</a></td>'
        f"<td>{html.escape(o.benchmark.claim)}</td><td>{_status(o)}</td><td>{o.seconds:.0f} s</td></tr>"
        for o in outcomes
    )
    sections = "".join(
        f'<h2 id="{o.benchmark.name}">{o.benchmark.name}</h2>'
        f"<p>The claim: {html.escape(o.benchmark.claim)}. {_status(o)}</p>"
        f"<pre>{html.escape(o.text)}</pre>"
        + "".join(
            f'<p><img alt="{figure.stem}" src="data:image/png;base64,'
            f'{base64.b64encode(figure.read_bytes()).decode()}"></p>'
            for figure in o.figures
        )
        for o in outcomes
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Benchmarks of lnkernel</title><style>{STYLE}</style></head><body>"
        f"<h1>Benchmarks of lnkernel</h1><p>{html.escape(_circumstances(report))}</p>"
        f'<div class="wide"><table><tr><th>benchmark</th><th>claim</th><th></th><th>time</th></tr>'
        f"{rows}</table></div>{sections}</body></html>\n"
    )


def _status(outcome: Outcome) -> str:
    kind = "holds" if outcome.ok else "not"
    return f'<span class="{kind}">{outcome.status}</span>'


def _circumstances(report: dict[str, Any]) -> str:
    made = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    size = "The short form of each benchmark" if report["quick"] else "Each benchmark in full"
    return (
        f"{size}, on {made['cores']} cores, {', '.join(made['devices'])}, {made['platform']}, "
        f"Python {made['python']}; {versions}."
    )
