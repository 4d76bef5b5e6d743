"""Speed and memory of the tangent of a finite network, without its Jacobian.

The claims: the 20 largest eigenvalues of the kernel of a network with a million parameters on 5,000
inputs, by products alone (`t.spectrum(x, 20, method="lanczos")`), agree with those of the dense matrix
and take less memory than it does by `torch.func` and scipy; and `t.gram` takes no longer and no more
memory than `lnk.finite.empirical_ntk`, of this version and, with `--former`, of an earlier one.

    python -m benchmarks.tangent [--quick] [--former SRC] [--json out/tangent.json]

Memory is that of fresh processes, beyond a small call. PyTorch runs in an environment of its own
(`benchmarks/peers/`); its Jacobian of all inputs at once would take 40 GB, so it gets tiles.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lnkernel as lnk
from benchmarks.claims import concluded
from benchmarks.memory import peak
from benchmarks.peers.pytorch import TorchNTK
from benchmarks.timing import in_turns, seconds
from lnkernel.experiments.machine import hardware

DIMENSION, FEW, K = 64, 40, 20
AGREE = 1e-4  # relative to the largest eigenvalue, in float32
NO_WORSE = 1.1  # what two measurements of the same may differ by


class Case(NamedTuple):
    """A network with two hidden layers, and a number of inputs."""

    width: int
    n: int
    tile: int  # inputs whose Jacobian PyTorch makes at a time


def network(width: int) -> lnk.finite.Network:
    """965 wide it has a million parameters, in float32."""
    return lnk.finite.network(lnk.mlp(hidden=2, width=width), DIMENSION, width, rngs=0)


def points(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, DIMENSION)).astype(np.float32)


def parameters(net: Any) -> dict[str, Any]:
    """Copied out, under the names of `peers/inside/torch_ntk.py`."""
    dense = [layer for layer in net.layers if hasattr(layer, "kernel")]
    found: dict[str, Any] = {"W_std": 2**0.5, "b_std": 0.1, "norm": False}
    for i, layer in enumerate(dense):
        found |= {f"W{i}": np.asarray(layer.kernel[...]), f"b{i}": np.asarray(layer.bias[...])}
    return found


def ours(case: Case, method: str) -> tuple[float, int | None, np.ndarray]:
    """Seconds, bytes and eigenvalues: of the second call in a process, the first one being small."""
    prepared = (
        "import lnkernel as lnk, numpy as np\nfrom benchmarks.tangent import FEW, K, network, points\n"
        f"t, x = lnk.tangent(network({case.width})), points({case.n})\n"
        f"t.spectrum(x[:FEW], K, method={method!r})"
    )
    memory, took = peak(prepared, f"s = t.spectrum(x, K, method={method!r})")
    t, x = lnk.tangent(network(case.width)), points(case.n)
    return took, memory, t.spectrum(x, K, method=method).values


def theirs(case: Case) -> tuple[float, int | None, np.ndarray]:
    """The dense matrix by `torch.func` in tiles, and `scipy.linalg.eigh` of it."""
    import scipy

    net, x, threads = network(case.width), points(case.n), hardware()["cores"]
    copied = parameters(net)
    with TorchNTK() as peer:

        def evaluate(inputs: np.ndarray) -> float:
            peer.load(threads, x=inputs, **copied)
            return peer.time_tiles(case.tile)

        took = 0.0

        def whole() -> None:
            nonlocal took
            took = evaluate(x)

        memory = peer.peak(lambda: evaluate(x[:FEW]), whole)
        matrix = peer.kernel().astype(np.float64)
    values: list[np.ndarray] = []
    n = len(matrix)
    took += seconds(
        lambda: values.append(
            scipy.linalg.eigh(matrix, eigvals_only=True, subset_by_index=(n - K, n - 1))
        )
    )
    return took, memory, values[0][::-1]


def spectra(case: Case) -> tuple[dict[str, Any], dict[str, bool]]:
    """Ours by products, ours by the matrix, and theirs."""
    rows = {"lanczos": ours(case, "lanczos"), "dense": ours(case, "dense"), "torch": theirs(case)}
    truth = rows["torch"][2]
    apart = {name: float(np.abs(row[2] - truth).max() / truth[0]) for name, row in rows.items()}
    print(
        f"\nthe {K} largest eigenvalues, {lnk.tangent(network(case.width)).size:,} parameters, {case.n:,} inputs"
    )
    for name, (took, memory, _) in rows.items():
        print(f"{name:8} {took:8.2f} s {_megabytes(memory):>9}   apart {apart[name]:.1e}")
    small, large = rows["lanczos"][1], rows["torch"][1]
    checks = {
        f"eigenvalues agree to {AGREE:g} of the largest": max(apart.values()) < AGREE,
        "less memory than torch.func": small is None or large is None or small < large,
    }
    found = {
        name: {"seconds": took, "bytes": memory, "apart": apart[name]}
        for name, (took, memory, _) in rows.items()
    }
    return found, checks


def grams(
    width: int, n: int, rounds: int, former: Path | None
) -> tuple[dict[str, Any], dict[str, bool]]:
    """`t.gram` beside `empirical_ntk`, ours and perhaps that of a former version, each in processes
    of its own, in turns."""
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
        """Of a call after two that compile and warm up."""
        warm = "\n".join([call.format("x")] * 2)
        return peak(prepared(made, source) + warm, f"k = {call.format('x')}")[1]

    times = in_turns(*(partial(time_of, *each) for each in calls.values()), rounds=rounds)
    found = {}
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


def _megabytes(number: int | None) -> str:
    return "-" if number is None else f"{number / 1e6:.0f} MB"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--former", type=Path, help="folder of an earlier version's source, to be measured too"
    )
    parser.add_argument("--json", type=Path, default=Path("out/tangent.json"))
    options = parser.parse_args(arguments)
    case = Case(64, 200, 50) if options.quick else Case(965, 5000, 100)
    sizes = (64, 200, 1) if options.quick else (512, 1000, 5)
    kernel, checks = grams(*sizes, options.former)
    spectrum, more = spectra(case)
    if options.quick:  # sizes at which memory and time say nothing
        checks, more = {}, {name: holds for name, holds in more.items() if "agree" in name}
    about = {"quick": options.quick, "width": case.width, "n": case.n}
    return concluded(checks | more, options.json, **about, gram=kernel, spectrum=spectrum)


if __name__ == "__main__":
    raise SystemExit(main())
