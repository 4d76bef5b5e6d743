"""How long a user waits for the first number, in fresh processes.

    python -m benchmarks.first_number [--quick] [--json out/first_number.json]

The aims, after the import, on two quiet cores: 0.2 s for the first matrix of 100 points, whatever the architecture up
to 50 layers; 1.5 s for the first of 2,000 points; 1 s for a posterior of 300 points with mean and spread; 3 s for six
residual blocks at 2,000 points, and for the first gradient. The next n and the next d are reported beside the same call
again. Beside them the first calls of neural-tangents 0.6.5, compiled, in its own environment and in the same run. Rows
beyond their aim are marked; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import lnkernel as lnk
from benchmarks.claims import concluded
from benchmarks.peers.kernel_peer import NeuralTangents

START = """
import time
import numpy as np
begin = time.perf_counter()
import lnkernel as lnk
print("import", time.perf_counter() - begin)
import jax
jax.numpy.zeros(3).block_until_ready()
rng = np.random.default_rng(0)
def points(n, d=10):
    return rng.normal(size=(n, d))
def timed(name, call):
    begin = time.perf_counter()
    jax.block_until_ready(call())
    print(name, time.perf_counter() - begin)
"""
BLOCK = "lnk.residual(lnk.LayerNorm(), lnk.Dense(8), lnk.Relu(), lnk.Dense(8))"
BLOCKS = f"lnk.serial(lnk.Dense(8), *[{BLOCK}] * 6, lnk.Dense(1))"


@dataclass(frozen=True)
class Process:
    """Lines of Python that a user might type, each with its aim in seconds after those of the line before it."""

    lines: tuple[tuple[str, str, float | None], ...]  # name, code, aim
    setup: str = ""


def small(name: str, arch: str) -> Process:
    return Process(((f"{name}, 100", f"lnk.ntk({arch})(points(100))", 0.2),))


PROCESSES = (
    small("mlp(2)", "lnk.mlp(hidden=2)"),
    small("mlp(50)", "lnk.mlp(hidden=50)"),
    small("mlp(2, LayerNorm)", "lnk.mlp(hidden=2, norm='all')"),
    small("six residual blocks", BLOCKS),
    small("degree 1.5", "lnk.mlp(hidden=2, activation=lnk.RectifiedPower(1.5))"),
    small("GELU", "lnk.mlp(hidden=2, activation=lnk.Gelu())"),
    small("tanh, LayerNorm first", "lnk.mlp(hidden=2, norm='first', activation=lnk.Tanh())"),
    Process(
        (
            ("mlp(2), 2000", "theta(points(2000))", 1.5),
            ("again", "theta(points(2000))", None),
            ("next n, 1900", "theta(points(1900))", None),
            ("next d, 12", "theta(points(2000, 12))", None),
            ("rectangular", "theta(points(2000), points(1500))", None),
        ),
        "theta = lnk.ntk(lnk.mlp(hidden=2))",
    ),
    Process((("six residual blocks, 2000", f"lnk.ntk({BLOCKS})(points(2000))", 3.0),)),
    Process(
        (
            (
                "posterior, 300",
                "post.append(lnk.posterior(lnk.mlp(), x, y)) or post[0].mean(x)",
                1.0,
            ),
            ("spread", "post[0].variance(points(50))", 1.0),
            ("at(1.0)", "post[0].at(1.0).mean(points(50))", None),
        ),
        "x, post = points(300), []\ny = x[:, 0]",
    ),
    Process(
        (("first gradient", "jax.grad(lambda v: theta(v[None], x)[0, 0])(x[0])", 3.0),),
        "jax.config.update('jax_enable_x64', True)\nx, theta = points(5), lnk.ntk(lnk.mlp(hidden=2))",
    ),
)


@dataclass(frozen=True)
class Row:
    """One call in a fresh process."""

    name: str
    seconds: float
    aim: float | None = None

    @property
    def ok(self) -> bool:
        return self.aim is None or self.seconds <= self.aim


def run(process: Process) -> list[Row]:
    calls = [f"timed({name!r}, lambda: {code})" for name, code, _ in process.lines]
    code = "\n".join([START, process.setup, *calls])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    rows = [Row(name, float(found[name]), aim) for name, _, aim in process.lines]
    return [Row("import", float(found["import"])), *rows]


def of_peer() -> list[Row]:
    """neural-tangents' first calls, each of which compiles."""
    rng, arch, rows = np.random.default_rng(0), lnk.mlp(hidden=2), []
    for n, d in ((100, 10), (2000, 10), (1900, 10), (2000, 12)):
        with NeuralTangents() as peer:
            rows.append(
                Row(f"neural-tangents: mlp(2), {n} x {d}", peer.load(arch, rng.normal(size=(n, d))))
            )
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_number", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 points of two networks, no peer")
    parser.add_argument("--json", type=Path, default=Path("out/first_number.json"))
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for number, process in enumerate(PROCESSES[:2] if options.quick else PROCESSES):
        found = run(process)
        for row in found if number == 0 else found[1:]:
            aim = "" if row.aim is None else f"aim {row.aim:.1f}"
            print(
                f"{row.name:32} {row.seconds:8.3f} s  {aim:8} {'' if row.ok else 'BEYOND'}",
                flush=True,
            )
            rows.append(row)
    peers = [] if options.quick else of_peer()
    for row in peers:
        print(f"{row.name:32} {row.seconds:8.3f} s", flush=True)
    checks = {f"{r.name} within {r.aim} s": r.ok for r in rows if r.aim is not None}
    return concluded(checks, options.json, rows=[asdict(r) for r in rows + peers])


if __name__ == "__main__":
    raise SystemExit(main())
