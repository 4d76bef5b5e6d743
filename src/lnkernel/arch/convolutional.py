"""The convolutional network, by a few words."""

from __future__ import annotations

from lnkernel.arch.compose import Serial, serial
from lnkernel.arch.convolution import Conv
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.homogeneous import Relu
from lnkernel.arch.multilayer import chosen_blocks, known_activation
from lnkernel.arch.node import Node
from lnkernel.arch.norms import LayerNorm, RMSNorm
from lnkernel.arch.pooling import Flatten, GlobalAvgPool
from lnkernel.errors import ArchitectureError


def cnn(
    hidden: int = 3,
    channels: int = 128,
    *,
    filter: tuple[int, ...] = (3, 3),
    padding: str = "SAME",
    norm: str | None = None,
    activation: Elementwise | None = None,
    pool: bool = False,
    W_std: float = 2**0.5,
    b_std: float = 0.1,
    outputs: int = 1,
    norm_layer: LayerNorm | RMSNorm | None = None,
) -> Serial:
    r"""A convolutional network: `hidden` times (Conv, [norm], activation), then Flatten or pooling, then a Dense.

    Args:
        hidden: number of convolutions.
        channels: their channels.
        filter: size of their filters along each axis; `(3,)` for sequences.
        padding: "SAME", "VALID" or "CIRCULAR".
        norm: which of them are normalised, between Conv and activation: None, "first", "last" or "all".
        activation: any activation of this library; `Relu()` by default.
        pool: whether `GlobalAvgPool` stands before the last Dense, or `Flatten`. Pooled kernels compare all pairs of
            positions, which for 32 x 32 images takes 1024 times as long.
        W_std, b_std: standard deviations of the weights and biases of every Conv and of the Dense.
        outputs: width of the Dense.
        norm_layer: the normalisation; `LayerNorm()` by default.

    >>> import lnkernel as lnk
    >>> lnk.cnn(hidden=1, channels=64, norm="first", b_std=0.0, W_std=1.5)
    serial(Conv(channels=64, filter=(3, 3), strides=(1, 1), padding='SAME', W_std=1.5, b_std=0.0),
           LayerNorm(eps=0.0, scale=False, bias=False), Relu(), Flatten(), Dense(width=1, W_std=1.5, b_std=0.0))
    """
    if not isinstance(pool, bool):
        raise ArchitectureError(
            "cnn", "", f"pool must be True or False, got {pool!r}", "Write pool=True"
        )
    normalised = chosen_blocks("cnn", hidden, norm)
    activation = known_activation("cnn", activation, Relu())
    norm_layer = LayerNorm() if norm_layer is None else norm_layer
    layers: list[Node] = []
    for block in range(hidden):
        layers.append(Conv(channels, filter, padding=padding, W_std=W_std, b_std=b_std))
        layers.extend([norm_layer] if block in normalised else [])
        layers.append(activation)
    end = GlobalAvgPool() if pool else Flatten()
    return serial(*layers, end, Dense(outputs, W_std=W_std, b_std=b_std))
