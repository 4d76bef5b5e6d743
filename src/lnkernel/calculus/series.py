r"""The dual of an analytic activation, as a sum over Hermite polynomials.

With the features $a_n(r) = E[\phi(ru)\,h_n(u)]$ of a unit Gaussian $u$ and orthonormal Hermite polynomials $h_n$,

    K' = sum a_n(r1) a_n(r2) rho^n,   r1 r2 E[phi' phi'] = sum n a_n(r1) a_n(r2) rho^(n-1)

(Mehler 1866), and $u\phi'(u)$ has the features $n a_n + \sqrt{(n+1)(n+2)}\,a_{n+2}$.
"""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.smooth import Smooth
from lnkernel.arch.traits import Traits, traits
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.closed import Form
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.forms import form_of
from lnkernel.calculus.special import special

TERMS = 512  # where the inputs are not known before the program runs


@node
class Expanded(Elementwise):
    """An activation with the number of Hermite polynomials that suffices for given inputs.

    Users' networks do not contain it; whoever evaluates one for concrete inputs puts it in.
    """

    layer: Smooth
    terms: int = static()
    degrees: tuple[int, int] | None = static(default=None)  # of tables, where all lengths are equal
    longest: float | None = static(default=None)  # length before it, where that is known


@traits.register
def _(layer: Expanded) -> Traits:
    return traits(layer.layer)


@form_of.register
def _(layer: Expanded, num: Arithmetic) -> Form | None:
    return form_of(layer.layer, num)


@special
def expectations(
    num: Arithmetic,
    layer: Smooth,
    cov: Covariance,
    terms: int,
    degrees: tuple[int, int] | None = None,
    longest: float | None = None,
) -> Dual:
    """the Gaussian expectations of an analytic activation."""
    raise NotImplementedError


@dual.register(Smooth)
def _(layer: Smooth, cov: Covariance, num: Arithmetic) -> Dual:
    return expectations(num, layer, cov, TERMS)


@dual.register
def _(layer: Expanded, cov: Covariance, num: Arithmetic) -> Dual:
    return expectations(num, layer.layer, cov, layer.terms, layer.degrees, layer.longest)
