"""Whether numbers are still those that were computed, by one more number that is made of all their bits.

It is a leaf like the others, so that it passes through programs with them, and what has no equal structure elsewhere
need not be compared. Whatever changes the numbers, jax.tree.map or a gradient, does not find the seal that fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from lnkernel.precision import is_traced

BITS = 52  # of a number of float64 between 1 and 2


def are_known(numbers: Iterable[Any]) -> bool:
    """Whether all are numbers, and no tracers or what else JAX puts in their place."""
    kinds = (float, int, np.ndarray, np.generic, jax.Array)
    return all(isinstance(one, kinds) and not is_traced(one) for one in numbers)


def seal(numbers: Iterable[Any]) -> float:
    """A number in [1, 2) that other numbers have with a probability of 2^-52.

    >>> seal([1.0, 2.0]) == seal([1, np.float64(2.0)]), seal([1.0, 2.0]) == seal([1.0, 2.1])
    (True, False)
    """
    text = hashlib.sha256()
    for one in numbers:
        values = np.asarray(one, dtype=np.float64)
        text.update(f"{values.shape}".encode() + values.tobytes())
    return 1.0 + (int.from_bytes(text.digest()[:8], "big") >> (64 - BITS)) * 2.0**-BITS
