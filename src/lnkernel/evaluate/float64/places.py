"""Arrays at other places of an axis, and sums along it with weights."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from lnkernel.arch.places import NOTHING
from lnkernel.calculus.places import places_along
from lnkernel.calculus.resize import matrix_along
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.precise import plain
from lnkernel.types import Array


@places_along.register
def _(num: Float64, x: Any, axis: int, places: np.ndarray) -> Any:
    there = places != NOTHING

    def of(part: Array) -> Array:
        xp = namespace.of(part)
        made: Array = xp.take(part, np.where(there, places, 0), axis=axis)
        if there.all():
            return made
        shape = [1] * made.ndim
        shape[axis] = len(places)
        return xp.where(there.reshape(shape), made, xp.zeros((), made.dtype))

    return jax.tree.map(of, x)


@matrix_along.register
def _(num: Float64, x: Any, axis: int, matrix: np.ndarray) -> Any:
    x = plain(x)
    xp = namespace.of(x)
    return xp.moveaxis(xp.tensordot(matrix, x, (1, axis)), 0, axis)
