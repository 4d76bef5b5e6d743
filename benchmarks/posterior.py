"""Speed and accuracy of the posterior, beside neural-tangents in the same run.

The claim: on two cores, in float64, for `mlp(hidden=2, norm="first")` and 5,000 points in 9
dimensions, the posterior mean at 1,000 points (Gram matrix, factorisation, prediction) takes at
most a third of the time of neural-tangents' `gradient_descent_mse_ensemble`, and is at least as
accurate: against 50 digits at 40 points, and at full size against a solution refined with
residuals in long double.

    python -m benchmarks.posterior [--points 5000] [--json out/posterior.json]

Short series of calls of the two libraries alternate, so that a busy moment of the machine hits
both, and most calls find caches and threads as their own last call left them. The first call,
which compiles, is reported apart. The spread of trained networks (`ensemble_variance`) is timed as
well, without a claim.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import mpmath
import numpy as np
import scipy

import lnkernel as lnk
from benchmarks.claims import conclude
from benchmarks.peers.kernel_peer import NeuralTangents
from benchmarks.timing import in_turns

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import oracle

ARCH = lnk.mlp(hidden=2, norm="first")
DIMENSION, PREDICTIONS, FEW = 9, 1000, 40
AT_LEAST = 3.0
SERIES = 3


@dataclass(frozen=True)
class Result:
    """Seconds, medians over the warm calls; errors, the largest over the predictions."""

    what: str
    n: int
    first: float
    ours: float
    peer_first: float
    peer: float
    ratio: float
    error: float
    peer_error: float
    difference: float


def data(n: int, predictions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, DIMENSION))
    y = np.sin(x.sum(axis=1)) + 0.1 * rng.normal(size=n)
    return x, y, rng.normal(size=(predictions, DIMENSION))


def measure(n: int, repeats: int, spread: bool, peer: NeuralTangents) -> Result:
    x, y, x2 = data(n, PREDICTIONS)

    means: dict[str, np.ndarray] = {}

    def mine() -> float:
        start = time.perf_counter()
        post = lnk.posterior(ARCH, x, y)
        means["ours"] = np.asarray(post.mean(x2))
        if spread:
            assert isinstance(post, lnk.Posterior)  # it was made of numbers, not of tracers
            post.ensemble_variance(x2)
        return time.perf_counter() - start

    def its() -> float:
        seconds, found = peer.posterior(ARCH, x, y, x2, spread)
        means["peer"] = found["mean"]
        return seconds

    first, peer_first = mine(), its()
    seconds, peer_seconds = in_turns(mine, its, rounds=repeats, series=SERIES)
    exact = refined_mean(x, y, x2)
    return Result(
        what="mean and spread" if spread else "mean",
        n=n,
        first=first,
        ours=seconds,
        peer_first=peer_first,
        peer=peer_seconds,
        ratio=peer_seconds / seconds,
        error=float(np.abs(means["ours"] - exact).max()),
        peer_error=float(np.abs(means["peer"] - exact).max()),
        difference=float(np.abs(means["ours"] - means["peer"]).max()),
    )


def refined_mean(x: np.ndarray, y: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Θ(x2, x) Θ⁻¹ y with NumPy's LU and refinement in long double, until nothing changes.

    Θ is lnkernel's, whose entries are right to 2e-15 (`benchmarks/accuracy.py`).
    """
    theta = lnk.ntk(ARCH)
    gram, cross = np.asarray(theta(x)), np.asarray(theta(x2, x))
    factor = scipy.linalg.lu_factor(gram)
    solution = np.zeros(len(x), dtype=np.longdouble)
    for _ in range(6):
        residual = y - _times(gram, solution)
        solution += scipy.linalg.lu_solve(factor, residual.astype(np.float64))
    return _times(cross, solution).astype(np.float64)


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The product in long double, a few rows at a time."""
    rows = [matrix[i : i + 100].astype(np.longdouble) @ vector for i in range(0, len(matrix), 100)]
    return np.concatenate(rows)


def exact_mean(
    arch: lnk.Node,
    x: np.ndarray,
    y: np.ndarray,
    x2: np.ndarray,
    kernel: str = "ntk",
    noise: float = 0.0,
) -> np.ndarray:
    """k(x2, x) (k(x, x) + noise)⁻¹ y in 50 digits, of few points."""
    n, which = len(x), ("nngp", "ntk").index(kernel)
    with mpmath.workdps(50):
        gram = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = oracle.kernels(arch, x[i], x[j])[which]
            gram[i, i] += noise
        solution = mpmath.lu_solve(gram, mpmath.matrix(y.tolist()))
        rows = [[oracle.kernels(arch, point, other)[which] for other in x] for point in x2]
        return np.array([float(mpmath.fdot(row, solution)) for row in rows])


def errors_at_few_points(peer: NeuralTangents) -> tuple[float, float]:
    """The largest errors of the mean of 40 points, ours and the peer's, against 50 digits."""
    x, y, x2 = data(FEW, 10)
    exact = exact_mean(ARCH, x, y, x2)
    ours = np.asarray(lnk.posterior(ARCH, x, y).mean(x2))
    theirs = peer.posterior(ARCH, x, y, x2)[1]["mean"]
    return float(np.abs(ours - exact).max()), float(np.abs(theirs - exact).max())


def show(results: list[Result], few: tuple[float, float]) -> None:
    print(f"\nposterior of {ARCH!r}\n{PREDICTIONS} predictions, float64, warm medians in seconds\n")
    print(
        f"{'what':>16} {'points':>7} {'lnkernel':>9} {'peer':>8} {'ratio':>6} {'first':>6} "
        f"{'peer 1st':>8} {'error':>9} {'peer':>9}"
    )
    for r in results:
        print(
            f"{r.what:>16} {r.n:>7} {r.ours:9.3f} {r.peer:8.3f} {r.ratio:6.2f} {r.first:6.2f} "
            f"{r.peer_first:8.2f} {r.error:9.1e} {r.peer_error:9.1e}"
        )
    print(f"{'against 50 digits':>16} {FEW:>6} {'':>41} {few[0]:9.1e} {few[1]:9.1e}")
    print("\n`peer` is neural-tangents 0.6.5. `error` is the largest of the mean, over the points.")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3, help="series of calls")
    parser.add_argument("--json", type=Path, default=Path("out/posterior.json"))
    options = parser.parse_args(arguments)

    with NeuralTangents() as peer:
        few = errors_at_few_points(peer)
        mean = measure(options.points, options.repeats, False, peer)
        spread = measure(options.points, 1, True, peer)
    show([mean, spread], few)
    checks = {
        f"at least {AT_LEAST:g} times as fast": mean.ratio >= AT_LEAST,
        "at least as accurate": mean.error <= mean.peer_error,
        "at least as accurate, against 50 digits": few[0] <= few[1],
    }
    return conclude(
        checks,
        options.json,
        results=[asdict(mean), asdict(spread)],
        against_50_digits={"n": FEW, "error": few[0], "peer_error": few[1]},
    )


if __name__ == "__main__":
    raise SystemExit(main())
