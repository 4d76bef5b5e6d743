"""What is known of a hyperparameter when a program is built."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

from lnkernel.precision import is_traced


def known(value: Any) -> bool:
    """Whether a hyperparameter is a plain number (and not, say, a tracer of `jax.grad`)."""
    return isinstance(value, Real)


def as_integer(value: Any) -> int | None:
    """A plain integer out of whatever is one, of NumPy or JAX as well; None for all else, booleans and tracers too."""
    if isinstance(value, bool) or is_traced(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_float(value: Any) -> float | None:
    """A plain number in float64; None beyond its range, where Python's own error would say less."""
    try:
        return float(value)
    except OverflowError:
        return None


def known_zero(value: Any) -> bool:
    """Whether a hyperparameter is certain to be zero when the program is built."""
    return known(value) and float(value) == 0.0
