"""The layers that are written as arithmetic with plain numbers."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import jax
import numpy as np
from flax import nnx

from lnkernel.arch import Clip, Homogeneous, Node, Relu
from lnkernel.check.numbers import as_number
from lnkernel.finite.reading.refusals import NotUnderstoodError

SQUARE = Homogeneous(2, 1.0, 1.0)  # as `jnp.square`, `u * u` and `u**2` are read


def maximum(**constant: Any) -> Node:
    """The layer of the larger of the data and 0, whichever of the two arguments is the constant."""
    if [_plain(value) for value in constant.values()] != [0]:
        raise NotUnderstoodError("it takes the larger of the data and of what is not the number 0")
    return Relu()


def clipped(min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None) -> Node:
    """The layer of `clip`, with the words of JAX or with those of NumPy."""
    low, high = _plain(min if a_min is None else a_min), _plain(max if a_max is None else a_max)
    if low == 0 and (max, a_max) == (None, None):
        return Relu()
    if low is None or high is None:
        raise NotUnderstoodError("it clips the data otherwise than between two numbers")
    return Clip(low, high)


def _plain(value: Any) -> float | None:
    """A number of Python, NumPy or JAX; None for all else."""
    return as_number(value) if isinstance(value, Real | np.ndarray | jax.Array) else None


def fixed_number(value: Any, what_is_done: str) -> float:
    """A number that the line does something with; of an array of JAX nobody knows whether it is trained."""
    if isinstance(value, nnx.Variable):
        came = "parameters, which are trained,"
    elif isinstance(value, jax.Array):
        came = "an array of JAX, which may be trained (a fixed number is one of Python: 2**0.5),"
    else:
        number = _plain(value)
        if number is not None and math.isfinite(number):
            return number
        came = f"what is no number (a {type(value).__name__})" if number is None else f"{number}"
    raise NotUnderstoodError(what_is_done.format(came).rstrip(","))
