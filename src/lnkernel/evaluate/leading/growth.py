r"""How Θ(x, x) behaves as |x| → ∞ and as |x| → 0: its leading term, exactly.

The rules of the calculus run here on one more number system: leading terms $c\,R^k$ of
functions of $R \to \infty$. A sum keeps the larger power, a product adds the powers. On the
diagonal all the rules add are non-negative terms, so no leading term ever cancels, and what
comes out is the limit, or the power law, of Θ(x, x) itself and not of a sample of it.

The far end puts $|x|^2/d = R$ in at the start, the near end $|x|^2/d = 1/R$.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax

from lnkernel.arch import Node
from lnkernel.arch.flow import check_network, rows_of
from lnkernel.arch.traits import traits
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import at_input
from lnkernel.errors import ArchitectureError, TransformationError
from lnkernel.evaluate.leading.arithmetic import LeadingTerms
from lnkernel.evaluate.leading.terms import Term, as_term


class Growth(NamedTuple):
    r"""$\Theta(x, x) \sim \text{coefficient} \cdot (|x|/\sqrt d)^{\text{exponent}}$ as |x| → ∞."""

    exponent: float
    coefficient: float


def far(arch: Node) -> Term:
    """The leading term of Θ(x, x) in R = |x|²/d → ∞."""
    return _through(arch, Term(1.0, 1.0))


def near(arch: Node) -> Term:
    """The leading term of Θ(x, x) in R = d/|x|² → ∞: what it tends to as x → 0, x not 0."""
    return _through(arch, Term(1.0, -1.0))


def at_zero(arch: Node) -> float:
    """Θ(0, 0), by the same rules. It is the limit as x → 0 if the first bias is not zero; without
    one it is another number, and infinite where a later layer divides by a length that is 0."""
    try:
        return _through(arch, Term(0.0)).coefficient
    except ZeroDivisionError:
        return math.inf


def growth(arch: Node) -> Growth:
    """The power law of Θ(x, x) in |x|/√d; exponent 0 where it tends to a constant.

    >>> import lnkernel as lnk
    >>> from lnkernel.evaluate.leading.growth import growth
    >>> growth(lnk.mlp(hidden=2, W_std=2**0.5))           # Θ ~ 3 |W x|²/d: degree 1, three layers
    Growth(exponent=2.0, coefficient=6.0...)
    >>> growth(lnk.mlp(hidden=2, activation=lnk.RectifiedPower(3), W_std=1.0)).exponent
    18.0
    """
    term = far(arch)
    return Growth(2 * term.power, term.coefficient)


def concrete(arch: Node) -> Node:
    """`arch` with plain numbers for hyperparameters; inside a transformation there are none."""
    check_network(arch)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arch)):
        raise TransformationError("sup_diagonal")
    made: Node = jax.tree.map(float, arch)
    return made


def amplifying(arch: Node) -> list[tuple[str, Node, bool]]:
    """Every activation that notes its growth with its position, and whether it multiplies Θ/q by a number that grows
    without limit as |x| → ∞."""
    num = LeadingTerms()
    _through(arch, Term(1.0, 1.0), num)
    rows = [(here, layer) for here, layer, _ in rows_of(arch) if traits(layer).notes_growth]
    return [(*row, amplified) for row, amplified in zip(rows, num.amplified, strict=True)]


def _through(arch: Node, square: Term, num: LeadingTerms | None = None) -> Term:
    num = num or LeadingTerms()
    length = Length(square, live=square.coefficient > 0)
    start = Covariance(length, length, w=0.0, z=1.0, c=1.0, e=0.0)
    found = as_term(rule(concrete(arch), at_input(start, start), num).kernels(num).ntk)
    if math.isnan(found.coefficient):
        raise ArchitectureError(
            "LayerNorm",
            "",
            "it stands directly behind an activation that is constant on short inputs, whose variance falls faster "
            "than any power of their length, so that Θ(x, x) is not known near x = 0",
            "Put a Dense between them, or take a larger b_std before the activation",
        )
    return found
