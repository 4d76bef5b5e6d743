"""Speed of training an ensemble, beside the same ensemble trained one by one in PyTorch.

The claim: on two cores, in float32, 5 networks `mlp(hidden=2, width=128, norm="first")` take 3,000
full-batch steps of Adam on 100 points, in 1 and in 9 dimensions, in at most 15 s after compilation
and in at most a third of the time of PyTorch, and the progress bar costs less than 5 % of it.

    python -m benchmarks.training [--steps 3000] [--json out/training.json]

Both start from the same parameters, in standard parametrisation with He's initialisation. PyTorch
runs in an environment of its own, with the threads and the kind of Adam that
are fastest in a trial before. Calls of the two alternate, so that a busy moment of the machine
hits both. With `--also` PyTorch is timed, without a claim, compiled (`torch.compile`, one by one) and
with all networks at once (`torch.func.vmap`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optax

import lnkernel as lnk
from benchmarks.claims import conclude
from benchmarks.peers.process import PeerFailedError
from benchmarks.peers.pytorch import TorchTraining
from benchmarks.timing import in_turns
from lnkernel.progress import Bar

ARCH = lnk.mlp(hidden=2, width=128, norm="first")
SEEDS, POINTS, RATE = 5, 100, 1e-3
AT_MOST, AT_LEAST, BAR = 15.0, 3.0, 0.05
EARLY = 100  # later on Adam amplifies the last digit
ONE_BY_ONE = [(how, threads) for how in ("plain", "fused") for threads in (1, 2)]


@dataclass(frozen=True)
class Result:
    """Seconds, medians over the warm calls; losses, medians over the networks."""

    dimension: int
    first: float
    ours: float
    peer: float
    peer_how: str
    ratio: float
    loss: float
    peer_loss: float
    apart: float  # largest relative difference of the losses after EARLY steps: the same training?
    bar: float  # share of the time that is spent in the progress bar
    others: dict[str, float | str]


def data(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(POINTS, dimension))
    x = np.linspace(-3, 3, POINTS)[:, None] if dimension == 1 else x
    return x, np.sin(x.sum(axis=1))


def save_start(x: np.ndarray, y: np.ndarray, path: Path) -> None:
    """The data and the parameters from which `train_ensemble` starts, for PyTorch."""
    starts = [
        lnk.finite.network(ARCH, x.shape[1], rngs=seed, parameterization="standard")
        for seed in range(SEEDS)
    ]
    dense = [[layer for layer in net.layers if hasattr(layer, "kernel")] for net in starts]
    arrays: dict[str, Any] = {"x": x.astype(np.float32), "y": y[:, None].astype(np.float32)}
    for i in range(len(dense[0])):
        arrays[f"W{i}"] = np.stack([layers[i].kernel[...] for layers in dense])
        arrays[f"b{i}"] = np.stack([layers[i].bias[...] for layers in dense])
    np.savez(path, **arrays)


def ours(x: np.ndarray, y: np.ndarray, steps: int, progress: bool) -> tuple[float, Any]:
    began = time.perf_counter()
    ensemble = lnk.finite.train_ensemble(
        ARCH,
        x,
        y,
        SEEDS,
        optax.adam(RATE),
        steps,
        parameterization="standard",
        progress=progress,
    )
    return time.perf_counter() - began, ensemble


def bar_share(x: np.ndarray, y: np.ndarray, steps: int) -> float:
    """The time spent in the methods of the progress bar, as a share of the run's."""
    spent = 0.0
    methods = {name: getattr(Bar, name) for name in ("__init__", "update", "close")}

    def timed(method: Any) -> Any:
        def wrapper(*arguments: Any) -> None:
            nonlocal spent
            began = time.perf_counter()
            method(*arguments)
            spent += time.perf_counter() - began

        return wrapper

    for name, method in methods.items():
        setattr(Bar, name, timed(method))
    try:
        seconds, _ = ours(x, y, steps, progress=True)
    finally:
        for name, method in methods.items():
            setattr(Bar, name, method)
    return spent / seconds


def measure(dimension: int, steps: int, repeats: int, also: bool, peer: TorchTraining) -> Result:
    x, y = data(dimension)
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder) / "start.npz"
        save_start(x, y, start)

        def theirs(how: str, threads: int, steps: int) -> dict[str, Any]:
            return peer.train(start, steps=steps, rate=RATE, threads=threads, how=how)

        def trial(way: tuple[str, int]) -> float:
            theirs(*way, 10)
            return float(theirs(*way, max(1, steps // 20))["seconds"])

        best = min(ONE_BY_ONE, key=trial)
        first, _ = ours(x, y, steps, progress=False)
        last: dict[str, Any] = {}

        def mine() -> float:
            seconds, last["ours"] = ours(x, y, steps, progress=False)
            return seconds

        def its() -> float:
            last["peer"] = theirs(*best, steps)
            return float(last["peer"]["seconds"])

        seconds, peer_seconds = in_turns(mine, its, rounds=repeats)
        early = np.array(theirs(*best, EARLY)["losses"])
        apart = np.abs(last["ours"].losses[:, EARLY] / early - 1).max()
        bar = bar_share(x, y, steps)
        short = max(1, steps // 10)
        others: dict[str, float | str] = {}
        for how in ("compiled", "vmap") if also else ():
            try:
                theirs(how, best[1], 10)
                others[how] = theirs(how, best[1], short)["seconds"] * steps / short
            except PeerFailedError as failure:
                others[how] = str(failure)
    return Result(
        dimension=dimension,
        first=first,
        ours=seconds,
        peer=peer_seconds,
        peer_how=f"{best[0]} Adam, {best[1]} thread{'s' * (best[1] > 1)}",
        ratio=peer_seconds / seconds,
        loss=float(np.median(last["ours"].loss)),
        peer_loss=float(np.median(last["peer"]["losses"])),
        apart=float(apart),
        bar=bar,
        others=others,
    )


def show(results: list[Result], steps: int, version: str) -> None:
    print(
        f"\n{SEEDS} networks {ARCH!r}\n{POINTS} points, {steps} steps of Adam, float32, seconds\n"
    )
    print(
        f"{'dim':>4} {'lnkernel':>9} {'first':>6} {'torch':>7} {'ratio':>6} {'loss':>9} "
        f"{'torch':>9} {'bar':>6}  torch as"
    )
    for r in results:
        print(
            f"{r.dimension:>4} {r.ours:9.2f} {r.first:6.2f} {r.peer:7.2f} {r.ratio:6.2f} "
            f"{r.loss:9.2e} {r.peer_loss:9.2e} {r.bar:6.1%}  {r.peer_how}"
        )
        for how, seconds in r.others.items():
            said = f"{seconds:.2f} s" if isinstance(seconds, float) else seconds[:80]
            print(f"     torch, {how}: {said}")
    print(f"\n`torch` is PyTorch {version}. `loss` is 1/2 Σ (f - y)², the median of the networks.")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000, help=f"more than {EARLY}")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 9])
    parser.add_argument("--also", action="store_true", help="other ways to train in PyTorch")
    parser.add_argument("--json", type=Path, default=Path("out/training.json"))
    options = parser.parse_args(arguments)

    with TorchTraining() as peer:
        results = [
            measure(d, options.steps, options.repeats, options.also, peer)
            for d in options.dimensions
        ]
        version = peer.versions()["torch"]
    show(results, options.steps, version)
    checks = {
        f"at most {AT_MOST:g} s": all(r.ours <= AT_MOST for r in results),
        f"at least {AT_LEAST:g} times as fast": all(r.ratio >= AT_LEAST for r in results),
        f"the same losses after {EARLY} steps, within 1 %": all(r.apart < 0.01 for r in results),
        f"bar below {BAR:.0%}": all(r.bar < BAR for r in results),
    }
    rows = [asdict(r) for r in results]
    return conclude(checks, options.json, torch=version, steps=options.steps, results=rows)


if __name__ == "__main__":
    raise SystemExit(main())
