r"""Positional embeddings: $K' = K + \sigma^2 R$ and $\Theta' = \Theta + \sigma^2 R$, a sum of two independent parts."""

from __future__ import annotations

from lnkernel.arch.embedding import PositionalEmbedding
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.attention import constant_block
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import demand_positions
from lnkernel.calculus.rules import rule, summed
from lnkernel.calculus.state import State
from lnkernel.check.plain import known_zero


@rule.register
def _(layer: PositionalEmbedding, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    if known_zero(layer.std):
        return state
    R = layer.covariance(at.shape)
    size = float(R[0, 0])  # that of every position
    c = constant_block(num, R / size, at)
    w, z = (
        constant_block(num, 0.5 - 0.5 * (R / size), at),
        constant_block(num, 0.5 + 0.5 * (R / size), at),
    )
    length = Length(num.squared(layer.std) * size)
    cov = Covariance(length, length, w, z, c, 0.0)
    embedding = State(cov, cov, t=c, positions=at)  # the vectors are trained
    return summed(num, [state, embedding])
