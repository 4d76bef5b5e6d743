r"""The dual of an activation with kinks, or of an analytic one on long inputs: by integrals over one pair.

With independent unit Gaussians $x$ and $y$ the pair is

    u = r1 (sqrt(z) x + sqrt(w) y),   v = r2 (sqrt(z) x - sqrt(w) y),

and the small angle behind the activation is a sum of squares, $w' = \frac14 E\,(\phi(u)/r_1' - \phi(v)/r_2')^2$.
"""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.piecewise import Piecewise
from lnkernel.arch.traits import Traits, traits
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.special import special

LEVELS = 4  # where the inputs are not known before the program runs

Table = tuple[tuple[float, ...], ...]  # Chebyshev coefficients of a few functions of the angle


@node
class Integrated(Elementwise):
    """An activation with what its integrals take for given inputs.

    Users' networks do not contain it; whoever evaluates one for concrete inputs puts it in.

    Attributes:
        layer: the activation.
        table: for pairs of unit length; without one every pair is integrated.
        levels: of the grading: integrals are split at distances 4^k around the kinks, k = 0 ... levels - 1.
    """

    layer: Elementwise
    table: Table = ()
    levels: int = static(default=LEVELS)


@traits.register
def _(layer: Integrated) -> Traits:
    return traits(layer.layer)


@special
def graded_quadrature(
    num: Arithmetic, layer: Elementwise, cov: Covariance, levels: int, table: Table
) -> Dual:
    """the integrals over a pair of an activation with kinks."""
    raise NotImplementedError


@dual.register(Piecewise)
def _(layer: Piecewise, cov: Covariance, num: Arithmetic) -> Dual:
    return graded_quadrature(num, layer, cov, LEVELS, ())


@dual.register
def _(layer: Integrated, cov: Covariance, num: Arithmetic) -> Dual:
    return graded_quadrature(num, layer.layer, cov, layer.levels, layer.table)
