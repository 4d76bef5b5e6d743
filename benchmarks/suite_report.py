"""The report of the benchmark suite: one Markdown file, one self-contained page, one JSON file."""

from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnkernel.experiments import report as experiments
from lnkernel.experiments.machine import hardware, versions

if TYPE_CHECKING:
    from benchmarks.suite import Outcome

STYLE = """
pre { font-size: .8rem; line-height: 1.35; overflow-x: auto; border: 1px solid var(--line);
      border-radius: 8px; padding: .8rem; }
td, th { text-align: left; white-space: normal; }
:root { --good: #137333; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --good: #81c995; --bad: #f28b82; } }
.picture { margin: 1rem 0; } .picture img { max-width: 54rem; margin: 0 auto; }
.holds { color: var(--good); } .not { color: var(--bad); font-weight: 600; }
"""


def as_dict(outcomes: list[Outcome], quick: bool) -> dict[str, Any]:
    """All numbers of all benchmarks."""
    return {
        "ok": all(outcome.ok for outcome in outcomes),
        "quick": quick,
        "hardware": hardware(),
        "versions": versions(),
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
        + "".join(
            f'<div class="scroll picture" tabindex="0"><img alt="{figure.stem}" '
            f'src="data:image/png;base64,{base64.b64encode(figure.read_bytes()).decode()}"></div>'
            for figure in o.figures
        )
        + f"<pre>{html.escape(o.text)}</pre>"
        for o in outcomes
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Benchmarks of lnkernel</title><style>{experiments.STYLE}{STYLE}</style></head><body>"
        f"<h1>Benchmarks of lnkernel</h1><p>{html.escape(_circumstances(report))}</p>"
        f'<div class="scroll" tabindex="0"><table><tr><th>benchmark</th><th>claim</th><th></th><th>time</th></tr>'
        f"{rows}</table></div>{sections}</body></html>\n"
    )


def _status(outcome: Outcome) -> str:
    kind = "holds" if outcome.ok else "not"
    return f'<span class="{kind}">{outcome.status}</span>'


def _circumstances(report: dict[str, Any]) -> str:
    made = report["hardware"]
    found = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    size = "The short form of each benchmark" if report["quick"] else "Each benchmark in full"
    return (
        f"{size}, on {made['cores']} cores ({made['processor']}, {made['platform']}), devices: "
        f"{', '.join(made['devices'])}; {found}."
    )
