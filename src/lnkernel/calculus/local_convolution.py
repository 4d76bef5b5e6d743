r"""A convolution with weights and biases of its own at every position.

At equal positions it is a convolution. Different positions share no weights, so that behind it $K'_{pp'} = 0$ and
$\Theta'_{pp'} = 0$ for $p \ne p'$, also where the two patches overlap (Novak et al. 2019).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lnkernel.arch.convolution import ConvLocal
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.attention import constant_block
from lnkernel.calculus.convolution import patches
from lnkernel.calculus.positions import demand_positions
from lnkernel.calculus.rules import affine, rule
from lnkernel.calculus.state import State


@rule.register
def _(layer: ConvLocal, state: State, num: Arithmetic) -> State:
    r"""$K'_{pp'} = 1_{p = p'} (\sigma_w^2 \langle K_{p+f,\,p'+f} \rangle_f + \sigma_b^2)$, Θ likewise with $K'$ in the
    place of $\sigma_b^2$."""
    at = demand_positions(layer, state.positions)
    slides = layer.window.over(at.shape, "ConvLocal")
    return independent(num, affine(patches(num, state, at, slides), num, layer.W_std, layer.b_std))


def independent(num: Arithmetic, state: State) -> State:
    """The state, a Gaussian one, where different positions have nothing to do with one another."""
    at = state.positions
    assert at is not None
    if not at.paired:
        return state
    same = constant_block(num, np.eye(math.prod(at.shape)), at)
    cov = state.total
    w, z = (num.where(same > 0, x, 0.5) for x in (cov.w, cov.z))
    total = dataclasses.replace(cov, w=w, z=z, c=same * cov.c)
    o = None if state.o is None else same * state.o
    return dataclasses.replace(state, total=total, centred=total, t=same * state.t, o=o)
