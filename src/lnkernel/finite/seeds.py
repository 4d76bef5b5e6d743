"""Seeds: a number of them, or themselves; and the bar that counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, TypeVar

from lnkernel.errors import InputError

T = TypeVar("T")
PATIENCE = 2.0  # seconds until a bar is shown that nobody asked for


def as_seeds(seeds: Any, at_least: int) -> list[int]:
    """Different integers: 0, 1, ... where only their number is given."""
    expected = f"a number of at least {at_least}, or as many different integers"
    if isinstance(seeds, Integral) and not isinstance(seeds, bool):
        chosen = list(range(int(seeds)))
    elif isinstance(seeds, Iterable) and not isinstance(seeds, str):
        given = list(seeds)
        if any(isinstance(s, bool) or not isinstance(s, Integral) or s < 0 for s in given):
            raise InputError("seeds", expected, repr(seeds), "Give integers, 0 or more")
        chosen = [int(seed) for seed in given]
    else:
        raise InputError("seeds", expected, repr(seeds), "Write e.g. seeds=10")
    if len(chosen) < at_least or len(set(chosen)) < len(chosen):
        why = "A standard error takes two networks or more" if at_least > 1 else "Train one or more"
        raise InputError("seeds", expected, repr(seeds), why)
    return chosen


def shown(items: Sequence[T], wanted: bool | None, unit: str) -> Iterable[T]:
    """The items, with a bar that counts them. `wanted`: True, False, or None for long runs only."""
    if wanted is False:
        return items
    from tqdm import tqdm

    bar: Iterable[T] = tqdm(items, unit=unit, delay=PATIENCE if wanted is None else 0.0)
    return bar
