"""A MODEL of time and memory on many hosts, from constants that were measured on one. Nothing of it was run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ITERATIONS = 200  # of conjugate gradients, assumed
RANK = 1000  # of their preconditioner


@dataclass(frozen=True)
class Constants:
    """What was measured, and what is assumed of a host."""

    entry: float  # processor seconds of one entry
    rate: float  # operations of a factorisation in a processor second
    cores: int = 32  # of a host, assumed
    network: float = 1.25e9  # bytes a second between hosts, assumed (10 Gbit/s)


def factorised(n: int, hosts: int, measured: Constants) -> dict[str, Any]:
    """Cholesky's method over hosts: entries, n³/3 operations, and n²/2 numbers through each host's network."""
    cores = hosts * measured.cores
    parts = {
        "entries": n**2 / 2 * measured.entry / cores,
        "operations": n**3 / 3 / measured.rate / cores,
        "network": 8 * n**2 / 2 / measured.network,
    }
    return _row("factorised", n, hosts, 4 * n**2 / hosts, parts)


def iterated(n: int, hosts: int, measured: Constants) -> dict[str, Any]:
    """Conjugate gradients that compute the matrix in every iteration, with their preconditioner on every host."""
    cores = hosts * measured.cores
    parts = {
        "entries": ITERATIONS * n**2 / 2 * measured.entry / cores,
        "operations": (n * RANK**2 + ITERATIONS * 4 * n * RANK) / measured.rate / measured.cores,
        "network": ITERATIONS * 8 * n * 2 / measured.network,
    }
    return _row(f"{ITERATIONS} iterations", n, hosts, 2 * 8 * n * RANK, parts)


def _row(way: str, n: int, hosts: int, memory: float, parts: dict[str, float]) -> dict[str, Any]:
    seconds = sum(parts.values())
    return {
        "way": way,
        "n": n,
        "hosts": hosts,
        "bytes_of_host": memory,
        "seconds": seconds,
        **parts,
    }


def model(measured: Constants) -> list[dict[str, Any]]:
    """100,000 points factorised, and a million iterated, on 8 to 64 hosts."""
    hosts = (8, 16, 32, 64)
    return [factorised(100_000, h, measured) for h in hosts] + [
        iterated(1_000_000, h, measured) for h in hosts
    ]
