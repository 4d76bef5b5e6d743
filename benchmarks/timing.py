"""Times of several libraries, measured side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax


def seconds(call: Callable[[], Any]) -> float:
    """The seconds that one call takes, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def in_turns(*timed: Callable[[], float], rounds: int, series: int = 1) -> list[float]:
    """The median of what each gives, called in turns, a `series` of calls at a time.

    So a busy moment of the machine hits all, and with longer series each mostly finds the machine
    as its own last call left it.
    """
    found: list[list[float]] = [[] for _ in timed]
    for _ in range(rounds):
        for times, call in zip(found, timed, strict=True):
            times += [call() for _ in range(series)]
    return [statistics.median(times) for times in found]
