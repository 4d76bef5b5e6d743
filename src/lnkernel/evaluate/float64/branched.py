"""Functions with a branch point at zero, from their tables."""

from __future__ import annotations

import math

from jax import Array

from lnkernel.evaluate.float64 import namespace, tables
from lnkernel.evaluate.float64.elementary import polynomial, root


def safe_log(m: Array) -> Array:
    """log m, and at m = 0 a finite number whose derivative is 0."""
    positive, xp = m > 0, namespace.of(m)
    return xp.where(positive, xp.log(xp.where(positive, m, 1.0)), -690.0)


def evaluate_branched(table: tables.Branched, w: Array, log: Array) -> Array:
    """F(w) - 1 for the function that `table` describes."""
    xp = namespace.of(w)
    powers = math.prod([w] * table.order)
    if abs(table.delta) == 0.5:
        half_power = math.prod([w] * int(table.order + table.delta)) * root(w)
        grown = (half_power - powers) / table.delta
    elif abs(table.delta) > 0.2:  # w^s to the last digits, also where s is small
        grown = (xp.exp((table.order + table.delta) * log) - powers) / table.delta
    else:
        ratio = log if table.delta == 0.0 else xp.expm1(table.delta * log) / table.delta
        grown = powers * ratio
    value = powers * polynomial(table.E, w) - grown * polynomial(table.D, w)
    return value if not table.head else value + w * polynomial(table.head, w)
