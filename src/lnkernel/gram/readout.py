"""A readout: dense layers without an activation. They take K and Θ as they are, whatever the lengths of the inputs."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from lnkernel.arch import Dense, Identity, Node, Scale, Serial
from lnkernel.calculus.state import Kernels


@singledispatch
def is_readout(layer: Node) -> bool:
    """Whether it consists of dense layers, and fixed factors, alone."""
    return False


@is_readout.register(Dense)
@is_readout.register(Identity)
@is_readout.register(Scale)
def _(layer: Node) -> bool:
    return True


@is_readout.register
def _(layer: Serial) -> bool:
    return all(map(is_readout, layer.layers))


def read_out(layer: Node, kernels: Kernels) -> Kernels:
    r"""$K' = \sigma_w^2 K + \sigma_b^2$ and $\Theta' = K' + \sigma_w^2\,\Theta$ behind every dense layer."""
    if isinstance(layer, Serial):
        for part in layer.layers:
            kernels = read_out(part, kernels)
        return kernels
    if isinstance(layer, Dense):
        square = np.square(layer.W_std)
        K = square * kernels.nngp + np.square(layer.b_std)
        return Kernels(K, K + square * kernels.ntk)
    if isinstance(layer, Scale):
        square = np.square(layer.factor)
        return Kernels(square * kernels.nngp, square * kernels.ntk)
    return kernels
