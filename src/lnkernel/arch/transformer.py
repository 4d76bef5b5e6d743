"""The transformer, by a few words."""

from __future__ import annotations

from lnkernel.arch.attention import Attention
from lnkernel.arch.compose import Serial, residual, serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.embedding import PositionalEmbedding
from lnkernel.arch.multilayer import as_count, chosen_blocks, known_activation
from lnkernel.arch.node import Node
from lnkernel.arch.norms import LayerNorm, RMSNorm
from lnkernel.arch.pooling import Flatten, GlobalAvgPool
from lnkernel.arch.smooth import Gelu
from lnkernel.errors import ArchitectureError

NORMS = (None, "pre", "post")


def transformer(
    blocks: int = 2,
    channels: int = 128,
    *,
    heads: int = 4,
    expansion: int = 4,
    norm: str | None = "pre",
    activation: Elementwise | None = None,
    embedding: PositionalEmbedding | None = None,
    pool: bool = True,
    QK_std: float = 1.0,
    W_std: float = 1.0,
    b_std: float = 0.0,
    outputs: int = 1,
    norm_layer: LayerNorm | RMSNorm | None = None,
) -> Serial:
    r"""A transformer: `blocks` times attention and a small network at every position, each with a skip around it.

    Before them stands a Dense, which gives every position its `channels`, and a positional embedding if one is given;
    behind them pooling and a Dense. Scores are scaled linearly, as `Attention` says.

    Args:
        blocks: number of pairs of attention and network.
        channels: at every position.
        heads: of each attention.
        expansion: how many times as wide the network at every position is inside.
        norm: "pre" has a norm at the start of each branch, and one at the end, as is usual now (Xiong et al. 2020);
            "post" has one behind each sum (Vaswani et al. 2017); None has none.
        activation: any activation of this library; `Gelu()` by default.
        embedding: a `PositionalEmbedding`; without one the order of the positions does not count.
        pool: whether `GlobalAvgPool` stands before the last Dense, or `Flatten`.
        QK_std: of the scores, see `Attention`.
        W_std, b_std: standard deviations of the weights and biases of every Dense, and of values and outputs.
        outputs: width of the last Dense.
        norm_layer: the normalisation; `LayerNorm()` by default.

    >>> import numpy as np, lnkernel as lnk
    >>> arch = lnk.transformer(blocks=1, channels=64, embedding=lnk.PositionalEmbedding(0.5))
    >>> arch.layers[2]
    residual(serial(LayerNorm(eps=0.0, scale=False, bias=False),
                    Attention(channels=64, heads=4, weights='softmax', scaling='linear', QK_std=1.0, OV_std=1.0,
                              b_std=0.0, embedding=None)))
    >>> lnk.ntk(arch)(np.random.default_rng(0).normal(size=(2, 5, 3))).shape
    (2, 2)
    """
    chosen_blocks("transformer", blocks, None, "blocks")
    if norm not in NORMS:
        _refuse(f"norm={norm!r} is not known", 'Use "pre", "post" or None')
    if not isinstance(pool, bool):
        _refuse(f"pool must be True or False, got {pool!r}", "Write pool=True")
    expansion = as_count("transformer", "expansion", expansion, "Write e.g. expansion=4")
    activation = known_activation("transformer", activation, Gelu())
    norm_layer = LayerNorm() if norm_layer is None else norm_layer

    def dense(width: int) -> Dense:
        return Dense(width, W_std=W_std, b_std=b_std)

    attention = Attention(channels, heads, QK_std=QK_std, OV_std=W_std * W_std, b_std=b_std)
    network = dense(expansion * channels), activation, dense(channels)
    layers: list[Node] = [dense(channels), *([] if embedding is None else [embedding])]
    for _ in range(blocks):
        for branch in ((attention,), network):
            before = (norm_layer,) if norm == "pre" else ()
            layers.append(residual(*before, *branch))
            layers.extend([norm_layer] if norm == "post" else [])
    layers.extend([norm_layer] if norm == "pre" else [])
    end = GlobalAvgPool() if pool else Flatten()
    return serial(*layers, end, dense(outputs))


def _refuse(reason: str, remedy: str) -> None:
    raise ArchitectureError("transformer", "", reason, remedy)
