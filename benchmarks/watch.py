"""What it costs to watch a training: the time of a run with measurements beside the same without.

The claim: with the default measures at the default steps, on 300 points with networks of width 100, 3,000
steps take at most 20 % longer, of one network and of an ensemble; and the losses are the same, bit for bit.

    python -m benchmarks.watch [--quick] [--json out/watch.json]

Programs are compiled before. The time is that of the processor, so that other work on the machine does not
count; runs take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
import optax

import lnkernel as lnk
from benchmarks.claims import conclude
from benchmarks.timing import in_turns

POINTS, DIMENSION, WIDTH, STEPS = 300, 64, 100, 3000
RATE = 1e-4  # of half the sum; far below the edge of stability
ALLOWED = 1.2
ROUNDS = 3
COMPILING = 50  # steps of the runs before, which compile the programs of any number of steps


def train(seeds: int, steps: int, watched: bool) -> tuple[lnk.finite.Ensemble, lnk.finite.Watch]:
    """Networks with two hidden layers, with or without measurements."""
    draw = np.random.default_rng(0)
    X = draw.uniform(size=(POINTS, DIMENSION))
    y = np.sign(X[:, 0] - X[:, 1])
    arch = lnk.mlp(hidden=2, width=WIDTH, activation=lnk.Tanh(), W_std=0.6, b_std=0.1)
    w = lnk.watch(X, y)
    made = lnk.finite.train_ensemble(
        arch,
        X,
        y,
        seeds,
        optax.sgd(RATE),
        steps,
        parameterization="standard",
        progress=False,
        watch=w if watched else None,
    )
    return made, w


def time_in_turns(seeds: int, rounds: int) -> tuple[float, float, bool, lnk.finite.Watch]:
    """Seconds of the processor without and with measurements, whether the losses are the same, and the
    last watch."""
    made: dict[bool, tuple[lnk.finite.Ensemble, lnk.finite.Watch]] = {}

    def seconds(watched: bool) -> float:
        start = time.process_time()
        made[watched] = train(seeds, STEPS, watched)
        return time.process_time() - start

    for watched in (False, True):
        train(seeds, COMPILING, watched)
    without, with_it = in_turns(partial(seconds, False), partial(seconds, True), rounds=rounds)
    same = np.array_equal(made[False][0].losses, made[True][0].losses)
    return without, with_it, bool(same), made[True][1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="one network, one round")
    parser.add_argument("--json", type=Path, default=Path("out/watch.json"))
    options = parser.parse_args(arguments)
    rows, checks = [], {}
    for seeds in (1,) if options.quick else (1, 5):
        without, with_it, same, w = time_in_turns(seeds, 1 if options.quick else ROUNDS)
        ratio = with_it / without
        print(
            f"{seeds} networks, {STEPS} steps, {len(w.steps)} measurements: {without:.2f} s of the "
            f"processor without, {with_it:.2f} s with them, {100 * (ratio - 1):.0f} % more"
        )
        rows.append({"networks": seeds, "seconds": without, "watched": with_it, "ratio": ratio})
        checks[f"{seeds} networks: at most 20 % longer"] = ratio <= ALLOWED
        checks[f"{seeds} networks: the same losses"] = same
    return conclude(checks, options.json, rows=rows, steps=w.steps.tolist(), measures=w.names)


if __name__ == "__main__":
    raise SystemExit(main())
