r"""Fixed numbers that every coordinate is multiplied by, or that are added to it.

With them an activation stands for its whole family: $a\,\mathrm{erf}(bu) + c$ is
`serial(Scale(b), Erf(), Scale(a), Shift(c))`, exactly and at all lengths. Neither is trained.
"""

from __future__ import annotations

from lnkernel.arch.flow import Kind, Place, step
from lnkernel.arch.node import Node, node
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.check.layers import finite, not_all_zero
from lnkernel.errors import ArchitectureError


@node
class Scale(Node):
    r"""$u \mapsto \mathrm{factor} \cdot u$, with a fixed number that is not zero. It may stand anywhere.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Scale(3.0), lnk.Relu(), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # E relu(3u)^2 = 9/2
    4.5
    """

    factor: float

    def __post_init__(self) -> None:
        finite(self, "factor")
        not_all_zero(self, "factor")


@node
class Shift(Node):
    r"""$u \mapsto u + \mathrm{offset}$, with a fixed number. Behind it coordinates are not Gaussian.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Erf(), lnk.Shift(1.0), lnk.Dense(1))
    >>> k = lnk.nngp(arch)([[1.0, 0.0]], [[0.0, 1.0]])
    >>> round(float(k[0, 0]), 12)  # erf(u) and erf(v) are independent, with mean 0
    1.0
    """

    offset: float

    def __post_init__(self) -> None:
        finite(self, "offset")


@step.register
def _(layer: Scale, place: Place, here: str) -> Place:
    return place


@step.register
def _(layer: Shift, place: Place, here: str) -> Place:
    if place.kind is Kind.INPUT:
        raise ArchitectureError(
            "Shift",
            here,
            "it acts on the raw input, whose coordinates are not random",
            "Add the number to the data",
        )
    return place.of_features(f"Shift at {here}" if here else "Shift")


@traits.register
def _(layer: Scale) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        is_linear=True,
        is_monotone=True,
        steepness=1.0,
    )


@traits.register
def _(layer: Shift) -> Traits:
    """Lengths stay in range, and their relative errors do not grow."""
    return Traits(needs_range=False, steepness=1.0)
