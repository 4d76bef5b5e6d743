"""The claim: the tangent kernel of finite networks tends to Θ, at the rate that theory says.

    python -m benchmarks.width [--quick] [--seeds 20] [--json out/width.json]

For networks without LayerNorm, with it in the first, the last or all layers, after the
activation, on a residual stream, with trained scale and bias, with RMSNorm and GroupNorm, of ReLU,
and of GELU and tanh before and behind a LayerNorm, for widths from 128 to 4096: the relative error
‖Θ̂ - Θ‖/‖Θ‖ (Frobenius) of the empirical kernel of one network at a few points, averaged over
random networks, and the exponent of the width in it. It has to be within -0.5 ± 0.1: an error of a
rule does not shrink with the width.

At the largest width the mean over the networks has to be within three standard errors of Θ, and
this is one number in two ways. `along Θ` is the mean of ⟨Θ̂ - Θ, Θ⟩/⟨Θ, Θ⟩, the error of the
kernel's size. `entry` is the entry that is farthest off; being the largest of many, its
probability is multiplied by their number (Bonferroni). Both are expressed as the standard errors
of a normal variable that are as improbable as what was found, by Student's distribution for so
few networks. The seeds are fixed: with others, one in 370 of these numbers exceeds three by
chance. The mean itself differs from Θ by about 1/width, a tenth of its standard error at 4096.

A table and a JSON file. The exit code is 1 if a claim fails.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import numpy as np
from scipy import stats

import lnkernel as lnk
from lnkernel import Dense, Gelu, GroupNorm, LayerNorm, Node, Relu, RMSNorm, Tanh, residual, serial
from lnkernel.finite.empirical.estimate import weighted_slope

POINTS = np.array([[1.0, 0.5, -0.25], [-0.5, 1.0, 2.0], [2.0, -1.0, 0.5], [-1.0, -1.0, 0.5]])
WIDTHS, QUICK_WIDTHS = (128, 256, 512, 1024, 2048, 4096), (128, 512, 2048)
WIDE = 2000
EXPONENT, TOLERANCE = -0.5, 0.1
STANDARD_ERRORS = 3.0


def dense(width: int = 128) -> Dense:
    return Dense(width, W_std=2**0.5, b_std=0.1)


AFFINE = LayerNorm(1e-5, scale=True, bias=True)
NETWORKS: dict[str, Node] = {
    "no LayerNorm": lnk.mlp(2),
    "first": lnk.mlp(2, norm="first"),
    "last": lnk.mlp(2, norm="last"),
    "all": lnk.mlp(2, norm="all"),
    "after": serial(dense(), Relu(), LayerNorm(), dense(), Relu(), LayerNorm(), dense(1)),
    "scale and bias": serial(dense(), AFFINE, Relu(), dense(), Relu(), AFFINE, dense(1)),
    "RMSNorm": serial(
        dense(), RMSNorm(1e-5, scale=True), Relu(), dense(), Relu(), RMSNorm(), dense(1)
    ),
    "GroupNorm": serial(dense(), GroupNorm(8, scale=True, bias=True), dense(), Relu(), dense(1)),
    "pre-LN residual": serial(
        dense(), residual(LayerNorm(), dense(), Relu(), dense()), LayerNorm(), dense(1)
    ),
    "GELU, last": lnk.mlp(2, norm="last", activation=Gelu()),
    "tanh, affine": serial(dense(), Tanh(), dense(), AFFINE, Tanh(), dense(1)),
}


@dataclass(frozen=True)
class Row:
    """One network. Relative errors at each width, with their standard errors over the seeds."""

    network: str
    widths: tuple[int, ...]
    seeds: int
    errors: tuple[float, ...]
    errors_se: tuple[float, ...]
    exponent: float
    exponent_se: float
    along: float  # in standard errors
    entry: float  # in standard errors
    seconds: float

    @property
    def rate_holds(self) -> bool:
        return abs(self.exponent - EXPONENT) <= TOLERANCE

    @property
    def limit_holds(self) -> bool:
        return max(self.along, self.entry) <= STANDARD_ERRORS

    @property
    def holds(self) -> bool:
        return self.rate_holds and self.limit_holds


def measure(name: str, arch: Node, theta: np.ndarray, widths: Sequence[int], seeds: int) -> Row:
    """The networks of `arch` against the kernel `theta` at the points."""
    begin = time.perf_counter()
    errors = []
    for width in widths:
        count = seeds if width > WIDE else 2 * seeds  # narrow networks cost little
        samples = kernels(arch, width, count)
        errors.append(np.linalg.norm(samples - theta, axis=(1, 2)) / np.linalg.norm(theta))
    means = np.array([np.mean(each) for each in errors])
    spreads = np.array([np.std(each, ddof=1) / len(each) ** 0.5 for each in errors])
    exponent, exponent_se = weighted_slope(
        np.log(np.asarray(widths, float)), np.log(means), spreads / means
    )
    upper = np.triu_indices(len(theta))
    return Row(
        network=name,
        widths=tuple(widths),
        seeds=seeds,
        errors=tuple(means.tolist()),
        errors_se=tuple(spreads.tolist()),
        exponent=exponent,
        exponent_se=exponent_se,
        along=deviation(((samples - theta) * theta).sum((1, 2))[:, None]),
        entry=deviation((samples - theta)[:, *upper]),
        seconds=time.perf_counter() - begin,
    )


def kernels(arch: Node, width: int, count: int) -> np.ndarray:
    """The empirical kernels of random networks: (count, n, n). Each width has its own seeds."""
    keys = jax.random.split(jax.random.key(width), count)
    networks = (lnk.finite.network(arch, POINTS.shape[1], width, rngs=key) for key in keys)
    return np.stack([lnk.finite.empirical_ntk(f, POINTS).astype(float) for f in networks])


def deviation(samples: np.ndarray) -> float:
    """How far from 0 the mean of that column of (seeds, columns) is that is farthest from it.

    In standard errors of a normal variable that is as improbable, for so many columns.
    """
    seeds, columns = samples.shape
    t = np.abs(samples.mean(0)) / (samples.std(0, ddof=1) / seeds**0.5)
    probability = min(1.0, columns * 2 * float(stats.t.sf(t.max(), seeds - 1)))
    return float(stats.norm.isf(probability / 2))


def head(widths: Sequence[int]) -> str:
    line = f"{'network':16}" + "".join(f" {width:>7}" for width in widths)
    return line + f" {'exponent':>16} {'along Θ':>8} {'entry':>6} {'seconds':>8}"


def line(row: Row) -> str:
    errors = "".join(f" {error:7.4f}" for error in row.errors)
    rate = f" {row.exponent:8.3f} ± {row.exponent_se:.3f}"
    limit = f" {row.along:8.2f} {row.entry:6.2f}"
    return f"{row.network:16}" + errors + rate + limit + f" {row.seconds:8.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only widths {QUICK_WIDTHS}")
    parser.add_argument(
        "--seeds", type=int, default=20, help="networks per width, twice as many below 2000"
    )
    parser.add_argument("--json", type=Path, default=Path("out/width.json"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("a standard error takes at least 2 seeds")
    widths = QUICK_WIDTHS if options.quick else WIDTHS
    begin = time.perf_counter()
    print("relative error of the empirical kernel of one network, by width")
    print(head(widths))
    rows = []
    for name, arch in NETWORKS.items():
        theta = np.asarray(lnk.ntk(arch)(POINTS))
        rows.append(measure(name, arch, theta, widths, options.seeds))
        print(line(rows[-1]), flush=True)
    seconds = time.perf_counter() - begin
    options.json.parent.mkdir(parents=True, exist_ok=True)
    written = [asdict(row) | {"holds": row.holds} for row in rows]
    options.json.write_text(json.dumps({"seconds": seconds, "rows": written}, indent=1) + "\n")
    print(f"\n{seconds:.0f} s; {options.json}")
    for row in rows:
        if not row.rate_holds:
            print(f"FAILED: {row.network}: exponent {row.exponent:.3f}")
        if not row.limit_holds:
            print(f"FAILED: {row.network}: {max(row.along, row.entry):.1f} standard errors off")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
