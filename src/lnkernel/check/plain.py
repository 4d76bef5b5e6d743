"""What is known of a hyperparameter when a program is built."""

from __future__ import annotations

from numbers import Real
from typing import Any


def known(value: Any) -> bool:
    """Whether a hyperparameter is a plain number (and not, say, a tracer of `jax.grad`)."""
    return isinstance(value, Real)


def as_float(value: Any) -> float | None:
    """A plain number in float64; None beyond its range, where Python's own error would say less."""
    try:
        return float(value)
    except OverflowError:
        return None


def known_zero(value: Any) -> bool:
    """Whether a hyperparameter is certain to be zero when the program is built."""
    return known(value) and float(value) == 0.0
