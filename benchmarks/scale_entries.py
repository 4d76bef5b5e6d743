"""Nanoseconds for an entry of the Gram matrix, against the number of points and of cores, on protein.

    python -m benchmarks.scale_entries 4000 2

Only so many cores are allowed to the process; entries are computed and copied by as many threads.
"""

from __future__ import annotations

import json
import os
import sys
import time


def measure(n: int, cores: int) -> dict[str, float]:
    """The whole symmetric matrix, of whose entries half are computed and all are written; the best of three."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])  # before any thread is started
    import lnkernel as lnk
    from benchmarks.scale_one_machine import ARCH, proteins

    x, theta = proteins().train.x[:n], lnk.ntk(ARCH)
    theta(x[:300])  # compiles
    times = []
    for _ in range(3):
        start, used = time.perf_counter(), time.process_time()
        theta(x)
        times.append((time.perf_counter() - start, time.process_time() - used))
    wall, processor = (1e9 * min(column) / n**2 for column in zip(*times, strict=True))
    return {"n": n, "cores": cores, "wall_ns": wall, "processor_ns": processor}


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:3]))))
