"""Room for matrices, asked for before they are made."""

from __future__ import annotations

from lnkernel.errors import NotEnoughMemoryError


def demand_memory(
    n: int,
    matrices: int,
    purpose: str,
    m: int | None = None,
    itemsize: int = 8,
    remedy: str | None = None,
) -> None:
    """An error that says how much memory so many matrices of n x m numbers need, before it is asked
    for. Without m they are square. Where n and m do not count points, `remedy` says what to do."""
    needed = itemsize * matrices * n * (n if m is None else m)
    available = available_memory()
    if needed > available:
        raise NotEnoughMemoryError(purpose, n, needed, available, m, itemsize, remedy)


def available_memory() -> int:
    """Bytes that can be had without swapping."""
    import psutil  # only here, so that `import lnkernel` stays quick

    return int(psutil.virtual_memory().available)
