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

Weights of their own at every position, `ConvLocal`, give equal positions the K and Θ that shared ones do, and different
positions none in common. So all of this holds for them; but a pooling behind them takes means of features that are not
the same at all positions, whatever the image is, and then $C_{dense}$ is an upper bound.

A transposed convolution has zeros between the positions that its filter reads: as with zeros around an image, the means
over the places are of fewer than there are, and $C_{dense}$ is an upper bound. Cropping takes some of the positions,
and resizing takes one for each, or means with weights that are not negative ("linear"), as pooling does.

Attention by a softmax takes means, too. Its weights $\zeta$ are of one input, positive, with sum 1, so that
$q' = \sigma_{OV}^2\,\zeta K\zeta^T + \sigma_b^2$ and
$\Theta' = \sigma_{OV}^2\,\zeta\Theta\zeta^T + 2(q' - \sigma_b^2) + \sigma_b^2$
are at most what two Dense layers, of the standard deviations 1 and $\sigma_{OV}$, make of $\max_p q_p$ and
$\max_p \Theta_{pp}$. As behind a pooling, $q'$ may be small where $\Theta'$ is not, and a norm behind it has no proof.

A norm of all positions and channels together divides $q$ and $\Theta$ by one number, behind a Conv or Dense, whose
means are 0. It keeps $t$; but behind it the mean of $q_p$ over the positions is at most 1, and the largest may be
more. A convolution with strides of 1 that keeps the size of the image counts no pixel more often than the filter is
large, so that the means of $q$ and $\Theta$ are at most what they are in the dense network. `Flatten` takes means, and
of `GlobalAvgPool` $\langle\Theta_{pp'}\rangle \le \langle\Theta_{pp}^{1/2}\rangle^2 \le \langle\Theta_{pp}\rangle$.

Every kind of layer says in `behind` what it is in the dense network, or why nothing is proved; a layer of which nothing
is known is refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn

from lnkernel.arch import (
    Attention,
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    Crop,
    Dense,
    Elementwise,
    Flatten,
    GlobalAvgPool,
    Identity,
    LayerNorm,
    Node,
    PositivelyHomogeneous,
    Resize,
    RMSNorm,
    Scale,
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
        alike: whether an image that is the same everywhere has the same features at all positions.
        only_means: whether the mean of the squared lengths over the positions is bounded, and not the largest one.
    """

    layers: tuple[Node, ...] = ()
    attained: bool = True
    pooled: bool = False
    only_means: bool = False
    alike: bool = True

    @property
    def arch(self) -> Serial:
        return Serial(self.layers)

    def then(self, layer: Node, attained: bool = True, pooled: bool = False) -> Counterpart:
        """With one more layer, a dense one."""
        return dataclasses.replace(
            self,
            layers=(*self.layers, layer),
            attained=self.attained and attained and (self.alike or not pooled),
            pooled=self.pooled or pooled,
        )


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
        layer,
        here,
        "the proof is for layers one after another, of Conv, norms, mean pooling and attention",
    )


@behind.register
def _(layer: Serial, before: Counterpart, here: str) -> Counterpart:
    for number, part in enumerate(layer.layers):
        before = behind(part, before, inside(here, f"layer {number}"))
    return before


@behind.register
def _(layer: Conv, before: Counterpart, here: str) -> Counterpart:
    return _dense_for(layer, before, here)


@behind.register
def _(layer: ConvLocal, before: Counterpart, here: str) -> Counterpart:
    return dataclasses.replace(_dense_for(layer, before, here), alike=False)


@behind.register
def _(layer: ConvTranspose, before: Counterpart, here: str) -> Counterpart:
    """No position is read more often than the filter is large, and there are no fewer of them behind it."""
    dense = Dense(layer.channels, W_std=layer.W_std, b_std=layer.b_std)
    keeps_all = set(layer.strides) == {1} and layer.padding == "CIRCULAR"
    return before.then(dense, attained=keeps_all)


@behind.register
def _(layer: Crop, before: Counterpart, here: str) -> Counterpart:
    _demand_all_bounded(layer, before, here)
    return before.then(Identity())


@behind.register
def _(layer: Resize, before: Counterpart, here: str) -> Counterpart:
    _demand_all_bounded(layer, before, here)
    if not layer.mixes:
        return before.then(Identity())
    if layer.method != "linear":
        _refuse(layer, here, 'the proof is for weights that are not negative, those of "linear"')
    return before.then(Identity(), pooled=True)


def _dense_for(layer: Conv | ConvLocal, before: Counterpart, here: str) -> Counterpart:
    """The counterpart with the Dense that acts at every position."""
    if before.only_means and (layer.padding == "VALID" or set(layer.strides) != {1}):
        _refuse(
            layer,
            here,
            "behind a LayerNorm(axes='all') the mean over the positions is bounded, and it leaves some of them out",
        )
    dense = Dense(layer.channels, W_std=layer.W_std, b_std=layer.b_std)
    return before.then(dense, attained=layer.padding != "SAME")


@behind.register
def _(layer: AvgPool, before: Counterpart, here: str) -> Counterpart:
    _demand_all_bounded(layer, before, here)
    return before.then(Identity(), attained=layer.padding != "SAME", pooled=True)


@behind.register
def _(layer: Attention, before: Counterpart, here: str) -> Counterpart:
    _demand_all_bounded(layer, before, here)
    if layer.weights != "softmax":
        _refuse(layer, here, "the proof is for weights whose sum is 1, those of a softmax")
    values = before.then(Dense(layer.channels))
    return values.then(Dense(layer.channels, W_std=layer.OV_std, b_std=layer.b_std), pooled=True)


@behind.register
def _(layer: GlobalAvgPool, before: Counterpart, here: str) -> Counterpart:
    return before.then(Identity(), pooled=True)


@behind.register
def _(layer: Flatten, before: Counterpart, here: str) -> Counterpart:
    return before.then(Identity())


@behind.register(Dense)
@behind.register(Identity)
@behind.register(Scale)
def _(layer: Dense | Identity | Scale, before: Counterpart, here: str) -> Counterpart:
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
    if layer.bias:
        _refuse(layer, here, "the proof is for norms without a trainable bias")
    if before.pooled:
        _refuse(
            layer,
            here,
            "it stands behind a pooling or attention, and divides by a length that may be small",
        )
    if isinstance(layer, LayerNorm) and layer.axes == "all":
        if layer.scale or not isinstance(before.layers[-1], Dense):
            _refuse(
                layer,
                here,
                "the proof with axes='all' is for norms directly behind a Conv or Dense, without a trainable scale",
            )
        over_channels = dataclasses.replace(layer, axes="channels")
        return dataclasses.replace(before.then(over_channels), only_means=True)
    return dataclasses.replace(before.then(layer), only_means=False)


def _demand_all_bounded(layer: Node, before: Counterpart, here: str) -> None:
    if before.only_means:
        _refuse(
            layer,
            here,
            "behind a LayerNorm(axes='all') the mean over the positions is bounded, and it may take the largest one",
        )


def _refuse(layer: Node, here: str, reason: str) -> NoReturn:
    raise ArchitectureError(
        type(layer).__name__,
        here,
        f"no bound of Θ(x, x) over all images is proved for it here: {reason}",
        "Ask lnkernel.ntk(arch).diagonal(x) for the images that you have",
    )
