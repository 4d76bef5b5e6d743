"""A few digits of a number that is a bound: rounded to the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def at_most(x: float, digits: int = 6) -> str:
    """The least number of so many digits that is not below x.

    >>> at_most(1377.65262), at_most(3.03), at_most(0.1)     # 0.1 is a bit above one tenth
    ('1377.66', '3.03', '0.100001')
    """
    return _round(x, digits, ROUND_CEILING)


def at_least(x: float, digits: int = 6) -> str:
    """The largest number of so many digits that is not above x.

    >>> at_least(1.5964367e-4)
    '0.000159643'
    """
    return _round(x, digits, ROUND_FLOOR)


def _round(x: float, digits: int, direction: str) -> str:
    if not math.isfinite(x):
        return f"{x:g}"
    exact = Context(prec=digits, rounding=direction).create_decimal(Decimal(x))
    return f"{float(exact):.{digits}g}"
