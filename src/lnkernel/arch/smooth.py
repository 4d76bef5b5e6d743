r"""Analytic activations: their Gaussian expectations are sums over Hermite polynomials.

None is homogeneous, so that their kernels depend on the lengths as well as on the angle.
"""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import Traits, traits
from lnkernel.check.layers import finite, flag, not_all_zero, positive


class Smooth(Elementwise):
    """The common type of the analytic activations.

    Their functions are in `lnkernel.evaluate.float64.functions`, where they are computed with.
    """


@node
class Erf(Smooth):
    r"""$\phi(u) = \mathrm{erf}(u)$.

    >>> import math, lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Erf(), lnk.Dense(1))).diagonal([[1.0]])[0]
    >>> bool(abs(k - 2 / math.pi * math.asin(2 / 3)) < 1e-15)       # (2/π) asin(2q/(1 + 2q))
    True
    """


@node
class Gelu(Smooth):
    r"""$\phi(u) = u\,\Phi(u)$ with the normal distribution function $\Phi$.

    Args:
        approximate: whether $\Phi$ is replaced by $\frac12(1 + \tanh(\sqrt{2/\pi}\,(u + 0.044715\,u^3)))$, as
            in `jax.nn.gelu` by default.

    >>> import lnkernel as lnk
    >>> theta = lnk.ntk(lnk.mlp(hidden=2, norm="all", activation=lnk.Gelu()))
    >>> bool(abs(theta([[1.0]])[0, 0] - theta([[50.0]])[0, 0]) < 1e-15)
    True
    """

    approximate: bool = static(default=False)

    def __post_init__(self) -> None:
        flag(self, "approximate")


@node
class Silu(Smooth):
    r"""$\phi(u) = u/(1 + e^{-\beta u})$, also called swish.

    >>> import lnkernel as lnk
    >>> lnk.mlp(hidden=1, width=8, activation=lnk.Silu()).layers[1]
    Silu(beta=1.0)
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        finite(self, "beta")


@node
class Tanh(Smooth):
    r"""$\phi(u) = \tanh u$.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Tanh(), lnk.Dense(1)))
    >>> round(float(k([[3.0]])[0, 0]), 12)                          # E tanh² of a unit Gaussian
    0.394294490398
    """


@node
class Sigmoid(Smooth):
    r"""$\phi(u) = 1/(1 + e^{-u})$.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Sigmoid(), lnk.Dense(1)))
    >>> round(float(k([[1.0, 0.0]], [[0.0, 1.0]])[0, 0]), 14)        # at a right angle (E φ)² = 1/4
    0.25
    """


@node
class Softplus(Smooth):
    r"""$\phi(u) = \frac1\beta \log(1 + e^{\beta u})$.

    >>> import lnkernel as lnk
    >>> lnk.Softplus(beta=2.0)
    Softplus(beta=2.0)
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        finite(self, "beta")
        positive(self, "beta")


@node
class Sin(Smooth):
    r"""$\phi(u) = \sin(\omega u + \mathrm{phase})$.

    >>> import math, lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Sin(), lnk.Dense(1))).diagonal([[1.0]])[0]
    >>> bool(abs(k - (1 - math.exp(-2)) / 2) < 1e-15)
    True
    """

    omega: float = 1.0
    phase: float = 0.0

    def __post_init__(self) -> None:
        finite(self, "omega")
        finite(self, "phase")
        not_all_zero(self, "omega", "phase")


@node
class Cos(Smooth):
    r"""$\phi(u) = \cos(\omega u)$.

    >>> import math, lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Cos(), lnk.Dense(1))).diagonal([[1.0]])[0]
    >>> bool(abs(k - (1 + math.exp(-2)) / 2) < 1e-15)
    True
    """

    omega: float = 1.0

    def __post_init__(self) -> None:
        finite(self, "omega")


@node
class Gaussian(Smooth):
    r"""$\phi(u) = e^{-u^2}$.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Gaussian(), lnk.Dense(1))).diagonal([[1.0]])[0]
    >>> round(float(k * 5**0.5), 14)                                 # (1 + 4q)^-1/2
    1.0
    """


@traits.register(Smooth)
def _(layer: Smooth) -> Traits:
    """Lengths of any size stay in range: behind it they are at most proportional to those before. Of an
    even function, less its mean, short inputs leave the square."""
    return Traits(
        needs_range=False,
        reads_centred=False,
        steepness=2.0,
        marks_small_angles=True,
        follows_lengths=True,
        notes_growth=True,
    )


@traits.register(Erf)
@traits.register(Gelu)
@traits.register(Sigmoid)
@traits.register(Silu)
@traits.register(Softplus)
@traits.register(Tanh)
def _(layer: Smooth) -> Traits:
    """They have a slope at 0."""
    return Traits(
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        marks_small_angles=True,
        follows_lengths=True,
        notes_growth=True,
    )
