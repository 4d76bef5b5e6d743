"""The report of the benchmark suite: one Markdown file, one self-contained page, one JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnkernel.experiments.machine import hardware, versions
from lnkernel.experiments.report import Report

if TYPE_CHECKING:
    from benchmarks.suite import Outcome

TITLE = "Benchmarks of lnkernel"


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
    """The table for the terminal."""
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
        f"# {TITLE}\n\n{_circumstances(report)}\n",
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
    made = Report(TITLE, _circumstances(report))
    made.table([_row(outcome) for outcome in outcomes], "What is claimed, and whether it holds.")
    for outcome in outcomes:
        made.heading(f"{outcome.benchmark.name}: {outcome.status}")
        made.paragraph(f"The claim: {outcome.benchmark.claim}.")
        for figure in outcome.figures:
            made.figure(figure, figure.name, figure.stem)
        made.printed(outcome.text)
    return made.html()


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "benchmark": outcome.benchmark.name,
        "claim": outcome.benchmark.claim,
        "status": outcome.status,
        "seconds": round(outcome.seconds),
    }


def _circumstances(report: dict[str, Any]) -> str:
    made = report["hardware"]
    found = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    size = (
        "The short form of each benchmark"
        if report["quick"]
        else "Each benchmark in its usual size"
    )
    return (
        f"{size}, on {made['cores']} cores ({made['processor']}, {made['platform']}), devices: "
        f"{', '.join(made['devices'])}; {found}."
    )
