"""What the integrals of an activation take for given inputs; and whether they are what they should be."""

from __future__ import annotations

import math
from typing import Any

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import Node
from lnkernel.calculus.quadrature import Integrated
from lnkernel.errors import ActivationRangeError
from lnkernel.evaluate.float64.asymptotes import asymptotes_of
from lnkernel.evaluate.float64.closed_pairs import closed_pair
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.known_pairs import known_pairs
from lnkernel.evaluate.float64.panels import grading_for, is_polynomial
from lnkernel.evaluate.float64.resolution import FARTHEST, LONGEST, demand_resolved
from lnkernel.evaluate.float64.tabulation import table_of

MARGIN = 1.1  # the lengths are known roughly


def prepare_integrals(
    part: Any, plain: Elementwise, length: float, of_any: bool, most: float
) -> Node:
    """`part`, with what it takes for vectors of up to this length, or of it alone if it is the length `of_any` inputs;
    `plain` is the same with plain numbers. Before equal layers there are vectors of up to the length `most`, and tables
    are shared."""
    phi = function_of(plain)
    reach = _reach_of_bends(plain)
    longest = LONGEST if reach is None else FARTHEST
    if not length <= longest:
        raise ActivationRangeError(type(plain).__name__, length, longest)
    grading = grading_for(phi, MARGIN * length, reach)._replace(longest=_rounded(length))
    if closed_pair(plain) is None:  # our own functions with kinks are resolved
        demand_resolved(plain, grading.levels, length)
    # behind a normalisation; double integrals, which take seconds, are made for unit length alone
    tabulated = of_any and (length == 1 or closed_pair(plain) is not None)
    table = table_of(plain, length) if tabulated else ()
    if not table:
        tried = (_rounded(each) for each in (most, length))
        known = known_pairs(plain)
        suited = next((each for each in tried if known.suits(each)), None)
        if suited is not None:
            grading = grading._replace(longest=suited, tables=True)
    return Integrated(part, table, grading)


def _rounded(length: float) -> float:
    """The length that tables and closed forms reach, of few, so that few programs are compiled."""
    if not math.isfinite(length):
        return math.inf
    return float(2.0 ** (math.ceil(2 * math.log2(max(1.0, MARGIN * length))) / 2))


def _reach_of_bends(plain: Elementwise) -> float | None:
    """The |u| beyond which a function is straight, or a polynomial, as it may be from 0 on; None where nobody knows."""
    if is_polynomial(function_of(plain)):
        return 0.0
    lines = asymptotes_of(plain)
    return None if lines is None else float(lines.reach)
