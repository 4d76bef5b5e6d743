"""All benchmarks in one report: Markdown, HTML and JSON.

    python -m benchmarks.suite --quick             # the short form of each, on two cores
    python -m benchmarks.suite --only accuracy,width

Each runs as a process of its own, one after the other, and its table, figures and numbers go into
`out/bench/`. The exit code is 1 if a claim fails or a benchmark cannot run; the report says which,
and why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks import suite_report
from benchmarks.suite_benchmarks import BENCHMARKS, Benchmark

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Outcome:
    """What a benchmark said, and whether its claims hold."""

    benchmark: Benchmark
    status: str  # "holds", "FAILED", or "did not run"
    seconds: float
    text: str
    results: Any
    figures: tuple[Path, ...]

    @property
    def ok(self) -> bool:
        return self.status == "holds"


def run(benchmark: Benchmark, out: Path, quick: bool, seed: int, echo: IO[str]) -> Outcome:
    """Run one script. What it prints is shown and kept; its progress bar is only shown."""
    folder = out / benchmark.name
    folder.mkdir(parents=True, exist_ok=True)
    results, command = folder / benchmark.results, benchmark.command(folder, quick, seed)
    for old in (results, *folder.glob("*.png")):  # an earlier run's would speak for this one
        old.unlink(missing_ok=True)
    begin = time.perf_counter()
    with (
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
        ) as process,
        ThreadPoolExecutor() as threads,  # both at once, so that neither pipe fills up
    ):
        complaints = threads.submit(_follow, process.stderr, sys.stderr)
        text = _follow(process.stdout, echo)
        code = process.wait()
    seconds = time.perf_counter() - begin
    found = json.loads(results.read_text()) if results.exists() else None
    if found is None:
        text += f"\n{complaints.result().strip()[-2000:]}\n"
    figures = tuple(sorted(folder.glob("*.png"), key=lambda path: path.stat().st_mtime_ns))
    return Outcome(benchmark, _status(code, found), seconds, text.strip("\n"), found, figures)


def _status(code: int, found: Any) -> str:
    if found is None:
        return "did not run"
    if code == 0:
        return "holds"
    peers = found.get("peers", {})  # of `against_peers`: the versions of each peer that ran
    absent = {f"{peer} runs" for peer, versions in peers.items() if not versions}
    failed = {claim for claim, holds in found.get("checks", {}).items() if not holds}
    return "did not run" if absent and failed <= absent else "FAILED"


def _follow(pipe: Any, echo: IO[str]) -> str:
    """All that comes through the pipe, shown as soon as it comes: a progress bar does not end its lines."""
    parts = []
    while part := pipe.read1():
        parts.append(part)
        print(part.decode(errors="replace"), end="", file=echo, flush=True)
    return b"".join(parts).decode(errors="replace")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument("--only", help="some of them, e.g. accuracy,width")
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the networks in bound_vs_output"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder of the report")
    parser.add_argument(
        "--prog", default=parser.prog, help=argparse.SUPPRESS
    )  # who says what is wrong
    options = parser.parse_args(arguments)
    names = [benchmark.name for benchmark in BENCHMARKS]
    wanted = names if options.only is None else [each.strip() for each in options.only.split(",")]
    unknown = [repr(name) for name in wanted if name not in names]
    if unknown:
        came, known = ", ".join(unknown), ", ".join(names)
        parser.prog = options.prog
        parser.error(f"argument --only: expected benchmarks, got {came}. There are {known}.")
    out = options.out.resolve()
    echo = sys.stderr if options.json else sys.stdout
    outcomes = []
    for benchmark in BENCHMARKS:
        if benchmark.name in wanted:
            print(f"\n=== {benchmark.name}: {benchmark.claim}", file=echo, flush=True)
            outcomes.append(run(benchmark, out, options.quick, options.seed, echo))
    report = suite_report.as_dict(outcomes, options.quick)
    suite_report.write(outcomes, report, out)
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print(f"\n{suite_report.table(outcomes)}\n\nreport: {out / 'report.html'}")
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
