"""What the integrals of an activation take for given inputs; and whether they are what they should be."""

from __future__ import annotations

from typing import Any

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import Node
from lnkernel.calculus.quadrature import Grading, Integrated
from lnkernel.errors import ActivationRangeError
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.panels import levels_for
from lnkernel.evaluate.float64.resolution import LONGEST, demand_resolved
from lnkernel.evaluate.float64.tabulation import table_of

MARGIN = 1.1  # the lengths are known roughly


def prepare_integrals(part: Any, plain: Elementwise, length: float) -> Node:
    """`part`, with what it takes for vectors of up to this length; `plain` is the same with plain numbers."""
    if not length <= LONGEST:
        raise ActivationRangeError(type(plain).__name__, length, LONGEST)
    levels = levels_for(function_of(plain), MARGIN * length)
    demand_resolved(plain, levels, length)
    table = table_of(plain) if length == 1 else ()  # behind a normalisation
    return Integrated(part, table, Grading(levels))
