"""Self-attention, in the forms whose limit is known in closed form."""

from __future__ import annotations

import dataclasses

from lnkernel.arch.embedding import PositionalEmbedding, demand_channels
from lnkernel.arch.flow import Place, Space, step
from lnkernel.arch.node import Node, node, static
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.arch.window import at_positions
from lnkernel.check.layers import finite, integer_at_least, not_negative, one_of, positive
from lnkernel.check.plain import known_zero
from lnkernel.errors import ArchitectureError

WEIGHTS = ("softmax", "identity", "relu", "abs")
SCALINGS = ("linear", "sqrt")


@node
class Attention(Node):
    r"""$h_p = \frac{\sigma_{OV}}{\sqrt{H m}} \sum_h W^O_h \sum_a \zeta(g^h_p)_a\, V^h_a + b_{std}\, b$: every position
    looks at all, by `heads` heads of size $m$.

    The scores are $g^h_{pa} = \frac{\sigma_{QK}}{m} Q^h_p \cdot K^h_a$ with `scaling="linear"`, where keys and queries
    have the same weights, and $\frac{\sigma_{QK}}{\sqrt m} Q^h_p \cdot K^h_a$ with `scaling="sqrt"`, where they have
    their own. Keys, queries and values are $\frac{1}{\sqrt{n_{in}}} W u$; all weights are standard normal and trained.

    In the first case the scores tend to $\sigma_{QK} K_{pa}(x, x)$: every input has its own, fixed weights. In the
    second they stay random, which has a closed form for `weights="identity"` alone, and needs many heads.
    (Hron, Bahri, Sohl-Dickstein and Novak 2020.)

    Args:
        channels: number of outputs at every position. Kernels depend neither on it nor on `heads`.
        heads: number of heads, of `channels/heads` channels each. Networks of larger width have larger heads, and
            with `scaling="sqrt"` more of them.
        weights: what is made of the scores: "softmax", "identity", "relu" or "abs".
        scaling: "linear" or "sqrt".
        QK_std: the product of the standard deviations of the weights of queries and keys.
        OV_std: that of output and values.
        b_std: standard deviation of the biases; 0 means no bias.
        embedding: a `PositionalEmbedding` for queries and keys alone. One for values too stands before the layer.

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(64), lnk.Attention(64, heads=4), lnk.GlobalAvgPool(), lnk.Dense(1))
    >>> words = np.random.default_rng(0).normal(size=(2, 6, 3))
    >>> lnk.ntk(arch)(words).shape
    (2, 2)
    >>> lnk.Attention(64, scaling="sqrt")
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureError: Attention: weights='softmax' with scaling='sqrt' has no closed form: ...
    """

    channels: int = static()
    heads: int = static(default=1)
    weights: str = static(default="softmax")
    scaling: str = static(default="linear")
    QK_std: float = 1.0
    OV_std: float = 1.0
    b_std: float = 0.0
    embedding: PositionalEmbedding | None = None

    def __post_init__(self) -> None:
        integer_at_least(self, "channels", 1)
        integer_at_least(self, "heads", 1)
        one_of(self, "weights", WEIGHTS)
        one_of(self, "scaling", SCALINGS)
        for name in ("QK_std", "OV_std"):
            finite(self, name)
            positive(self, name)
        finite(self, "b_std")
        not_negative(self, "b_std")
        if self.channels % self.heads:
            self._refuse(
                f"{self.heads} heads do not divide its {self.channels} channels",
                "Choose channels as a multiple of heads",
            )
        if self.scaling == "sqrt" and self.weights != "identity":
            self._refuse(
                f"weights={self.weights!r} with scaling='sqrt' has no closed form: the scores stay random at every "
                "width, and the kernel is an integral over all of them",
                "Take scaling='linear', or weights='identity'",
            )
        if not isinstance(self.embedding, PositionalEmbedding | None):
            self._refuse(
                f"embedding must be a PositionalEmbedding, got {self.embedding!r}",
                "Write e.g. embedding=PositionalEmbedding(1.0)",
            )

    def _refuse(self, reason: str, remedy: str) -> None:
        raise ArchitectureError("Attention", "", reason, remedy)


@step.register
def _(layer: Attention, place: Place, here: str) -> Place:
    axes = at_positions(layer, place, here)
    if layer.embedding is not None:
        demand_channels(layer, place, here)
    behind = place.of_weights(layer.channels)
    return dataclasses.replace(behind, space=Space.POSITIONS, axes=axes)


@traits.register
def _(layer: Attention) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        adds_bias=not known_zero(layer.b_std),
        steepness=1.0 if layer.weights == "softmax" else 3.0,
        on_positions=True,
        mixes_positions=True,
    )
