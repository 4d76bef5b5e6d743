"""Errors against 50 digits."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import lnkernel as lnk

# The oracle belongs to the tests, which are not a package.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

import oracle

BOUND = 2e-15  # on our errors up to depth 10, as `benchmarks/accuracy.py` claims


def errors(
    arch: lnk.Node, x: Any, x2: Any, places: Iterable[tuple[int, int]], kernel: str, *found: Any
) -> list[float]:
    """The largest error of each matrix at these entries, relative to √(k(x,x) k(x',x')).

    An entry that is not a number counts as infinitely wrong.
    """
    symbol = {"ntk": "Theta", "nngp": "K"}[kernel]
    worst = [0.0] * len(found)
    for i, j in places:
        exact = oracle.pair(arch, x[i], x2[j])
        value, scale = getattr(exact, symbol), getattr(exact, f"{symbol}_scale")
        for which, matrix in enumerate(found):
            entry = float(matrix[i, j])
            off = float(abs(value - oracle.mpf(entry)) / scale) if np.isfinite(entry) else np.inf
            worst[which] = max(worst[which], off)
    return worst


def some_entries(n: int, diagonal: bool, count: int = 12) -> list[tuple[int, int]]:
    """Entries here and there; of a symmetric matrix also on the diagonal."""
    drawn = np.random.default_rng(1).integers(n, size=(count, 2)).tolist()
    places = [(int(i), int(j)) for i, j in drawn]
    return [*places, *((i, i) for i, _ in places)] if diagonal else places
