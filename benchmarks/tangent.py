"""The spectrum of a network's tangent kernel without its Jacobian, and its matrix: time and memory.

The claims: the 20 largest eigenvalues of K = J Jᵀ of a network with a million parameters on 5,000 inputs
come from products alone (`t.spectrum(x, 20, method="lanczos")`) in less than a tenth of the memory of
the Jacobian, and agree with those of the dense matrix within their residuals and the rounding of
float32; on 1,000 inputs both agree with `torch.func` and scipy and take less time and memory; and
`t.gram` takes no longer and no more memory than `lnk.finite.empirical_ntk`, of this version and, with
`--former`, of an earlier one, whose revision in git or whose folder of sources is named. 7ed63bb is
the last revision in which `empirical_ntk` was no call of `t.gram`.

    python -m benchmarks.tangent [--quick] [--only gram] [--former 7ed63bb] [--publish]

Each is measured in processes of its own; memory is what a call takes beyond a small one. PyTorch has
an environment of its own (`benchmarks/peers/`) and makes the matrix in tiles: on 5,000 inputs its
Jacobians would be multiplied for a quarter of an hour. `--publish` writes the table of
docs/tangent.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

import lnkernel as lnk
from benchmarks.claims import conclude
from benchmarks.memory import ROOT, peak
from benchmarks.peers.pytorch import TorchNTK
from benchmarks.timing import seconds
from lnkernel.experiments.machine import hardware

DIMENSION, FEW, K = 784, 40, 20
CALLS = 7  # of a kernel, of which the quickest counts
TILE = 100  # inputs whose Jacobian PyTorch makes at a time
NO_WORSE = 1.1  # what two measurements of the same may differ by
ROUNDING = 1e-4  # of the largest eigenvalue, between two computations in float32
PAGE = ROOT / "docs" / "tangent.md"
MARKS = "<!-- make tangent: begin -->", "<!-- make tangent: end -->"


class Found(NamedTuple):
    """Eigenvalues by one method."""

    seconds: float
    memory: int | None  # bytes
    values: np.ndarray
    allowed: np.ndarray  # how far they may be off: residuals, and the resolution of float32


def network(width: int) -> lnk.finite.Network:
    """With three hidden layers: 600 wide it has 1.2 million parameters, in float32."""
    return lnk.finite.network(lnk.mlp(hidden=3, b_std=0.1), DIMENSION, width, rngs=0)


def points(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, DIMENSION)).astype(np.float32)


def parameters(net: Any) -> dict[str, Any]:
    """Copied out, under the names of `peers/inside/torch_ntk.py`."""
    dense = [layer for layer in net.layers if hasattr(layer, "kernel")]
    found: dict[str, Any] = {"W_std": 2**0.5, "b_std": 0.1, "norm": False}
    for i, layer in enumerate(dense):
        found |= {f"W{i}": np.asarray(layer.kernel[...]), f"b{i}": np.asarray(layer.bias[...])}
    return found


def ours(width: int, n: int, method: str) -> Found:
    """`Tangent.spectrum`, in a process of its own; the time is with compilation."""
    prepared = (
        "import lnkernel as lnk, numpy as np\nfrom benchmarks.tangent import FEW, K, network, points\n"
        f"t, x = lnk.tangent(network({width})), points({n})\nt.spectrum(x[:FEW], K, method={method!r})"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "spectrum.npz")
        call = (
            f"s = t.spectrum(x, K, method={method!r})\n"
            f"np.savez({str(file)!r}, values=s.values, allowed=s.residuals + s.resolution)"
        )
        memory, took = peak(prepared, call)
        with np.load(file) as found:
            return Found(took, memory, found["values"], found["allowed"])


def theirs(width: int, n: int) -> Found:
    """The dense matrix by `torch.func` in tiles, and the eigenvalues by scipy."""
    x, copied, threads = points(n), parameters(network(width)), hardware()["cores"]
    took = []
    with TorchNTK() as peer:

        def evaluate(inputs: np.ndarray) -> None:
            peer.load(threads, x=inputs, **copied)
            took.append(peer.time_tiles(TILE))

        memory = peer.peak(lambda: evaluate(x[:FEW]), lambda: evaluate(x))
        matrix = peer.kernel().astype(np.float64)
    values: list[np.ndarray] = []
    took.append(
        seconds(
            lambda: values.append(
                scipy.linalg.eigh(matrix, eigvals_only=True, subset_by_index=(n - K, n - 1))
            )
        )
    )
    largest = values[0][::-1]
    return Found(sum(took[1:]), memory, largest, np.full(K, ROUNDING * largest[0]))


def spectra(width: int, many: int, fewer: int) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """Ours by products and by the matrix on all inputs, and beside theirs on fewer."""
    size = lnk.tangent(network(width)).size
    found = {("lanczos", n): ours(width, n, "lanczos") for n in (many, fewer)}
    found |= {("dense", n): ours(width, n, "dense") for n in (many, fewer)}
    found[("torch.func and scipy", fewer)] = theirs(width, fewer)
    print(f"\nthe {K} largest eigenvalues, {size:,} parameters")
    for (name, n), one in found.items():
        print(f"{name:21} {n:6,} inputs {one.seconds:8.2f} s {_megabytes(one.memory):>9}")
    products, dense, peer = (
        found[("lanczos", many)],
        found[("dense", many)],
        found[("torch.func and scipy", fewer)],
    )
    both = [found[(name, fewer)] for name in ("lanczos", "dense")]
    checks = {
        "products and matrix agree within residuals and rounding": _agree(products, dense),
        "torch.func agrees": all(_agree(peer, one) for one in both),
        "products in less than a tenth of the Jacobian's memory": products.memory is None
        or products.memory < 4 * size * many / 10,
        "less time than torch.func": all(one.seconds < peer.seconds for one in both),
        "less memory than torch.func": all(
            one.memory is None or peer.memory is None or one.memory < peer.memory for one in both
        ),
    }
    rows = [
        {"method": name, "n": n, "seconds": one.seconds, "bytes": one.memory}
        for (name, n), one in found.items()
    ]
    return rows, checks


def _agree(one: Found, other: Found) -> bool:
    return bool((np.abs(one.values - other.values) <= one.allowed + other.allowed).all())


def grams(
    width: int, n: int, rounds: int, former: Path | None
) -> tuple[dict[str, Any], dict[str, bool]]:
    """`t.gram` beside `empirical_ntk`, ours and perhaps that of a former version, each in processes
    of its own, in turns."""
    calls: dict[str, tuple[str, str, Path | None]]
    calls = {"t.gram": ("t = lnk.tangent(net)", "t.gram({})", None)}
    calls |= {"empirical_ntk": ("", "lnk.finite.empirical_ntk(net, {})", None)}
    if former is not None:
        calls |= {"former empirical_ntk": ("", "lnk.finite.empirical_ntk(net, {})", former)}

    def prepared(made: str, source: Path | None) -> str:
        earlier = "" if source is None else f"import sys\nsys.path.insert(0, {str(source)!r})\n"
        return (
            f"{earlier}import lnkernel as lnk\nfrom benchmarks.tangent import FEW, network, points\n"
            f"net, x = network({width}), points({n})\n{made}\n"
        )

    def time_of(made: str, call: str, source: Path | None) -> float:
        """The seconds of the quickest of some calls after one that compiles.

        Other work on the machine makes calls longer, never shorter.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "seconds.txt")
            calls = (
                f"took = []\nfor _ in range({CALLS}):\n"
                f"    begin = time.perf_counter()\n    k = {call.format('x')}\n"
                "    took.append(time.perf_counter() - begin)\n"
                f"open({str(file)!r}, 'w').write(str(min(took)))"
            )
            peak(prepared(made, source) + call.format("x"), calls)
            return float(file.read_text())

    of_rounds = [[time_of(*each) for each in calls.values()] for _ in range(rounds)]
    times = np.min(of_rounds, axis=0).tolist()
    found: dict[str, dict[str, Any]] = {}
    print(f"\nthe kernel, width {width}, {n:,} inputs")
    for (name, (made, call, source)), took in zip(calls.items(), times, strict=True):
        small = prepared(made, source) + call.format("x[:FEW]")
        memory = peak(small, f"k = {call.format('x')}")[0]
        found[name] = {"seconds": took, "bytes": memory}
        print(f"{name:21} {took:8.3f} s {_megabytes(memory):>9}")
    checks = {}
    for name in list(calls)[1:]:
        ours, other = found["t.gram"], found[name]
        checks[f"t.gram no slower than {name}"] = ours["seconds"] <= NO_WORSE * other["seconds"]
        known = None not in (ours["bytes"], other["bytes"])
        larger = known and ours["bytes"] > NO_WORSE * other["bytes"]
        checks[f"t.gram no larger than {name}"] = not larger
    return found, checks


@contextlib.contextmanager
def source_of(former: str | None) -> Iterator[Path | None]:
    """The folder of an earlier version's sources: one that is named, or out of git."""
    if former is None or Path(former).is_dir():
        yield None if former is None else Path(former).resolve()
        return
    line = ["git", "archive", former, "src"]
    packed = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder, "src")


def publish(about: dict[str, Any]) -> None:
    """Both tables, in place of those between the marks of the page."""
    machine = hardware()
    lines = ["| 20 largest eigenvalues | inputs | time | memory |", "|---|---|---|---|"]
    lines += [
        f"| {SPOKEN[row['method']]} | {row['n']:,} | {row['seconds']:.1f} s | "
        f"{_megabytes(row['bytes'])} |"
        for row in about["spectrum"]
    ]
    lines += ["", "| kernel of 1,000 inputs | time | memory |", "|---|---|---|"]
    lines += [
        f"| {SPOKEN[name]} | {row['seconds']:.3f} s | {_megabytes(row['bytes'])} |"
        for name, row in about["gram"].items()
    ]
    lines += ["", f"On {machine['cores']} cores ({machine['processor']})."]
    begin, end = MARKS
    page = PAGE.read_text()
    assert begin in page and end in page, f"{PAGE} has no marks for the tables"
    inner = "\n".join([begin, *lines, end])
    PAGE.write_text(re.sub(f"{begin}.*{end}", lambda _: inner, page, flags=re.DOTALL))


SPOKEN = {
    "lanczos": '`t.spectrum(x, 20, method="lanczos")`, products alone',
    "dense": '`t.spectrum(x, 20, method="dense")`, the matrix in tiles',
    "torch.func and scipy": "`torch.func` in tiles, `scipy.linalg.eigh`",
    "t.gram": "`t.gram(x)`",
    "empirical_ntk": "`lnk.finite.empirical_ntk(network, x)`, which calls it",
    "former empirical_ntk": "`empirical_ntk` as it was before `t.gram`",
}


def _megabytes(number: int | None) -> str:
    return "-" if number is None else f"{number / 1e6:.0f} MB"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", choices=("gram", "spectrum"), help="one of the two parts")
    parser.add_argument(
        "--former", help="revision or folder of an earlier version's source, to be measured too"
    )
    parser.add_argument(
        "--publish", action="store_true", help="write the tables of docs/tangent.md"
    )
    parser.add_argument("--json", type=Path, default=Path("out/tangent.json"))
    options = parser.parse_args(arguments)
    if options.publish and (options.quick or options.only):
        parser.error("--publish is of a whole run")
    about: dict[str, Any] = {"quick": options.quick}
    checks: dict[str, bool] = {}
    if options.only != "spectrum":
        sizes = (64, 200, 1) if options.quick else (512, 1000, 3)
        with source_of(options.former) as former:
            about["gram"], checks = grams(*sizes, former)
    if options.only != "gram":
        sizes = (32, 300, 200) if options.quick else (600, 5000, 1000)
        about["spectrum"], more = spectra(*sizes)
        checks |= more
    if options.quick:  # sizes at which time and memory say nothing
        checks = {name: holds for name, holds in checks.items() if "agree" in name}
    if options.publish:
        publish(about)
    return conclude(checks, options.json, **about)


if __name__ == "__main__":
    raise SystemExit(main())
