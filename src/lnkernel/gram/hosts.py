"""Several processes that run one program: that all of them have the same data, and that all take part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import Sharding

from lnkernel.errors import InputError, LostProcessError


def spans_processes(sharding: Sharding) -> bool:
    """Whether the devices are of several processes; then they have to be of all."""
    devices: set[Any] = set(sharding.device_set)
    owners = {device.process_index for device in devices}
    if owners == {jax.process_index()}:
        return False
    missing = sorted(set(range(jax.process_count())) - owners)
    if missing:
        raise InputError(
            "sharding",
            f"devices of all {jax.process_count()} processes, or of this one alone",
            f"none of process {', '.join(map(str, missing))}",
            "Take lnk.distributed.mesh(), or a mesh of jax.devices()",
        )
    return True


def demand_same(name: str, values: Sequence[Any]) -> None:
    """Refuse what is not the same in all processes, down to the last bit. Every process calls it."""
    digest = hashlib.sha256()
    for value in values:
        made = np.ascontiguousarray(value) if not isinstance(value, str) else value
        digest.update(made.encode() if isinstance(made, str) else repr(made.shape).encode())
        digest.update(b"" if isinstance(made, str) else made.tobytes())
    mine = np.frombuffer(digest.digest()[:8], np.uint32)
    found = gather(mine)
    others = [i for i, row in enumerate(found) if not np.array_equal(row, found[0])]
    if others:
        raise InputError(
            name,
            "the same in every process, because all of them run one program",
            f"something else in process {', '.join(map(str, others))} than in process 0",
            "Read the same files, in the same order, and draw with the same seed in all of them",
        )


def gather(values: np.ndarray) -> np.ndarray:
    """The arrays of all processes, along a new first axis."""
    from jax.experimental.multihost_utils import process_allgather

    with watch_processes():
        made = np.asarray(process_allgather(values))
    return made.reshape(jax.process_count(), *values.shape)


@contextmanager
def watch_processes() -> Iterator[None]:
    """A scope in which the loss of another process is told in plain words."""
    try:
        yield
    except jax.errors.JaxRuntimeError as problem:
        if jax.process_count() == 1 or not _is_loss(str(problem)):
            raise
        raise LostProcessError(jax.process_index(), jax.process_count(), str(problem)) from problem


def _is_loss(text: str) -> bool:
    """What gloo, and the service that counts the processes' heartbeats, say of a connection that is gone."""
    marks = (
        "gloo",
        "connection",
        "heartbeat",
        "coordination",
        "socket",
        "unavailable",
        "timed out",
    )
    return any(mark in text.lower() for mark in marks)
