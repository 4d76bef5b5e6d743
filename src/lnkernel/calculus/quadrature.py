r"""The dual of an activation with kinks, or of an analytic one on long inputs: by integrals over one pair.

With independent unit Gaussians $x$ and $y$ the pair is

    u = r1 (sqrt(z) x + sqrt(w) y),   v = r2 (sqrt(z) x - sqrt(w) y),

and the small angle behind the activation is a sum of squares, $w' = \frac14 E\,(\phi(u)/r_1' - \phi(v)/r_2')^2$.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.piecewise import Piecewise
from lnkernel.arch.traits import Traits, traits
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.special import special

Table = tuple[tuple[float, ...], ...]  # Chebyshev coefficients of a few functions of the angle


class Grading(NamedTuple):
    """Integrals are split at distances around the kinks that grow by a ratio, 4 for most functions.

    `levels` is the number of distances, and so how far they reach; there are `fineness` times as many of them.
    If the function is straight beyond the last of them, they suffice for inputs of every length.
    Closed forms may take that none is longer than `longest`; and whether there are `tables` for pairs up to it.
    """

    levels: int
    fineness: int = 1
    straight_beyond: bool = False
    longest: float = math.inf
    tables: bool = False


UNKNOWN = Grading(levels=4)  # where the inputs are not known before the program runs


@node
class Integrated(Elementwise):
    """An activation with what its integrals take for given inputs.

    Users' networks do not contain it; whoever evaluates one for concrete inputs puts it in.

    Attributes:
        layer: the activation.
        table: for inputs that all have one length; without one every pair is integrated.
        grading: where the integrals are split.
    """

    layer: Elementwise
    table: Table = ()
    grading: Grading = static(default=UNKNOWN)


@traits.register
def _(layer: Integrated) -> Traits:
    """A table, or a finer grading, is there to be used; and a table serves all angles alike."""
    known, tabulated = traits(layer.layer), bool(layer.table)
    pairs = layer.grading.tables and layer.grading.fineness == 1
    quick = (known.quick_way or pairs) and not tabulated and layer.grading.fineness == 1
    return replace(
        known,
        needs_compiler=not tabulated,
        quick_way=quick,
        marks_small_angles=quick,
        has_pair_tables=pairs,
    )


@special
def graded_quadrature(
    num: Arithmetic, layer: Elementwise, cov: Covariance, grading: Grading, table: Table
) -> Dual:
    """the integrals over a pair of an activation with kinks, or of one's own."""
    raise NotImplementedError


@dual.register(Piecewise)
def _(layer: Piecewise, cov: Covariance, num: Arithmetic) -> Dual:
    return graded_quadrature(num, layer, cov, UNKNOWN, ())


@dual.register
def _(layer: Integrated, cov: Covariance, num: Arithmetic) -> Dual:
    return graded_quadrature(num, layer.layer, cov, layer.grading, layer.table)
