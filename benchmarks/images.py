"""Speed and memory of kernels of images, beside neural-tangents in the same run.

The claim: for three 3 x 3 convolutions on images of 32 x 32 pixels, in float64, an entry of Θ takes neural-tangents
0.6.5 at least five times the processor time, where all positions are pooled and where none are, without a norm and with
a LayerNorm over the channels behind every convolution. A pooled pair of 16 takes at most a tenth of the memory.

    python -m benchmarks.images [--publish] [--json out/images.json]

Processor time, not seconds: the two use a machine's cores differently, and thousands of images are spread over all of
them by either. Calls of the two libraries alternate, and the medians are compared. Memory is that of a process in
which 16 pairs are computed, beyond what it held after small images, for which both libraries compile programs too.
`--publish` writes the table to docs/images.md.
"""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import lnkernel as lnk
from benchmarks.claims import conclude
from benchmarks.memory import peak
from benchmarks.peers.kernel_peer import NeuralTangents
from benchmarks.timing import in_turns

PAGE = Path(__file__).resolve().parents[1] / "docs" / "images.md"
MARKS = "<!-- table of `make images` -->", "<!-- end of table -->"
PIXELS, SMALL = 32, 6
SIDE = 4  # images on each side of the matrix whose memory is measured
MOST_MEMORY = 1 / 10  # of the peer's
MANY = 12  # so many small images are computed by programs, as the peer computes fewer: the compiler is in memory then


@dataclass(frozen=True)
class Case:
    """A network, how many images stand on each side of the matrix, and how many times less work it has to be."""

    name: str
    norm: bool
    pool: bool
    images: int
    at_least: float

    @property
    def arch(self) -> lnk.Node:
        conv = lnk.Conv(64, (3, 3), W_std=2**0.5, b_std=0.1)
        block = (conv, lnk.LayerNorm(), lnk.Relu()) if self.norm else (conv, lnk.Relu())
        end = lnk.GlobalAvgPool() if self.pool else lnk.Flatten()
        return lnk.serial(*block * 3, end, lnk.Dense(1, W_std=2**0.5, b_std=0.1))


CASES = (
    Case("pooled", norm=False, pool=True, images=4, at_least=5.0),
    Case("pooled, LayerNorm", norm=True, pool=True, images=4, at_least=5.0),
    Case("not pooled", norm=False, pool=False, images=128, at_least=5.0),
    Case("not pooled, LayerNorm", norm=True, pool=False, images=128, at_least=5.0),
)


@dataclass(frozen=True)
class Result:
    """Processor seconds for one entry, medians over the warm calls; seconds of the first calls."""

    case: Case
    ours: float
    peer: float
    first: float
    peer_first: float
    worst_difference: float

    @property
    def ratio(self) -> float:
        return self.peer / self.ours

    @property
    def ok(self) -> bool:
        return self.ratio >= self.case.at_least


def pictures(count: int, seed: int, pixels: int = PIXELS) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, pixels, pixels, 3))


def measure(case: Case, rounds: int, peer: NeuralTangents) -> Result:
    x, x2 = pictures(case.images, 0), pictures(case.images, 1)
    theta = lnk.ntk(case.arch)

    def mine() -> float:
        start = time.process_time()
        theta(x, x2)
        return time.process_time() - start

    start = time.perf_counter()
    mine()
    first, peer_first = time.perf_counter() - start, peer.load(case.arch, x, x2)
    in_turns(mine, peer.processor_time, rounds=1)
    ours, theirs = in_turns(mine, peer.processor_time, rounds=rounds)
    matrix, its = np.asarray(theta(x, x2)), peer.kernels()["ntk"]
    entries = case.images**2
    return Result(
        case=case,
        ours=ours / entries,
        peer=theirs / entries,
        first=first,
        peer_first=peer_first,
        worst_difference=float(np.abs(matrix - its).max() / matrix.max()),
    )


@dataclass(frozen=True)
class Memory:
    """Bytes for each of 16 pairs of images, here and in neural-tangents."""

    case: Case
    ours: float
    peer: float

    @property
    def ok(self) -> bool:
        return self.ours <= MOST_MEMORY * self.peer


def memory_of_pairs(case: Case) -> Memory | None:
    """None where the system does not tell."""
    prepare = (
        "import lnkernel as lnk\nfrom benchmarks.images import CASES, MANY, SIDE, SMALL, pictures\n"
        f"theta = lnk.ntk(CASES[{CASES.index(case)}].arch)\n"
        "theta(pictures(MANY, 0, SMALL), pictures(MANY, 1, SMALL))"
    )
    ours, _ = peak(prepare, "theta(pictures(SIDE, 0), pictures(SIDE, 1))")
    small, large = ([pictures(SIDE, seed, n) for seed in (0, 1)] for n in (SMALL, PIXELS))
    with NeuralTangents() as peer:
        theirs = peer.peak(
            lambda: peer.load(case.arch, *small), lambda: peer.load(case.arch, *large)
        )
    return (
        None if ours is None or theirs is None else Memory(case, ours / SIDE**2, theirs / SIDE**2)
    )


def show(results: list[Result]) -> None:
    print(f"\nΘ, 3 convolutions, {PIXELS} x {PIXELS}, float64: processor time of one entry in ms\n")
    print(
        f"{'network':>22} {'lnkernel':>9} {'peer':>8} {'ratio':>6} {'claim':>6} {'first':>6} "
        f"{'peer 1st':>8} {'difference':>10}"
    )
    for r in results:
        print(
            f"{r.case.name:>22} {1e3 * r.ours:9.3f} {1e3 * r.peer:8.3f} {r.ratio:6.1f} "
            f"{r.case.at_least:6.1f} {r.first:6.2f} {r.peer_first:8.2f} {r.worst_difference:10.1e}"
            f"{'' if r.ok else '  BELOW'}"
        )
    print("\n`peer` is neural-tangents 0.6.5; `first` calls, in seconds, compile.")


def table(results: list[Result], memory: list[Memory]) -> str:
    """In Markdown."""
    bytes_of = {one.case: one for one in memory}
    lines = [
        "| network | processor time of an entry | of neural-tangents | ratio | memory of a pair | of neural-tangents |",
        "|---|---|---|---|---|---|",
    ]
    for r in results:
        one = bytes_of.get(r.case)
        held = f"{one.ours / 1e6:.1f} MB | {one.peer / 1e6:.1f} MB" if one else "|"
        lines.append(
            f"| {r.case.name} | {1e3 * r.ours:.3f} ms | {1e3 * r.peer:.3f} ms | {r.ratio:.1f} | {held} |"
        )
    return "\n".join(lines)


def publish(text: str) -> None:
    """The table between the marks of the page."""
    page, (start, end) = PAGE.read_text(encoding="utf-8"), MARKS
    pattern = re.compile(f"{re.escape(start)}.*{re.escape(end)}", re.DOTALL)
    made, places = pattern.subn(lambda _: f"{start}\n\n{text}\n\n{end}", page)
    if places != 1:
        raise SystemExit(f"{PAGE} has no place for the table, between {start} and {end}")
    PAGE.write_text(made, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="calls of each library")
    parser.add_argument("--publish", action="store_true", help="write the table to docs/images.md")
    parser.add_argument("--json", type=Path, default=Path("out/images.json"))
    options = parser.parse_args(arguments)
    with NeuralTangents() as peer:
        results = [measure(case, options.rounds, peer) for case in CASES]
    show(results)
    checks = {f"{r.case.name}: at least {r.case.at_least:g} times less work": r.ok for r in results}
    measured = [memory_of_pairs(case) for case in CASES if case.pool]
    memory = [one for one in measured if one is not None]
    for one in memory:
        print(
            f"memory of a pair, {one.case.name}: {one.ours / 1e6:.1f} MB, "
            f"of neural-tangents {one.peer / 1e6:.1f} MB"
        )
        checks[f"{one.case.name}: a tenth of the memory"] = one.ok
    if options.publish:
        publish(table(results, memory))
    report = {
        "results": [asdict(r) | {"ratio": r.ratio} for r in results],
        "memory": [asdict(one) for one in memory],
    }
    return conclude(checks, options.json, **report)


if __name__ == "__main__":
    raise SystemExit(main())
