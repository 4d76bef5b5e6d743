"""The names by which texts and files call layers and combinators.

`parse` (for command lines) and saved certificates read names and never run code; what is not in here
they refuse. A layer from outside of the library enters by `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lnkernel.arch.affine import Scale, Shift
from lnkernel.arch.attention import Attention
from lnkernel.arch.compose import Parallel, Serial, parallel, residual, serial
from lnkernel.arch.convolution import Conv, ConvLocal, ConvTranspose
from lnkernel.arch.convolutional import cnn
from lnkernel.arch.crop import Crop
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Identity
from lnkernel.arch.embedding import PositionalEmbedding
from lnkernel.arch.homogeneous import Abs, Homogeneous, LeakyRelu, RectifiedPower, Relu
from lnkernel.arch.jumps import Sign, Step
from lnkernel.arch.multilayer import mlp
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm
from lnkernel.arch.piecewise import Clip, Elu, Selu
from lnkernel.arch.polynomial import Hermite, Polynomial
from lnkernel.arch.pooling import AvgPool, Flatten, GlobalAvgPool, GlobalSumPool, SumPool
from lnkernel.arch.resize import Resize
from lnkernel.arch.resnet import resnet
from lnkernel.arch.smooth import Cos, Erf, Gaussian, Gelu, Sigmoid, Silu, Sin, Softplus, Tanh
from lnkernel.arch.transformer import transformer

Builder = TypeVar("Builder", bound=Callable[..., Node])

BUILDERS: dict[str, Callable[..., Node]] = {}  # by what texts call them
LAYERS: dict[str, type[Node]] = {"Serial": Serial, "Parallel": Parallel}  # of saved certificates

# layers that people look for, which have no kernel in closed form: the reason and a way on
NONE_SUCH: dict[str, tuple[str, str]] = {
    "MaxPool": (
        "the largest of several correlated features has no kernel in closed form",
        "Use AvgPool, or a Conv with strides",
    ),
    "GlobalMaxPool": (
        "the largest of several correlated features has no kernel in closed form",
        "Use GlobalAvgPool",
    ),
    "BatchNorm": (
        "it normalises over a batch, so that one input's output depends on the other inputs",
        "Use LayerNorm",
    ),
    "Dropout": ("it is random at every call", "Leave it out"),
}


def register(builder: Builder) -> Builder:
    """Let texts and certificates name this layer, or function that builds one, by its own name.

    >>> import lnkernel as lnk
    >>> from lnkernel.arch.node import node
    >>> from lnkernel.arch.registry import BUILDERS, register
    >>> @register
    ... @node
    ... class Bent(lnk.PositivelyHomogeneous):
    ...     degree, a, b = 1.0, 1.0, 0.5
    >>> lnk.parse("serial(Dense(8), Bent(), Dense(1))").layers[1]
    Bent()
    >>> _ = BUILDERS.pop("Bent")
    """
    name = builder.__name__
    if BUILDERS.get(name, builder) is not builder:
        raise ValueError(f"a layer of the name {name} is registered already; choose another name")
    BUILDERS[name] = builder
    if isinstance(builder, type):
        LAYERS[name] = builder
    return builder


for _builder in (
    *(Dense, Relu, LeakyRelu, Abs, Homogeneous, RectifiedPower, Identity, Scale, Shift),
    *(Gelu, Silu, Tanh, Erf, Sigmoid, Softplus, Sin, Cos, Gaussian),
    *(Elu, Selu, Clip, Sign, Step, Polynomial, Hermite),
    *(
        Conv,
        ConvLocal,
        ConvTranspose,
        Crop,
        Resize,
        AvgPool,
        SumPool,
        GlobalAvgPool,
        GlobalSumPool,
        Flatten,
        Attention,
        PositionalEmbedding,
    ),
    *(LayerNorm, RMSNorm, GroupNorm, serial, residual, parallel, mlp, cnn, resnet, transformer),
):
    register(_builder)
