r"""C of networks on images and sequences, by that of the dense network with the same layers.

Let $q_p = K_{pp}(x, x)$, $t_p = \Theta_{pp}(x, x)/q_p$, for activations of degree 1, $\phi(cu) = c\,\phi(u)$ for $c >
0$. A convolution is $q' = \sigma_w^2\langle q\rangle + \sigma_b^2$ and $t' = 1 + \sigma_w^2\langle t
q\rangle/(\sigma_w^2\langle q\rangle + \sigma_b^2) \le 1 + \max t$: a mean with weights. An activation and a norm over
the channels do to $t$ at every position what they do in the dense network. So up to the last norm $\max_p t_p$ is at
most the supremum of $t$ in the dense network, which it has as $|x| \to \infty$ (docs/bound.md), and behind the last
norm $q_p$ and $\Theta_{pp}$ are at most what they are there. All layers behind it, also pooling, of which
$|\Theta_{pp'}| \le \max_p \Theta_{pp}$ and $|K_{pp'}| \le \max_p q_p$, keep that. So $C \le C_{dense}$. For an image
that is the same at all positions, and without zeros around it, all positions are alike and what is computed is the
dense network: with circular (or no) padding $C = C_{dense}$.

Every kind of layer says in `behind` what it is in the dense network, or why nothing is proved; a layer of which nothing
is known is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn

from lnkernel.arch import (
    AvgPool,
    Conv,
    Dense,
    Elementwise,
    Flatten,
    GlobalAvgPool,
    Identity,
    LayerNorm,
    Node,
    PositivelyHomogeneous,
    RMSNorm,
    Serial,
)
from lnkernel.arch.facts import is_monotone
from lnkernel.arch.flow import inside
from lnkernel.errors import ArchitectureError


@dataclass(frozen=True)
class Counterpart:
    """The dense network with the same layers, whose C bounds that of the network on images.

    Attributes:
        layers: its layers so far.
        attained: whether an image that is the same everywhere has the Θ(x, x) of the dense network: no zeros come in.
        pooled: whether a mean over positions has been taken. A norm behind it has no proof.
    """

    layers: tuple[Node, ...] = ()
    attained: bool = True
    pooled: bool = False

    @property
    def arch(self) -> Serial:
        return Serial(self.layers)

    def then(self, layer: Node, attained: bool = True, pooled: bool = False) -> Counterpart:
        """With one more layer, a dense one."""
        return Counterpart((*self.layers, layer), self.attained and attained, self.pooled or pooled)


def dense_counterpart(arch: Node) -> Counterpart:
    """The dense network of `arch`; an error where it is not proved that its C bounds that of `arch`.

    >>> import lnkernel as lnk
    >>> found = dense_counterpart(lnk.serial(lnk.Conv(8, (3, 3)), lnk.Relu(), lnk.Flatten(), lnk.Dense(1)))
    >>> found.arch
    serial(Dense(width=8, W_std=1.0, b_std=0.0), Relu(), Identity(), Dense(width=1, W_std=1.0, b_std=0.0))
    >>> found.attained                                    # the convolution has zeros around its image
    False
    """
    return behind(arch, Counterpart(), "")


def demand_monotone(dense: Node) -> None:
    """Refuse a dense counterpart whose Θ(x, x) may decrease in |x|: the proof needs that it does not."""
    if not is_monotone(dense):
        raise ArchitectureError(
            "network",
            "",
            "no bound of Θ(x, x) over all images is proved for it here: in the dense network with the same "
            "layers Θ(x, x) may decrease in |x|",
            "Leave trainable biases of norms out, or ask lnkernel.ntk(arch).diagonal(x) for your images",
        )


@singledispatch
def behind(layer: Node, before: Counterpart, here: str) -> Counterpart:
    """The counterpart with this layer; each kind of layer registers its own."""
    _refuse(
        layer, here, "the proof is for layers one after another, of Conv, norms and mean pooling"
    )


@behind.register
def _(layer: Serial, before: Counterpart, here: str) -> Counterpart:
    for number, part in enumerate(layer.layers):
        before = behind(part, before, inside(here, f"layer {number}"))
    return before


@behind.register
def _(layer: Conv, before: Counterpart, here: str) -> Counterpart:
    dense = Dense(layer.channels, W_std=layer.W_std, b_std=layer.b_std)
    return before.then(dense, attained=layer.padding != "SAME")


@behind.register
def _(layer: AvgPool, before: Counterpart, here: str) -> Counterpart:
    return before.then(Identity(), attained=layer.padding != "SAME", pooled=True)


@behind.register
def _(layer: GlobalAvgPool, before: Counterpart, here: str) -> Counterpart:
    return before.then(Identity(), pooled=True)


@behind.register
def _(layer: Flatten, before: Counterpart, here: str) -> Counterpart:
    return before.then(Identity())


@behind.register(Dense)
@behind.register(Identity)
def _(layer: Dense | Identity, before: Counterpart, here: str) -> Counterpart:
    return before.then(layer)


@behind.register
def _(layer: Elementwise, before: Counterpart, here: str) -> Counterpart:
    _refuse(layer, here, "the proof is for activations of degree 1, such as Relu")


@behind.register
def _(layer: PositivelyHomogeneous, before: Counterpart, here: str) -> Counterpart:
    if layer.degree != 1:
        _refuse(layer, here, "the proof is for activations of degree 1, such as Relu")
    return before.then(layer)


@behind.register(LayerNorm)
@behind.register(RMSNorm)
def _(layer: LayerNorm | RMSNorm, before: Counterpart, here: str) -> Counterpart:
    if layer.bias or getattr(layer, "axes", "channels") == "all":
        _refuse(layer, here, "the proof is for norms over the channels, without a trainable bias")
    if before.pooled:
        _refuse(
            layer, here, "it stands behind a pooling, and divides by a length that may be small"
        )
    return before.then(layer)


def _refuse(layer: Node, here: str, reason: str) -> NoReturn:
    raise ArchitectureError(
        type(layer).__name__,
        here,
        f"no bound of Θ(x, x) over all images is proved for it here: {reason}",
        "Ask lnkernel.ntk(arch).diagonal(x) for the images that you have",
    )
