r"""Activations that are analytic but for a few kinks: ELU, SELU and what is cut off at a height.

None is homogeneous, so that their kernels depend on the lengths as well as on the angle; and no series
over polynomials converges fast where there is a kink.
"""

from __future__ import annotations

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node
from lnkernel.arch.traits import Traits, traits
from lnkernel.check.layers import finite, in_order


class Piecewise(Elementwise):
    """The common type of the activations that are analytic between finitely many kinks.

    Their functions, and where the kinks are, stand in `lnkernel.evaluate.float64.functions`, where they are
    computed with.
    """


@node
class Elu(Piecewise):
    r"""$\phi(u) = u$ for $u > 0$, and $\alpha\,(e^u - 1)$ for $u \le 0$.

    >>> import math, lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Elu(), lnk.Dense(1)))
    >>> tail = lambda r: math.exp(r * r / 2) * math.erfc(r / 2**0.5) / 2      # E[exp(ru); u < 0]
    >>> bool(abs(k([[3.0]])[0, 0] - (1 - 2 * tail(1) + tail(2))) < 1e-15)
    True
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        finite(self, "alpha")


@node
class Selu(Piecewise):
    r"""$\phi(u) = \lambda u$ for $u > 0$, and $\lambda\alpha\,(e^u - 1)$ for $u \le 0$, where $\lambda = 1.0507...$ and
    $\alpha = 1.6732...$ make $E\,\phi(u)^2 = 1$ and $E\,\phi(u) = 0$ for a unit Gaussian $u$.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Selu(), lnk.Dense(1)))
    >>> abs(k([[3.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])).round(12).tolist()
    [[1.0, 0.0]]
    """

    # Klambauer et al. 2017, with as many digits as float64 has
    scale = 1.0507009873554805
    alpha = 1.6732632423543772


@node
class Clip(Piecewise):
    r"""$\phi(u) = \min(\max(u, \mathrm{low}), \mathrm{high})$: by default the hard tanh; `Clip(0, 6)` is ReLU6.

    >>> import lnkernel as lnk
    >>> lnk.mlp(hidden=1, width=8, activation=lnk.Clip(0.0, 6.0)).layers[1]
    Clip(low=0.0, high=6.0)
    """

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        finite(self, "low")
        finite(self, "high")
        in_order(self, "low", "high")


@traits.register(Piecewise)
def _(layer: Piecewise) -> Traits:
    """They are computed for lengths that float64 holds."""
    return Traits(
        needs_range=False,
        reads_centred=False,
        steepness=2.0,
        follows_lengths=True,
        notes_growth=True,
    )


@traits.register(Clip)
@traits.register(Elu)
@traits.register(Selu)
def _(layer: Piecewise) -> Traits:
    """They have a slope at 0, or leave less than any power of a short length."""
    return Traits(
        needs_range=False,
        reads_centred=False,
        steepness=1.0,
        follows_lengths=True,
        notes_growth=True,
        quick_way=True,
    )
