"""For those who come from neural-tangents: its `stax`, as another way to write an architecture.

`init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(512), stax.Relu(), stax.Dense(1))`. Every
argument that is accepted means what it means there; whatever is not raises and says why.
"""

from typing import Any

from lnkernel.stax import predict
from lnkernel.stax.combinators import FanInConcat, FanInSum, FanOut, parallel, repeat, serial
from lnkernel.stax.dropout import Dropout
from lnkernel.stax.families import Cos, Erf, Exp, Gabor, Gaussian, Rbf, Sigmoid_like, Sin
from lnkernel.stax.kernel import Kernel
from lnkernel.stax.layers import (
    ABRelu,
    Abs,
    Dense,
    Gelu,
    Hermite,
    Identity,
    LayerNorm,
    LeakyRelu,
    Monomial,
    Polynomial,
    RectifiedMonomial,
    Relu,
    Sign,
)
from lnkernel.stax.missing import why_missing
from lnkernel.stax.own_function import Elementwise, ElementwiseNumerical
from lnkernel.stax.places import ImageResize, Index, Slice
from lnkernel.stax.spatial import (
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    Flatten,
    GlobalAvgPool,
    GlobalSelfAttention,
    GlobalSumPool,
    SumPool,
)
from lnkernel.stax.triple import Layer
from lnkernel.stax.words import AttentionMechanism, Padding, PositionalEmbedding

__all__ = [
    "ABRelu",
    "Abs",
    "AttentionMechanism",
    "AvgPool",
    "Conv",
    "ConvLocal",
    "ConvTranspose",
    "Cos",
    "Dense",
    "Dropout",
    "Elementwise",
    "ElementwiseNumerical",
    "Erf",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gabor",
    "Gaussian",
    "Gelu",
    "GlobalAvgPool",
    "GlobalSelfAttention",
    "GlobalSumPool",
    "Hermite",
    "Identity",
    "ImageResize",
    "Index",
    "Kernel",
    "Layer",
    "LayerNorm",
    "LeakyRelu",
    "Monomial",
    "Padding",
    "Polynomial",
    "PositionalEmbedding",
    "Rbf",
    "RectifiedMonomial",
    "Relu",
    "Sigmoid_like",
    "Sign",
    "Sin",
    "Slice",
    "SumPool",
    "parallel",
    "predict",
    "repeat",
    "serial",
]


def __getattr__(name: str) -> Any:
    raise why_missing(name)
