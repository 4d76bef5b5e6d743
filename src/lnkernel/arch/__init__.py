"""What a network is: plain, frozen data that knows nothing of kernels."""

from lnkernel.arch.activations import (
    Abs,
    Activation,
    Homogeneous,
    Identity,
    LeakyRelu,
    RectifiedPower,
    Relu,
)
from lnkernel.arch.compose import Parallel, Serial, mlp, parallel, residual, serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm

__all__ = [
    "Abs",
    "Activation",
    "Dense",
    "GroupNorm",
    "Homogeneous",
    "Identity",
    "LayerNorm",
    "LeakyRelu",
    "Node",
    "Parallel",
    "RMSNorm",
    "RectifiedPower",
    "Relu",
    "Serial",
    "mlp",
    "parallel",
    "residual",
    "serial",
]
