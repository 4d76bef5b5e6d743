"""What is made of few single inputs, kept by their numbers.

The diagonal of a small matrix, both sides of its quick pairs and its delicate pairs ask for the same, layer by layer,
and at twice the digits that takes longer than the pairs do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

import jax
import numpy as np

from lnkernel.evaluate.float64.gathered import FEW, Gathered
from lnkernel.evaluate.float64.precise import Precise, is_single

T = TypeVar("T")

MOST = 512  # results


def keep(what: Hashable, compute: Callable[[Precise], T], q: Precise) -> T:
    """`compute(q)`, a tree of numbers of single inputs; `what` tells all else that it depends on."""
    if isinstance(q, Gathered):
        return _at(q.index, keep(what, compute, q.inputs))
    if q.exponent is not None:
        return compute(q)
    if is_single(q.high) and is_single(q.low):
        return _kept((what, q.high, q.low), lambda: compute(q))
    if not (isinstance(q.high, np.ndarray) and 0 < q.high.size <= FEW):
        return compute(q)
    shape = q.high.shape
    high, low = (np.broadcast_to(part, shape).ravel() for part in (q.high, q.low))
    made = _kept((what, high.tobytes(), low.tobytes()), lambda: compute(Precise(high, low)))
    found: T = jax.tree.map(lambda part: part.reshape(shape) if np.ndim(part) else part, made)
    return found


def per_input(compute: Callable[[Precise], T], q: Precise) -> T:
    """`compute(q)`, a tree of numbers of single inputs: done once for each of them."""
    return _at(q.index, compute(q.inputs)) if isinstance(q, Gathered) else compute(q)


def _at(index: np.ndarray, made: Any) -> Any:
    """The same of pairs."""
    if isinstance(made, Precise):
        return Gathered(made, index) if np.ndim(made.high) else made
    if isinstance(made, tuple):
        parts = (_at(index, part) for part in made)
        return type(made)(*parts) if hasattr(made, "_fields") else tuple(parts)
    return made[index] if np.ndim(made) else made


def _kept(key: Hashable, compute: Callable[[], Any]) -> Any:
    with _lock:
        if key in _results:
            _results.move_to_end(key)
            return _results[key]
    made = compute()
    with _lock:
        _results[key] = made
        while len(_results) > MOST:
            _results.popitem(last=False)
    return made


_results: OrderedDict[Hashable, Any] = OrderedDict()
_lock = Lock()
