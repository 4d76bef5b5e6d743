"""How the processes of a program find each other."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
from jax.sharding import Mesh

from lnkernel.errors import InputError
from lnkernel.gram.hosts import gather

# Seconds without a sign of life after which JAX ends all processes. Gloo gives up on another process after 30, and
# that is an error of this library, with what to do; so these are more.
HEARTBEAT = 60
PATIENCE = 300  # seconds until all processes are there
LENGTH = 80  # letters in which a host describes itself


def initialize(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    heartbeat: int = HEARTBEAT,
    patience: int = PATIENCE,
) -> None:
    """Join the other processes of this program, before anything else is computed.

    Without arguments the launcher is asked, as `jax.distributed.initialize` does: SLURM, Open MPI, Kubernetes, Cloud
    TPU. A process that is on its own goes on by itself.

    Args:
        coordinator: "host:port" of process 0.
        processes: how many there are.
        process: the number of this one, from 0 on.
        heartbeat: seconds after which a process that is silent counts as lost; JAX then ends the others. Those that
            wait for it raise a `LostProcessError` after 30 seconds.
        patience: seconds to wait for all of them.

    All hosts must have equally many devices, of one kind.

    >>> import lnkernel as lnk
    >>> lnk.distributed.initialize("127.0.0.1:1234", processes=2)
    Traceback (most recent call last):
    ...
    lnkernel.errors.InputError: process: expected coordinator, processes and process together, or none of them, got \
    process=None. Leave all out under SLURM, Open MPI or Kubernetes.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < 3:
        raise InputError(
            missing[0],
            "coordinator, processes and process together, or none of them",
            f"{missing[0]}=None",
            "Leave all out under SLURM, Open MPI or Kubernetes",
        )
    if jax.distributed.is_initialized():
        return
    _join(coordinator, processes, process, heartbeat, patience)
    _demand_equal_hosts()


def _join(
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    heartbeat: int,
    patience: int,
) -> None:
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process,
            heartbeat_timeout_seconds=heartbeat,
            initialization_timeout=patience,
        )
    except RuntimeError as problem:
        if "before" not in str(problem):
            raise InputError(
                "coordinator",
                f"all {processes} processes within {patience} s",
                str(problem).splitlines()[0],
                "Check its address, that its port is free, and that all processes were started",
            ) from problem
        raise InputError(
            "initialize",
            "to be called before anything is computed",
            "a process that has used its devices already",
            "Call it right after `import lnkernel`",
        ) from problem
    except ValueError as problem:
        raise InputError(
            "coordinator",
            "its address, or a launcher that JAX knows (SLURM, Open MPI, Kubernetes)",
            "neither",
            'Write initialize("host:1234", processes=4, process=0), with another process in each; a program in one '
            "process needs no initialize()",
        ) from problem


def _demand_equal_hosts() -> None:
    counts = Counter(device.process_index for device in jax.devices())
    _compare([f"{counts[i]} devices" for i in range(jax.process_count())])
    versions = f"JAX {jax.__version__}, NumPy {np.__version__}, {jax.default_backend()}"
    found = gather(np.frombuffer(versions.encode().ljust(LENGTH)[:LENGTH], np.uint8))
    _compare([bytes(row.astype(np.uint8)).decode().strip() for row in found])


def _compare(said: list[str]) -> None:
    for number, other in enumerate(said):
        if other != said[0]:
            raise InputError(
                "hosts",
                f"equal ones, as process 0 ({said[0]})",
                f"process {number} with {other}",
                "Start each with as many devices of one kind and the same versions of JAX and NumPy",
            )


def mesh() -> Mesh:
    """All devices of all processes, along one axis: what `sharding=` takes.

    >>> import jax, lnkernel as lnk
    >>> lnk.distributed.mesh().devices.size == jax.device_count()
    True
    """
    return Mesh(np.array(jax.devices()), ("rows",))
