"""More points: one machine, iteration, several processes; time, memory, accuracy, and a model of many hosts.

The claims: the posterior of all 40,132 proteins of the experiment's training set takes less than 8 GB and at most 1.3
times the processor time of its factorisation; every way to a posterior agrees with the square matrix, and conjugate
gradients stay within the error that they state.

    python -m benchmarks.scale [--quick] [--most 20000] [--publish] [--out out/scale]

Each size runs in a process of its own. What is in the folder already is not run again. The largest size takes a quarter
of an hour of two cores; `--most` leaves out what has more points. `--publish` writes the tables to docs/scale.md.
The first run builds GPyTorch's environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import scale_model
from benchmarks.claims import conclude

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scale.md"
ALL, MOST_MEMORY, MOST_TIME = 40_132, 8e9, 1.3
SIZES = ((2000, 5000, 10_000, 20_000, ALL), (1000, 2000))  # in full, and quick


class Results:
    """Pieces of the results, each in a file of its own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        path = self.folder / f"{name}.json"
        if not path.exists():
            print(f"{name} ...", flush=True)
            made = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(made, indent=1) + "\n")
        return json.loads(path.read_text())


def in_process(module: str, *arguments: object) -> Any:
    """What a script prints last, as JSON."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def one_machine(results: Results, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Half of a matrix at every size; a square one, and scikit-learn's and GPyTorch's Gaussian processes where they
    have room."""
    limits = {"half": ALL, "square": 10_000, "scikit-learn": 10_000, "GPyTorch": 10_000}
    cases = [(n, way) for n in sizes for way in limits]
    return [
        results.get(
            f"{way}-{n}",
            partial(in_process, "scale_one_machine", n, way, *["--choose-noise"] * (n == ALL)),
        )
        for n, way in cases
        if n <= limits[way]
    ]


def entries(results: Results, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    cores = range(1, len(os.sched_getaffinity(0)) + 1)
    return [
        results.get(f"entries-{n}-{c}", partial(in_process, "scale_entries", n, c))
        for n in sizes
        for c in cores
    ]


def processes(results: Results, n: int) -> list[dict[str, Any]]:
    """Strong scaling: the same points for more processes. Weak: as many operations for each."""
    cores = len(os.sched_getaffinity(0))
    rows = []
    for count in [c for c in (1, 2, 4) if c <= cores]:
        for kind, points in (("strong", n), ("weak", round(n * count ** (1 / 3)))):
            name = f"processes-{count}-{points}"
            row = results.get(name, partial(in_process, "scale_processes", count, points))
            rows.append({"kind": kind, **row})
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few points")
    parser.add_argument("--most", type=int, default=ALL, help="points, at most")
    parser.add_argument("--publish", action="store_true", help="write the tables to docs/scale.md")
    parser.add_argument("--out", type=Path, default=Path("out/scale"))
    options = parser.parse_args(arguments)
    from benchmarks import scale_iteration

    results = Results(options.out / "pieces")
    sizes = tuple(n for n in SIZES[options.quick] if n <= options.most)
    few = 1000 if options.quick else 4000
    machine = one_machine(results, sizes)
    noises = [0.1, 0.01] if options.quick else [0.1, 0.01, 0.001]
    found: dict[str, Any] = {
        "one machine": machine,
        "entries": entries(results, (1000, few) if options.quick else (1000, few, 10_000, 20_000)),
        "accuracy": results.get(
            f"accuracy-{few}", lambda: scale_iteration.accuracy(few, noise=0.1)
        ),
        "iteration": results.get(
            f"iteration-{few}",
            lambda: scale_iteration.iterations(few, noises, [few // 40, few // 10, few // 4]),
        ),
        "processes": processes(results, 2 * few),  # fewer points say little about many
    }
    largest = max((row for row in machine if row["way"] == "half"), key=lambda row: row["n"])
    entry = max(found["entries"], key=lambda row: (row["n"], row["cores"]))
    over = max(found["processes"], key=lambda row: (row["processes"], row["n"]))
    rate = over["n"] ** 3 / 3 / (over["wall"] * over["processes"])  # entries included
    constants = scale_model.Constants(entry=2e-9 * entry["processor_ns"], rate=rate)
    found["model"] = scale_model.model(constants)
    text = tables(found)
    print(text)
    if options.publish:
        publish(text)
    checks = {
        "every way agrees with the square matrix": all(
            row["mean"] <= max(1e-9, row["error"]) and row["likelihood_enclosed"]
            for row in found["accuracy"]
        ),
        "conjugate gradients are within their error": all(
            row["off"] <= row["error"] for row in found["iteration"]
        ),
    }
    if largest["n"] == ALL:
        checks["all proteins in less than 8 GB"] = largest["peak"] < MOST_MEMORY
        checks["at most 1.3 times the factorisation"] = (
            largest["whole_by_factorisation"] <= MOST_TIME
        )
    return conclude(checks, options.out / "scale.json", constants=vars(constants), **found)


def tables(found: dict[str, Any]) -> str:
    """All tables, in Markdown."""
    parts = [
        "**One machine**, noise 0.1, for all proteins that of the experiment. Seconds are of all processors "
        "together; `square` is LAPACK's `dpotrf`, `half` its packed `dpftrf`; the kernel of scikit-learn and GPyTorch "
        "is their own RBF, which is cheaper. Both factorise twice, for the likelihood and for predictions: the time of "
        "one factorisation is given, in brackets how many there are. GPyTorch is told to factorise; by itself it "
        "iterates at these sizes, to a residual of 0.01.",
        _table(
            "points | way | factorisation | whole posterior | whole / factorisation | rate of a core | peak memory | "
            "R² in and out of domain",
            (
                f"{r['n']:,} | {r['way']} | {r['factorisation']:.2f} s{_times(r['factorisations'])} | "
                f"{r['processor']['whole']:.2f} s | {r['whole_by_factorisation']:.2f} | "
                f"{r['rate'] / 1e9:.1f} Gflop/s | {r['peak'] / 1e9:.2f} GB | "
                f"{r['r2_inside']:.3f}, {r['r2_outside']:.3f}"
                for r in found["one machine"]
            ),
        ),
        "**An entry of the Gram matrix**, computed for half of the pairs and written for all.",
        _table(
            "points | cores | wall | processors",
            (
                f"{r['n']:,} | {r['cores']} | {r['wall_ns']:.1f} ns | {r['processor_ns']:.1f} ns"
                for r in found["entries"]
            ),
        ),
        "**Accuracy** beside the square matrix in float64; conjugate gradients state their error.",
        _table(
            "way | points | mean off by | error stated | variance off by | likelihood off by, relative",
            (
                f"{r['way']} | {r['n']:,} | {r['mean']:.1e} | {r['error']:.1e} | "
                f"{r['variance']:.1e} | {r['likelihood']:.1e}"
                for r in found["accuracy"]
            ),
        ),
        "**Conjugate gradients** on protein, to a tolerance of 0.001 of the targets' deviation.",
        _table(
            "points | noise | rank | iterations | processors | mean off by | error stated | log likelihood between",
            (
                f"{r['n']:,} | {r['noise']:g} | {r['rank']} | {r['iterations']} | {r['processor']:.1f} s | "
                f"{r['off']:.1e} | {r['error']:.1e} | {r['likelihood'][0]:.0f} and {r['likelihood'][1]:.0f}"
                for r in found["iteration"]
            ),
        ),
        "**Processes** of one core each, Cholesky's method.",
        _table(
            "scaling | processes | points | wall | longest processor time",
            (
                f"{r['kind']} | {r['processes']} | {r['n']:,} | {r['wall']:.1f} s | {r['processor']:.1f} s"
                for r in found["processes"]
            ),
        ),
        "**A model, not a measurement**: hosts of 32 cores and a network of 10 Gbit/s are assumed, the time of an "
        "entry and that of an operation over processes are those above.",
        _table(
            "way | points | hosts | memory of a host | time | of it entries | operations | network",
            (
                f"{r['way']} | {r['n']:,} | {r['hosts']} | {r['bytes_of_host'] / 1e9:.1f} GB | "
                f"{_duration(r['seconds'])} | {_duration(r['entries'])} | "
                f"{_duration(r['operations'])} | {_duration(r['network'])}"
                for r in found["model"]
            ),
        ),
    ]
    return "\n\n".join(parts)


def _table(head: str, rows: Any) -> str:
    line = "|" + "---|" * (head.count("|") + 1)
    return "\n".join([f"| {head} |", line, *(f"| {row} |" for row in rows)])


def _times(count: int) -> str:
    return "" if count == 1 else f" ({count})"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def publish(text: str) -> None:
    """The tables between the marks of the page."""
    marks = "<!-- tables of `make scale` -->", "<!-- end of tables -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(marks[0])}.*{re.escape(marks[1])}", re.DOTALL)
    PAGE.write_text(
        pattern.sub(lambda _: f"{marks[0]}\n\n{text}\n\n{marks[1]}", page), encoding="utf-8"
    )


if __name__ == "__main__":
    raise SystemExit(main())
