"""What a network is: plain, frozen data that knows nothing of kernels."""

from lnkernel.arch.activate import Activate
from lnkernel.arch.affine import Scale, Shift
from lnkernel.arch.attention import Attention
from lnkernel.arch.compose import Parallel, Serial, parallel, residual, serial
from lnkernel.arch.convolution import Conv, ConvLocal, ConvTranspose
from lnkernel.arch.convolutional import cnn
from lnkernel.arch.crop import Crop
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise, Identity
from lnkernel.arch.embedding import PositionalEmbedding
from lnkernel.arch.homogeneous import (
    Abs,
    Homogeneous,
    LeakyRelu,
    PositivelyHomogeneous,
    RectifiedPower,
    Relu,
)
from lnkernel.arch.jumps import Sign, Step
from lnkernel.arch.multilayer import mlp
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm
from lnkernel.arch.piecewise import Clip, Elu, Piecewise, Selu
from lnkernel.arch.polynomial import Hermite, Polynomial
from lnkernel.arch.pooling import AvgPool, Flatten, GlobalAvgPool, GlobalSumPool, SumPool
from lnkernel.arch.resize import Resize
from lnkernel.arch.resnet import resnet
from lnkernel.arch.smooth import (
    Cos,
    Erf,
    Gaussian,
    Gelu,
    Sigmoid,
    Silu,
    Sin,
    Smooth,
    Softplus,
    Tanh,
)
from lnkernel.arch.transformer import transformer

__all__ = [
    "Abs",
    "Activate",
    "Attention",
    "AvgPool",
    "Clip",
    "Conv",
    "ConvLocal",
    "ConvTranspose",
    "Cos",
    "Crop",
    "Dense",
    "Elementwise",
    "Elu",
    "Erf",
    "Flatten",
    "Gaussian",
    "Gelu",
    "GlobalAvgPool",
    "GlobalSumPool",
    "GroupNorm",
    "Hermite",
    "Homogeneous",
    "Identity",
    "LayerNorm",
    "LeakyRelu",
    "Node",
    "Parallel",
    "Piecewise",
    "Polynomial",
    "PositionalEmbedding",
    "PositivelyHomogeneous",
    "RMSNorm",
    "RectifiedPower",
    "Relu",
    "Resize",
    "Scale",
    "Selu",
    "Serial",
    "Shift",
    "Sigmoid",
    "Sign",
    "Silu",
    "Sin",
    "Smooth",
    "Softplus",
    "Step",
    "SumPool",
    "Tanh",
    "cnn",
    "mlp",
    "parallel",
    "residual",
    "resnet",
    "serial",
    "transformer",
]
