"""Room for n² numbers, asked for before they are made."""

from __future__ import annotations

import psutil

from lnkernel.errors import NotEnoughMemoryError


def demand_memory(n: int, matrices: int, purpose: str) -> None:
    """An error that says how much memory n points need, before it is asked for."""
    needed, available = 8 * matrices * n * n, available_memory()
    if needed > available:
        raise NotEnoughMemoryError(purpose, n, needed, available)


def available_memory() -> int:
    """Bytes that can be had without swapping."""
    return int(psutil.virtual_memory().available)
