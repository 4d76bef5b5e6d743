"""The report as Markdown: the table of the documentation, and the few lines that the README quotes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- make peers-report: begin -->", "<!-- make peers-report: end -->"
HEAD = (
    "| beside | task | agreement | error against 50 digits: ours, its | times as fast | "
    "peak memory: ours, its | what it cannot do |\n|---|---|---|---|---|---|---|"
)
QUOTED_HEAD = (
    "| beside | task | agreement | error against 50 digits: ours, its | times as fast |\n"
    "|---|---|---|---|---|"
)


def table(report: dict[str, Any]) -> str:
    """The table of every row, the circumstances in which it was measured, and which claims failed."""
    lines = "\n".join(_line(row) for row in report["rows"])
    failed = "; ".join(claim for claim, holds in report["checks"].items() if not holds)
    return f"{HEAD}\n{lines}\n\n{circumstances(report)}{_remark(report)}" + (
        f"\n\n**Claimed, and not so in this run:** {failed}." if failed else ""
    )


def quote(report: dict[str, Any]) -> str:
    """The table for the README: the rows in which there is more than one thing to compare."""
    rows = (row for row in report["rows"] if row["ratio"] is not None)
    lines = "\n".join("| " + " | ".join(_cells(row)[:5]) + " |" for row in rows)
    return f"{QUOTED_HEAD}\n{lines}{_remark(report)}"


def circumstances(report: dict[str, Any]) -> str:
    apart = report.get("apart", {})
    peers = "; ".join(_list(v) for name, v in report["peers"].items() if name not in apart)
    runs = [_run(report, peers)]
    for name, run in apart.items():
        peer = _list(report["peers"][name])
        remark = f" {run['remark']}" if run["remark"] else ""
        runs.append(f"In a run of its own, {name}: {_run(run, peer)}{remark}")
    return "\n\n".join(runs)


def _run(run: dict[str, Any], peers: str) -> str:
    """Where something was measured, and with what."""
    hardware = run["hardware"]
    return (
        f"On {hardware['cores']} cores ({hardware['processor']}, {hardware['platform']}). "
        f"Ours: {_list(run['versions'])}. Theirs: {peers}."
    )


def _remark(report: dict[str, Any]) -> str:
    """What a reader has to know about this run beyond its numbers."""
    return f"\n\n**Note:** {report['remark']}" if report["remark"] else ""


def _list(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def replace_block(text: str, block: str) -> str:
    """A page with what stands between the two marks replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"expected {BEGIN} and {END} once, in this order")
    return pattern.sub(lambda _: f"{BEGIN}\n{block}\n{END}", text)


def publish(report: dict[str, Any], page: Path, readme: Path) -> None:
    """Write the tables into the documentation and the README."""
    page.write_text(replace_block(page.read_text(), table(report)))
    readme.write_text(replace_block(readme.read_text(), quote(report)))


def _line(row: dict[str, Any]) -> str:
    return "| " + " | ".join(_cells(row)) + " |"


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["peer"],
        row["task"],
        _small(row["agreement"]),
        _both(_small(row["error"]), _small(row["peer_error"])),
        "–" if row["ratio"] is None else f"{row['ratio']:.3g}",
        _both(_megabytes(row["memory"]), _megabytes(row["peer_memory"])),
        row["cannot"] or "–",
    ]


def _both(ours: str, its: str) -> str:
    return "–" if ours == its == "–" else f"{ours}, {its}"


def _small(number: float | None) -> str:
    return "–" if number is None else f"{number:.0e}"


def _megabytes(size: int | None) -> str:
    return "–" if size is None else f"{size / 1e6:,.0f} MB"
