r"""LayerNorm over channels and positions together: one mean and one variance for a whole image.

With the mean feature $m_p$ and the variance $v_p$ of the channels at position $p$, the image has the mean
$\bar m = \langle m_p \rangle$ and the variance $V = \langle v_p \rangle + \langle (m_p - \bar m)^2 \rangle$.
Behind the norm the mean features of the positions are $(m_p - \bar m)/\sqrt{V + \epsilon}$, and all kernels are
divided by $\sqrt{(V_1 + \epsilon)(V_2 + \epsilon)}$.
"""

from __future__ import annotations

import dataclasses
import math

from lnkernel.arch.norms import LayerNorm
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum
from lnkernel.calculus.pooling import mean_of
from lnkernel.calculus.positions import FIRST, SECOND, demand_positions, spread, whole, window_sum
from lnkernel.calculus.rules import over_all_positions, with_affine
from lnkernel.calculus.state import State


@over_all_positions.register
def _(layer: LayerNorm, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    sides = FIRST, SECOND
    lengths = state.centred.first, state.centred.second

    def average(x: Number, side: int) -> Number:
        total = window_sum(num, spread(num, x, at.form(side)), at.alone(side), whole(at.shape))
        return total * (1.0 / math.prod(at.shape))

    variances = [average(lengths[side].q, side) for side in sides]
    deviations = None
    if state.mean is not None:
        total = state.total.first, state.total.second
        means = [state.mean[side] * num.sqrt(total[side].q) for side in sides]
        deviations = [
            spread(num, means[side], at.form(side)) + -1 * average(means[side], side)
            for side in sides
        ]
        variances = [
            variances[side] + average(deviations[side] * deviations[side], side) for side in sides
        ]
    norms = [num.softened(variance, layer.eps).norm for variance in variances]
    inverses = [num.divide(1.0, norm) for norm in norms]

    def divided(cov: Covariance) -> Covariance:
        first, second = (
            Length(old.q * num.squared(inverses[side]), old.live)
            for side, old in enumerate((cov.first, cov.second))
        )
        e = None if cov.e is None else num.length_difference(first.q, second.q)
        return cov.with_lengths(first, second, e)

    o = state.o
    if o is not None:
        for inverse in inverses:
            o = o * inverse
    centred = divided(state.centred)
    if deviations is None:
        new = dataclasses.replace(state, total=centred, centred=centred)
        return with_affine(layer, new, state.t, o)
    shifted = [deviation * inverse for deviation, inverse in zip(deviations, inverses, strict=True)]
    line = _line(num, shifted)
    total_cov, _ = orthogonal_sum(num, [centred, line])
    t = state.t
    for side, (old, new_length) in enumerate(
        ((state.total.first, total_cov.first), (state.total.second, total_cov.second))
    ):
        t = t * num.divide(num.sqrt(old.q) * inverses[side], num.sqrt(new_length.q))
    mean = mean_of(num, shifted, total_cov, centred)
    new = dataclasses.replace(state, total=total_cov, centred=centred, mean=mean)
    return with_affine(layer, new, t, o)


def _line(num: Arithmetic, values: list[Number]) -> Covariance:
    """Mean features: vectors on one line, in one direction or in opposite ones."""
    one, two = values
    opposite = one * two < 0
    first, second = (Length(num.squared(x), x != 0) for x in values)
    return Covariance(
        first,
        second,
        num.where(opposite, 1.0, 0.0),
        num.where(opposite, 0.0, 1.0),
        num.where(opposite, -1.0, 1.0),
        num.length_difference(first.q, second.q),
    )
