"""Activations with a jump: they have an NNGP kernel and no NTK."""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node
from lnkernel.arch.traits import Traits, traits


class Jump(Elementwise):
    """The common type of `Sign` and `Step`, of degree 0: lengths do not matter to them."""


@node
class Sign(Jump):
    r"""$\phi(u) = \mathrm{sign}(u)$. Its derivative has no second moment: there is an NNGP kernel and no NTK.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Sign(), lnk.Dense(1)))
    >>> k([[3.0, 0.0]], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]).round(12).tolist()      # 1 - 2θ/π
    [[1.0, 0.5, 0.0]]
    """


@node
class Step(Jump):
    r"""$\phi(u) = 1$ for $u > 0$ and 0 otherwise. There is an NNGP kernel and no NTK, as for `Sign`.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Step(), lnk.Dense(1)))
    >>> k([[3.0, 0.0]], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]).round(12).tolist()      # (1 - θ/π)/2
    [[0.5, 0.375, 0.25]]
    """


@traits.register(Jump)
def _(layer: Jump) -> Traits:
    return Traits(needs_range=False, reads_centred=False, steepness=0.0, has_ntk=False)
