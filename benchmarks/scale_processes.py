"""A factorisation over several processes of this machine, each with one core and one device.

    python -m benchmarks.scale_processes 2 4000 strong

starts two processes and prints their time as JSON. More processes than cores show nothing.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

ARGUMENTS = 5


def start(processes: int, n: int) -> dict[str, float]:
    """Seconds of the processes, the longest of each part."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.scale_processes", f"127.0.0.1:{port}"]
    running = [
        subprocess.Popen(
            [*command, str(processes), str(i), str(n)], stdout=subprocess.PIPE, text=True
        )
        for i in range(processes)
    ]
    said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError("a process failed")
    found = [json.loads(out.splitlines()[-1]) for out in said]
    longest = {name: max(one[name] for one in found) for name in found[0]}
    return {"processes": processes, "n": n, **longest}


def work(coordinator: str, processes: int, process: int, n: int) -> dict[str, float]:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[process % len(cores)]])
    import lnkernel as lnk
    from benchmarks.scale_one_machine import ARCH, NOISE, proteins
    from lnkernel.gp.packed import GramRows
    from lnkernel.gp.sharded_cholesky import sharded_cholesky

    lnk.distributed.initialize(coordinator, processes, process)
    rows = GramRows(lnk.ntk(ARCH), proteins().train.x[:n], NOISE)
    sharded_cholesky(rows, lnk.distributed.mesh())  # compiles
    start, used = time.perf_counter(), time.process_time()
    sharded_cholesky(rows, lnk.distributed.mesh())
    return {"wall": time.perf_counter() - start, "processor": time.process_time() - used}


if __name__ == "__main__":
    if len(sys.argv) == ARGUMENTS:
        address, *numbers = sys.argv[1:]
        print(json.dumps(work(address, *map(int, numbers))))
    else:
        print(json.dumps(start(int(sys.argv[1]), int(sys.argv[2]))))
