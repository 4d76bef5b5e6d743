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
"""

from __future__ import annotations

from lnkernel.arch import (
    AvgPool,
    Conv,
    Dense,
    Elementwise,
    Flatten,
    GlobalAvgPool,
    GroupNorm,
    Identity,
    LayerNorm,
    Node,
    PositivelyHomogeneous,
    RMSNorm,
    Serial,
)
from lnkernel.errors import ArchitectureError

NORMS = LayerNorm | RMSNorm | GroupNorm


def dense_counterpart(arch: Node) -> Serial:
    """The dense network with the same layers, whose C bounds that of `arch`; an error where that is not proved.

    >>> import lnkernel as lnk
    >>> dense_counterpart(lnk.serial(lnk.Conv(8, (3, 3)), lnk.Relu(), lnk.Flatten(), lnk.Dense(1)))
    serial(Dense(width=8, W_std=1.0, b_std=0.0), Relu(), Identity(), Dense(width=1, W_std=1.0, b_std=0.0))
    """
    layers = arch.layers if isinstance(arch, Serial) else (arch,)
    last_norm = max((k for k, layer in enumerate(layers) if isinstance(layer, NORMS)), default=-1)
    return Serial(tuple(_dense(k, layer, last_norm) for k, layer in enumerate(layers)))


def attains(arch: Node) -> bool:
    """Whether an image that is the same everywhere has the Θ(x, x) of the dense network: no zeros come in."""
    layers = arch.layers if isinstance(arch, Serial) else (arch,)
    return all(getattr(layer, "padding", "VALID") != "SAME" for layer in layers)


def _dense(place: int, layer: Node, last_norm: int) -> Node:
    here = f"layer {place}"
    if isinstance(layer, Conv):
        return Dense(layer.channels, W_std=layer.W_std, b_std=layer.b_std)
    if isinstance(layer, AvgPool | GlobalAvgPool):
        if place < last_norm:
            raise _refusal(
                layer,
                here,
                "a norm behind a pooling divides by a length that pooling may make small",
            )
        return Identity()
    if isinstance(layer, Flatten):
        return Identity()
    if isinstance(layer, Elementwise) and not (
        isinstance(layer, PositivelyHomogeneous) and layer.degree == 1
    ):
        raise _refusal(layer, here, "the proof is for activations of degree 1, such as Relu")
    if isinstance(layer, LayerNorm) and (layer.bias or layer.axes == "all"):
        raise _refusal(
            layer, here, "the proof is for norms over the channels, without a trainable bias"
        )
    if isinstance(layer, Dense | Elementwise | Identity | LayerNorm | RMSNorm):
        return layer
    raise _refusal(
        layer, here, "the proof is for layers one after another, of Conv, norms and mean pooling"
    )


def _refusal(layer: Node, here: str, reason: str) -> ArchitectureError:
    return ArchitectureError(
        type(layer).__name__,
        here,
        f"no bound of Θ(x, x) over all images is proved for it here: {reason}",
        "Ask lnkernel.ntk(arch).diagonal(x) for the images that you have",
    )
