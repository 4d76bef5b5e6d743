"""A readout: dense layers without an activation. They take K and Θ as they are, whatever the lengths of the inputs."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from lnkernel.arch import Dense, Identity, Node, Scale, Serial
from lnkernel.calculus.state import Kernels


@singledispatch
def read_out(layer: Node, kernels: Kernels) -> Kernels | None:
    """The kernels behind a readout; None behind a layer that needs to know more than these."""
    return None


@read_out.register
def _(layer: Identity, kernels: Kernels) -> Kernels | None:
    return kernels


@read_out.register
def _(layer: Dense, kernels: Kernels) -> Kernels | None:
    r"""$K' = \sigma_w^2 K + \sigma_b^2$ and $\Theta' = K' + \sigma_w^2\,\Theta$."""
    square = np.square(layer.W_std)
    K = square * kernels.nngp + np.square(layer.b_std)
    return Kernels(K, K + square * kernels.ntk)


@read_out.register
def _(layer: Scale, kernels: Kernels) -> Kernels | None:
    square = np.square(layer.factor)
    return Kernels(square * kernels.nngp, square * kernels.ntk)


@read_out.register
def _(layer: Serial, kernels: Kernels) -> Kernels | None:
    found: Kernels | None = kernels
    for part in layer.layers:
        found = None if found is None else read_out(part, found)
    return found


def is_readout(layer: Node) -> bool:
    """Whether its kernels depend on those before it alone."""
    return read_out(layer, Kernels(0.0, 0.0)) is not None
