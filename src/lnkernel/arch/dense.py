"""The affine layer, in NTK parametrisation."""

from __future__ import annotations

from lnkernel.arch.flow import Place, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.check.layers import finite, integer_at_least, not_negative, positive
from lnkernel.check.plain import known_zero


@node
class Dense(Node):
    r"""$h = \frac{W_{std}}{\sqrt{n_{in}}}\, W a + b_{std}\, b$, with $W, b \sim N(0, 1)$, all trained.

    Args:
        width: number of outputs. Kernels do not depend on it; finite networks do.
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; 0 means no bias.

    >>> import lnkernel as lnk
    >>> lnk.Dense(128, W_std=2**0.5, b_std=0.1)
    Dense(width=128, W_std=1.4142135623730951, b_std=0.1)

    The NNGP kernel of one layer is $W_{std}^2\, x \cdot x'/d + b_{std}^2$:

    >>> arch = lnk.serial(lnk.Dense(1, W_std=2.0, b_std=1.0))
    >>> float(lnk.nngp(arch)([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    23.0
    """

    width: int = static()
    W_std: float = 1.0
    b_std: float = 0.0

    def __post_init__(self) -> None:
        integer_at_least(self, "width", 1)
        finite(self, "W_std")
        positive(self, "W_std")
        finite(self, "b_std")
        not_negative(self, "b_std")


@step.register
def _(layer: Dense, place: Place, here: str) -> Place:
    return place.of_weights(layer.width)


@traits.register
def _(layer: Dense) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        is_linear=True,
        adds_bias=not known_zero(layer.b_std),
        is_monotone=True,
        steepness=1.0,
        needs_mean=False,
    )
