"""The claim: every kernel is exact to a few units in the last place, wherever the inputs lie.

    python -m benchmarks.accuracy                # all networks
    python -m benchmarks.accuracy --numpy        # without the programs of large matrices
    python -m benchmarks.accuracy --every-way    # with all of them, hours of compilation
    python -m benchmarks.accuracy --quick        # one network of each kind

Every network is asked for rectangular and symmetric matrices and for diagonals, few points at a time, as NumPy
computes them; and once, for all points at once, for a symmetric matrix by the program of large ones, whose pairs go
the quick and the careful way. What that leaves out, `--every-way` does: rectangular matrices and diagonals by
programs, and programs that take minutes to compile.

Errors are relative to sqrt(Theta(x,x) Theta(x2,x2)), and likewise for K, against an evaluation
with 50 digits that shares nothing with the library (`tests/oracle.py`). The exit code is 1 if
any error exceeds its bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

# The oracle and the table of cases belong to the tests, which are not a package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import activation_cases
import cases
import oracle

import lnkernel as lnk
from lnkernel.arch.facts import needs_compiler
from lnkernel.gram import eager

OUT = Path("out/accuracy.json")
Found = dict[str, Any]  # matrices, by our names of the kernels
KERNELS = {"ntk": "Theta", "nngp": "K"}  # our name, and the oracle's
LARGEST = float(np.finfo(np.float64).max)
TOGETHER = 50  # pairs in a symmetric matrix: as many as NumPy computes
SMALLEST = 1e-290  # below it the last digits of a float64 begin to be missing


class Error(NamedTuple):
    """How far one number is off, and how far it may be."""

    kernel: str
    way: str  # how the library was asked
    tag: str  # the class of the pair
    error: float
    bound: float

    @property
    def ok(self) -> bool:
        return self.error <= self.bound


class Exact(NamedTuple):
    """A pair and its kernels to 50 digits."""

    pair: cases.Pair
    values: oracle.Pair

    @property
    def is_live(self) -> bool:
        return bool(np.any(self.pair.x) and np.any(self.pair.x2))

    @property
    def size(self) -> Any:
        """The largest of the values on the diagonal."""
        v = self.values
        return max(v.K11, v.K22, v.Theta11, v.Theta22)


Way = Callable[[cases.Case, Sequence[Exact]], Iterable[Error]]


def exact(arch: lnk.Node, pairs: Iterable[cases.Pair]) -> list[Exact]:
    """`oracle.pair` of each; most share their first point, so the diagonals are kept."""
    ends: dict[bytes, tuple[Any, Any]] = {}

    def end(x: Any) -> tuple[Any, Any]:
        if x.tobytes() not in ends:
            ends[x.tobytes()] = oracle.kernels(arch, x, x)
        return ends[x.tobytes()]

    def values(x: Any, x2: Any) -> oracle.Pair:
        (K11, Theta11), (K22, Theta22) = end(x), end(x2)
        return oracle.Pair(*oracle.kernels(arch, x, x2), K11, K22, Theta11, Theta22)

    return [Exact(pair, values(pair.x, pair.x2)) for pair in pairs]


def errors(case: cases.Case, pairs: Sequence[cases.Pair]) -> list[Error]:
    """The errors of both kernels at all pairs, by each way of asking for them."""
    rows = exact(case.arch, pairs)
    inside = [row for row in rows if row.size < LARGEST]
    found: list[Error] = []
    for way, left in itertools.product(ways_of(case), _batches(case, inside)):
        while left:
            try:
                found.extend(way(case, left))
                break
            except lnk.errors.KernelOverflowError:
                left, lost = _without_overflow(case, left)
                found.extend(lost)
    return found + [_expected_overflow(case, row) for row in rows if row.size > LARGEST]


def ways_of(case: cases.Case) -> list[Way]:
    """The ways of asking for the kernels of this network."""
    if case.programs == "every":
        few: list[Way] = [rectangular, symmetric]
        return few + [partial(by_program, way) for way in few]
    if needs_compiler(case.arch):  # there is one program for few points and for many
        return [rectangular, diagonal]
    return [rectangular, symmetric] + (
        [partial(by_program, matrix)] if case.programs == "one" else []
    )


def _batches(case: cases.Case, rows: list[Exact]) -> list[list[Exact]]:
    """All pairs at once; or some at a time, of similar lengths, because n pairs have n² entries."""
    size = case.batch or max(1, len(rows))
    if case.batch is not None:
        rows = sorted(rows, key=lambda row: row.pair.size)
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def rectangular(case: cases.Case, rows: Sequence[Exact]) -> Iterator[Error]:
    """The matrices by `kernel(x, x2)`, where no point is zero: that has a faster form of its own."""
    rows = [row for row in rows if row.is_live]
    if not rows:
        return
    x, x2 = (np.stack(side) for side in zip(*(row.pair[1:] for row in rows), strict=True))
    got = _by_name(case, kernel_of(case)(x, x2))
    for i, row in enumerate(rows):
        yield from _compare(case, row, "x, x2", got, (i, i))


def symmetric(case: cases.Case, rows: Sequence[Exact]) -> Iterator[Error]:
    """The matrices by `kernel(x)`, a hundred points in one array, and by `kernel.diagonal(x)`."""
    for start in range(0, len(rows), TOGETHER):
        yield from _symmetric(case, rows[start : start + TOGETHER])


def matrix(case: cases.Case, rows: Sequence[Exact]) -> Iterator[Error]:
    """The matrices by `kernel(x)` alone, all points in one array."""
    points = np.concatenate([np.stack(row.pair[1:]) for row in rows])
    got = _by_name(case, kernel_of(case)(points))
    for i, row in enumerate(rows):
        first, second = 2 * i, 2 * i + 1
        yield from _compare(case, row, "x", got, (first, second))
        for place, point in ((first, row.pair.x), (second, row.pair.x2)):
            yield from _compare(case, _with_itself(row, point), "x, x", got, (place, place))


def diagonal(case: cases.Case, rows: Sequence[Exact]) -> Iterator[Error]:
    """The kernels of every point with itself, by `kernel.diagonal(x)` alone."""
    points = np.concatenate([np.stack(row.pair[1:]) for row in rows])
    ends = _by_name(case, kernel_of(case).diagonal(points))
    for i, row in enumerate(rows):
        for place, point in ((2 * i, row.pair.x), (2 * i + 1, row.pair.x2)):
            yield from _compare(case, _with_itself(row, point), "diagonal", ends, place)


def _symmetric(case: cases.Case, rows: Sequence[Exact]) -> Iterator[Error]:
    points = np.concatenate([np.stack(row.pair[1:]) for row in rows])
    got = _by_name(case, kernel_of(case)(points))
    for i, row in enumerate(rows):
        yield from _compare(case, row, "x", got, (2 * i, 2 * i + 1))
    yield from diagonal(case, rows)


def kernel_of(case: cases.Case) -> Any:
    """Both kernels, or the only one that there is."""
    return (
        lnk.kernels(case.arch) if len(case.kernels) == 2 else getattr(lnk, *case.kernels)(case.arch)
    )


def _by_name(case: cases.Case, found: Any) -> Found:
    return found._asdict() if isinstance(found, lnk.Kernels) else dict.fromkeys(case.kernels, found)


def by_program(
    way: Way,
    case: cases.Case,
    rows: Sequence[Exact],
) -> list[Error]:
    """One of these ways by the programs of large matrices; otherwise few points are left to NumPy."""
    with eager.without_numpy():
        return [e._replace(way=f"{e.way}, compiled") for e in way(case, rows)]


def _with_itself(row: Exact, point: Any) -> Exact:
    v = row.values
    K, Theta = (v.K11, v.Theta11) if point is row.pair.x else (v.K22, v.Theta22)
    pair = row.pair._replace(x=point, x2=point)
    return Exact(pair, oracle.Pair(K, Theta, K, K, Theta, Theta))


def _compare(case: cases.Case, row: Exact, way: str, got: Found, place: Any) -> Iterator[Error]:
    for kernel in case.kernels:
        name, value = KERNELS[kernel], float(got[kernel][place])
        error = math.inf
        if math.isfinite(value):
            scale = max(getattr(row.values, f"{name}_scale"), SMALLEST)
            error = float(abs(getattr(row.values, name) - oracle.mpf(value)) / scale)
        yield Error(kernel, way, row.pair.tag, error, case.bound(row.pair))


def _without_overflow(case: cases.Case, rows: Sequence[Exact]) -> tuple[list[Exact], list[Error]]:
    """The rows that can be evaluated; every other row gets an infinite error, because all should be."""
    lost = [row for row in rows if _overflows(case, row)]
    if not lost:
        raise AssertionError("an overflow that no single point causes")
    kept = [row for row in rows if not any(row is other for other in lost)]
    tag = "overflow, {} (exact value in range)"
    return kept, [
        Error(case.kernels[0], "overflow", tag.format(row.pair.tag), math.inf, case.bound(row.pair))
        for row in lost
    ]


def _expected_overflow(case: cases.Case, row: Exact) -> Error:
    """No error where the library refuses a value beyond the range of float64, as it should."""
    error = 0.0 if _overflows(case, row) else math.inf
    return Error(
        case.kernels[0], "overflow", f"no overflow, {row.pair.tag}", error, case.bound(row.pair)
    )


def _overflows(case: cases.Case, row: Exact) -> bool:
    try:
        kernel_of(case).diagonal(np.stack(row.pair[1:]))
    except lnk.errors.KernelOverflowError:
        return True
    return False


# ---------------------------------------------------------------- the table


class Line(NamedTuple):
    """One network in the table: its worst pair of either kernel."""

    architecture: str
    depth: int
    ntk: Error | None  # where a function jumps there is none
    nngp: Error
    seconds: float

    @property
    def ok(self) -> bool:
        return self.nngp.ok and (self.ntk is None or self.ntk.ok)

    def __str__(self) -> str:
        ends = "  ".join(
            f"{e.error:8.1e}  {f'{e.tag} ({e.way})':44.44}" if e else f"{'does not exist':54}"
            for e in (self.ntk, self.nngp)
        )
        verdict, bound = "ok" if self.ok else "FAIL", (self.ntk or self.nngp).bound
        return f"{self.architecture:37} {self.depth:5}  {ends}  {bound:7.0e}  {verdict}"

    def as_dict(self) -> dict[str, Any]:
        """The line for JSON, which knows no infinity: it becomes null."""
        head = {"architecture": self.architecture, "depth": self.depth, "ok": self.ok}
        worst = {"ntk": self.ntk, "nngp": self.nngp}
        return head | {
            name: e._asdict() | {"error": e.error if math.isfinite(e.error) else None}
            for name, e in worst.items()
            if e is not None
        }


def line(name: str, case: cases.Case, d: int, seed: int = 0) -> Line:
    """Measure one network on `cases.pairs_of` it."""
    start = time.perf_counter()
    found = errors(case, cases.pairs_of(case, np.random.default_rng(seed), d))
    worst = {
        kernel: max((e for e in found if e.kernel == kernel), key=lambda e: e.error / e.bound)
        for kernel in case.kernels
    }
    label = name if d == 3 else f"{name}, d={d}"
    seconds = time.perf_counter() - start
    return Line(label, case.depth, worst.get("ntk"), worst["nngp"], seconds)


def _line(task: tuple[str | None, str, int]) -> Line:
    """In a process of its own, which gets the network by its name: a user's function cannot be sent there."""
    programs, name, d = task
    case = all_networks()[name]
    return line(name, case if programs is None else case._replace(programs=programs), d)


def all_networks() -> dict[str, cases.Case]:
    """All networks, by name."""
    return cases.architectures() | cases.smooth() | activation_cases.table()


def jobs(quick: bool, only: str | None) -> list[tuple[str, cases.Case, int]]:
    """(name, case, dimension) of every line of the table."""
    table = all_networks()
    chosen = [name for name in table if not quick or name in cases.FEW]
    rows = [(name, table[name], 3) for name in chosen]
    if not quick:
        rows += [(n, table[n], d) for d, names in cases.OTHER_DIMENSIONS.items() for n in names]
    return [row for row in rows if only is None or only in row[0]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and write it as JSON; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one network of each kind")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--numpy", action="store_true", help="few points at a time, no programs")
    which.add_argument("--every-way", action="store_true", help="all programs, slow ones too")
    parser.add_argument("--only", help="networks whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="networks measured at the same time")
    parser.add_argument("--out", type=Path, default=OUT, help="the JSON file")
    options = parser.parse_args(arguments)

    heads = "".join(f"{f'of {k}':8}  {'where':46}" for k in ("Θ", "K"))
    tqdm.write(f"{'architecture':37} depth  {heads}{'bound':7}", file=sys.stdout)
    lines = []
    rows = jobs(options.quick, options.only)
    programs = "none" if options.numpy else "every" if options.every_way else None
    tasks = [(programs, name, d) for name, _, d in rows]
    # processes of their own, each for few networks: compiled programs take memory
    # and most of the time, so that they are kept on disk for the next run
    with multiprocessing.get_context("spawn").Pool(
        options.jobs, initializer=lnk.store_programs, maxtasksperchild=8
    ) as pool:
        for found in tqdm(pool.imap(_line, tasks), total=len(tasks), unit="network"):
            lines.append(found)
            tqdm.write(str(found), file=sys.stdout)
    failures = sum(not line.ok for line in lines)
    print(f"\n{len(lines)} networks, {failures} beyond their bound; written to {options.out}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {"ok": not failures, "lines": [line.as_dict() for line in lines]}
    options.out.write_text(json.dumps(report, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
