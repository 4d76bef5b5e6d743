r"""Positively homogeneous activations, $\phi(u) = a\, u_+^p + b\, (-u)_+^p$.

Each class says its degree $p$ and the two coefficients $a$ and $b$; that is all
the calculus needs to know.
"""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import EVERYWHERE, NOWHERE, Traits, traits
from lnkernel.check.layers import finite, homogeneous_degree, not_all_zero


class PositivelyHomogeneous(Elementwise):
    r"""The common type of the activations with $\phi(\lambda u) = \lambda^p \phi(u)$ for $\lambda > 0$:
    `degree`, `a` and `b` describe them, as fields, constants or properties."""

    degree: float
    a: float
    b: float


@node
class Relu(PositivelyHomogeneous):
    r"""$\phi(u) = \max(u, 0)$: degree 1, $a = 1$, $b = 0$.

    >>> import lnkernel as lnk
    >>> lnk.Relu() == lnk.RectifiedPower(1)
    False
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # E relu(u)^2 = 1/2
    0.5
    """

    degree = 1.0
    a = 1.0
    b = 0.0


@node
class Abs(PositivelyHomogeneous):
    r"""$\phi(u) = |u|$: degree 1, $a = b = 1$.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Abs(), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # E |u|^2 = 1
    1.0
    """

    degree = 1.0
    a = 1.0
    b = 1.0


@node
class LeakyRelu(PositivelyHomogeneous):
    r"""$\phi(u) = \max(u, 0) + \mathrm{slope} \cdot \min(u, 0)$: degree 1, $a = 1$, $b = -\mathrm{slope}$.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.LeakyRelu(0.5), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # (1 + slope^2)/2
    0.625
    """

    slope: float = 0.01

    degree = 1.0
    a = 1.0

    def __post_init__(self) -> None:
        finite(self, "slope")

    @property
    def b(self) -> float:  # type: ignore[override]  # a property stands for a constant
        return -self.slope


@node
class RectifiedPower(PositivelyHomogeneous):
    r"""$\phi(u) = \max(u, 0)^p$ for any real $p > 1/2$.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.RectifiedPower(2), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # E u_+^4 = 3/2
    1.5
    """

    degree: float = static()

    a = 1.0
    b = 0.0

    def __post_init__(self) -> None:
        homogeneous_degree(self)


@node
class Homogeneous(PositivelyHomogeneous):
    r"""$\phi(u) = a\, u_+^p + b\, (-u)_+^p$ for any real degree $p > 1/2$.

    For $p \le 1/2$ the derivative has no second moment, so the NTK does not exist.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Homogeneous(1, a=1.0, b=-1.0), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch)([[1.0]])[0, 0]), 12)  # a = 1, b = -1 is the identity
    1.0
    """

    degree: float = static()
    a: float = 1.0
    b: float = 0.0

    def __post_init__(self) -> None:
        homogeneous_degree(self)
        finite(self, "a")
        finite(self, "b")
        not_all_zero(self, "a", "b")


@traits.register(PositivelyHomogeneous)
def _(layer: PositivelyHomogeneous) -> Traits:
    """A degree other than 1 changes the relative difference of lengths, and so their range."""
    plain = layer.degree == 1
    return Traits(
        needs_difference=NOWHERE if plain else EVERYWHERE,
        needs_range=not plain,
        reads_centred=False,
        is_monotone=True,
        steepness=layer.degree,
    )
