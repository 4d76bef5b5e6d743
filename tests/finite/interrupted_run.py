"""A long run in a process of its own, which kills itself while it writes its second checkpoint.

    python interrupted_run.py FOLDER MOMENT

MOMENT is "write", as soon as the unfinished checkpoint appears, or a number of seconds after the
first checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import optax

import lnkernel as lnk

STEPS, EVERY = 600, 100
X = np.linspace(-2, 2, 11)[:, None]
Y = np.sin(X[:, 0])


def ensemble(checkpoint: Any = None, **changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "arch": lnk.mlp(hidden=1, width=16, norm="first"),
        "X": X,
        "y": Y,
        "seeds": [4, 2],
        "optimizer": optax.adam(optax.cosine_decay_schedule(0.01, STEPS)),
        "steps": STEPS,
        "batch_size": 4,
        "checkpoint_every": EVERY,
        **changes,
    }
    return lnk.finite.train_ensemble(checkpoint=checkpoint, **arguments)


def kill_at(folder: Path, moment: str) -> None:
    def steps_seen() -> list[str]:
        return [entry.name for entry in folder.iterdir()] if folder.exists() else []

    first, second = str(EVERY), str(2 * EVERY)
    while True:
        names = steps_seen()
        if moment == "write" and any(n.startswith(second) and n != second for n in names):
            break
        if moment != "write" and any(n.isdigit() and int(n) >= int(first) for n in names):
            time.sleep(float(moment))
            break
        time.sleep(1e-4)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    threading.Thread(target=kill_at, args=(path, sys.argv[2]), daemon=True).start()
    ensemble(path)
