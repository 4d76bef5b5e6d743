"""The most memory that a process has held, and that a call takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def high_water(pid: int | str = "self") -> int | None:
    """Bytes, or None where the system does not tell (other than Linux).

    `resource.getrusage` does not serve: a child process starts with the figure of its parent.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return None if found is None else int(found[1]) * 1024


def peak(prepare: str, call: str) -> tuple[int | None, float]:
    """Bytes at the highest that some code takes beyond what came before it, and its seconds.

    The bytes are None where the system does not tell. Both run in a process of their own: `prepare`
    is to import and to warm up.
    """
    script = (
        "import json, time\nfrom benchmarks.memory import growth, high_water\n"
        f"{prepare}\nbefore, start = high_water(), time.perf_counter()\n"
        f"{call}\nseconds = time.perf_counter() - start\nprint(json.dumps([growth(before, high_water()), seconds]))\n"
    )
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found, seconds = json.loads(done.stdout)
    return found, seconds


def growth(before: int | None, after: int | None) -> int | None:
    """How much it has grown, where both numbers are known."""
    return None if before is None or after is None else after - before
