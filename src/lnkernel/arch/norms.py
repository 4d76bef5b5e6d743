"""Normalisations: over all features, or over groups of a fixed size."""

from __future__ import annotations

from lnkernel.arch.node import Node, node, static
from lnkernel.check import finite, flag, group_has_limit, integer_at_least, not_negative


@node
class LayerNorm(Node):
    r"""$\hat u_i = (u_i - \bar u)/\sqrt{\mathrm{var}(u) + \epsilon}$, over all features.

    Args:
        eps: added to the variance. The default 0 is the exact normalisation.
        scale: whether a trainable factor per feature follows (1 at the start).
        bias: whether a trainable offset per feature follows (0 at the start).

    With `eps=0` an input whose features are all equal has no direction; its
    output is 0, the limit of small `eps`.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
    >>> theta = lnk.ntk(arch)
    >>> theta.diagonal([[1.0], [1e6]]).tolist()    # the same, however long the input
    [2.0, 2.0]
    """

    eps: float = 0.0
    scale: bool = static(default=False)
    bias: bool = static(default=False)

    def __post_init__(self) -> None:
        finite(self, "eps")
        not_negative(self, "eps")
        flag(self, "scale")
        flag(self, "bias")


@node
class RMSNorm(Node):
    r"""$\hat u_i = u_i/\sqrt{\mathrm{mean}(u^2) + \epsilon}$, over all features.

    Args:
        eps: added to the mean square.
        scale: whether a trainable factor per feature follows (1 at the start).

    On a Gaussian state it has the kernel of `LayerNorm`; after an activation it
    has not, because the mean of the features stays.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.RMSNorm(), lnk.Dense(1))
    >>> float(lnk.nngp(arch).diagonal([[5.0]])[0])
    1.0
    """

    eps: float = 0.0
    scale: bool = static(default=False)

    @property
    def bias(self) -> bool:
        return False

    def __post_init__(self) -> None:
        finite(self, "eps")
        not_negative(self, "eps")
        flag(self, "scale")


@node
class GroupNorm(Node):
    r"""Normalisation in groups of a fixed size while the number of groups goes to infinity.

    With $\nu$ degrees of freedom (the group size, less one if centred) and
    correlation $\rho$, the NNGP kernel is
    $\kappa_\nu(\rho) = \frac{2}{\nu}\Big(\frac{\Gamma((\nu+1)/2)}{\Gamma(\nu/2)}\Big)^2
    \rho\; {}_2F_1(\tfrac12, \tfrac12; \tfrac\nu2 + 1; \rho^2)$,
    which tends to $\rho$, LayerNorm's kernel, as the groups grow.

    Args:
        group_size: features per group.
        eps: must be 0: there is no closed form otherwise.
        centre: whether the group's mean is subtracted.
        scale: whether a trainable factor per feature follows (1 at the start).
        bias: whether a trainable offset per feature follows (0 at the start).

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.GroupNorm(2), lnk.Dense(1))
    >>> k = lnk.nngp(arch)([[1.0, 0.0]], [[1.0, 1.0]])[0, 0]
    >>> round(float(k), 12)                        # groups of two: (2/pi) asin(rho)
    0.5
    """

    group_size: int = static()
    eps: float = 0.0
    centre: bool = static(default=True)
    scale: bool = static(default=False)
    bias: bool = static(default=False)

    def __post_init__(self) -> None:
        integer_at_least(self, "group_size", 2)
        finite(self, "eps")
        not_negative(self, "eps")
        for name in ("centre", "scale", "bias"):
            flag(self, name)
        group_has_limit(self)

    @property
    def degrees_of_freedom(self) -> int:
        return self.group_size - 1 if self.centre else self.group_size
