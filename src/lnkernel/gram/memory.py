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
    """Bytes that can be had without swapping, and within the limit that a shell has set (`ulimit -v`)."""
    import psutil  # only here, so that `import lnkernel` stays quick

    free = int(psutil.virtual_memory().available)
    limit = _limit_of_process()
    return free if limit is None else max(0, min(free, limit - psutil.Process().memory_info().vms))


def _limit_of_process() -> int | None:
    """Bytes that this process may have in all; None where nobody has set a limit, or the system knows none."""
    try:
        import resource
    except ImportError:  # on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else int(limit)
