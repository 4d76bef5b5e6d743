"""The steps at which training is measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int

from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError

RATIO = 2**0.5  # of one step to the next by default
At = int | Iterable[int] | None


def choose_steps(at: At, steps: int) -> Int[np.ndarray, " m"]:
    """The steps to measure at, of a run of so many: 0, log-spaced ones, and the last.

    Args:
        at: steps; or about how many log-spaced ones; by default each is √2 times the one before, whatever
            the length of the run.
        steps: how many the run takes; those beyond are left out.

    >>> choose_steps(None, 20).tolist()
    [0, 1, 2, 3, 4, 6, 8, 11, 16, 20]
    >>> choose_steps(5, 1000).tolist(), choose_steps([3, 0, 50], 10).tolist()
    ([0, 1, 6, 32, 178, 1000], [0, 3])
    """
    if at is None:
        most = int(np.ceil(np.log(steps) / np.log(RATIO))) + 1
        some = [0, *np.rint(RATIO ** np.arange(most)).astype(int).tolist(), steps]
    elif isinstance(at, int | np.integer):
        many = positive_integer("at", at)
        some = [0, *np.rint(np.geomspace(1, steps, many)).astype(int).tolist(), steps]
    else:
        some = [_as_step(one) for one in at]
    made = np.unique(np.asarray(some, np.int64))
    return made[made <= steps]


def _as_step(one: Any) -> int:
    if isinstance(one, bool) or not isinstance(one, int | np.integer) or one < 0:
        raise InputError(
            "at", "steps, whole numbers from 0 on", repr(one), "Step 0 is the start of the training"
        )
    return int(one)
