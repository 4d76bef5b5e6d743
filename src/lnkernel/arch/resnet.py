"""The residual convolutional network, by a few words."""

from __future__ import annotations

from lnkernel.arch.compose import Serial, parallel, residual, serial
from lnkernel.arch.convolution import Conv
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.homogeneous import Relu
from lnkernel.arch.multilayer import chosen_blocks, known_activation
from lnkernel.arch.node import Node
from lnkernel.arch.norms import LayerNorm, RMSNorm
from lnkernel.arch.pooling import Flatten, GlobalAvgPool
from lnkernel.errors import ArchitectureError


def resnet(
    blocks: int | tuple[int, ...] = 2,
    channels: int = 128,
    *,
    filter: tuple[int, ...] = (3, 3),
    padding: str = "SAME",
    norm: str | None = None,
    activation: Elementwise | None = None,
    pool: bool = True,
    W_std: float = 1.0,
    b_std: float = 0.0,
    outputs: int = 1,
    norm_layer: LayerNorm | RMSNorm | None = None,
) -> Serial:
    r"""A residual network: a Conv, blocks $h + \mathrm{Conv}(\phi(\mathrm{Conv}(\phi(h))))$, then pooling and a Dense.

    Norms and activations stand before each Conv of a block, and before the pooling ("pre-activation", He et al. 2016).

    Args:
        blocks: number of blocks; several numbers are stages, each of which after the first starts with strides of 2
            and a 1 x 1 convolution in the place of the skip.
        channels: of all convolutions.
        filter: size of their filters along each axis; `(3,)` for sequences.
        padding: "SAME" or "CIRCULAR", which keep the size of the images.
        norm: which blocks are normalised, before each activation: None, "first", "last" or "all". With the last two the
            activation before the pooling is, too.
        activation: any activation of this library; `Relu()` by default.
        pool: whether `GlobalAvgPool` stands before the last Dense, or `Flatten`, which takes much less time.
        W_std, b_std: standard deviations of the weights and biases of every Conv and of the Dense.
        outputs: width of the Dense.
        norm_layer: the normalisation; `LayerNorm()` by default.

    >>> import lnkernel as lnk
    >>> lnk.resnet(blocks=1, channels=64, norm="all").layers[1]
    residual(serial(LayerNorm(eps=0.0, scale=False, bias=False), Relu(),
                    Conv(channels=64, filter=(3, 3), strides=(1, 1), padding='SAME', W_std=1.0, b_std=0.0),
                    LayerNorm(eps=0.0, scale=False, bias=False), Relu(),
                    Conv(channels=64, filter=(3, 3), strides=(1, 1), padding='SAME', W_std=1.0, b_std=0.0)))
    """
    stages = blocks if isinstance(blocks, tuple | list) else (blocks,)
    for count in stages or (None,):
        chosen_blocks("resnet", count, norm, "blocks")  # each is a number of its own
    if padding == "VALID":
        raise ArchitectureError(
            "resnet",
            "",
            "padding='VALID' makes the images of a block smaller than those of its skip",
            "Use 'SAME' or 'CIRCULAR'",
        )
    if not isinstance(pool, bool):
        raise ArchitectureError(
            "resnet", "", f"pool must be True or False, got {pool!r}", "Write pool=True"
        )
    count = sum(stages)
    normalised = chosen_blocks("resnet", count, norm, "blocks")
    activation = known_activation("resnet", activation, Relu())
    norm_layer = LayerNorm() if norm_layer is None else norm_layer

    axes = len(Conv(channels, filter).filter)

    def conv(size: tuple[int, ...] = filter, strides: int = 1) -> Conv:
        return Conv(channels, size, (strides,) * axes, padding, W_std=W_std, b_std=b_std)

    starts = {sum(stages[:stage]) for stage in range(1, len(stages))}
    layers: list[Node] = [conv()]
    for block in range(count):
        before = (norm_layer, activation) if block in normalised else (activation,)
        if block in starts:
            inside = serial(*before, conv(strides=2), *before, conv())
            layers.append(parallel(conv((1,) * axes, 2), inside))
        else:
            layers.append(residual(*before, conv(), *before, conv()))
    last = (norm_layer, activation) if count - 1 in normalised else (activation,)
    end = GlobalAvgPool() if pool else Flatten()
    return serial(*layers, *last, end, Dense(outputs, W_std=W_std, b_std=b_std))
