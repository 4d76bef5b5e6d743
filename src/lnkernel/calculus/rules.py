"""One rule per layer: how one pair of inputs flows through it.

Every rule is written for one pair, over an abstract arithmetic `num`; what lifts it to
matrices, or computes it in another number system, stands outside. The formulas are in docs/layers.md; see
Jacot et al. 2018 (NTK), Lee et al. 2018 and Matthews et al. 2018 (NNGP), Yang 2019.
"""

from __future__ import annotations

import dataclasses
from functools import singledispatch

from lnkernel.arch.affine import Scale, Shift
from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise, Identity
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import (
    Covariance,
    Length,
    normalised,
    orthogonal_sum,
    scaled,
    with_bias,
    with_kept_angle,
)
from lnkernel.calculus.dual import derivative_factors, dual, without_mean
from lnkernel.calculus.spherical import spherical
from lnkernel.calculus.state import Both, Mean, State, refuse_lost_spread
from lnkernel.check.plain import known_zero
from lnkernel.errors import ArchitectureError


@singledispatch
def rule(layer: Node, state: State, num: Arithmetic) -> State:
    """The state of one pair behind `layer`."""
    raise ArchitectureError(
        type(layer).__name__,
        "",
        "this type of layer has no rule",
        "Register one in lnkernel.calculus.rules, and its step in lnkernel.arch.flow",
    )


@rule.register
def _(layer: Identity, state: State, num: Arithmetic) -> State:
    return state


@rule.register
def _(layer: Scale, state: State, num: Arithmetic) -> State:
    r"""$K' = s^2 K$ and $\Theta' = s^2\Theta$; t and g stay, because they are beside the lengths."""
    factor = layer.factor
    total = scaled(num, state.total, factor)
    centred = total if state.centred is state.total else scaled(num, state.centred, factor)
    mean, o = state.mean, state.o
    if mean is not None:
        sign = _sign(num, factor)
        mean = mean._replace(first=sign * mean.first, second=sign * mean.second)
    if o is not None:
        o = num.squared(factor) * o
    return dataclasses.replace(state, total=total, centred=centred, mean=mean, o=o)


@rule.register
def _(layer: Shift, state: State, num: Arithmetic) -> State:
    r"""$K' = K + c\,(m_1 + m_2) + c^2$; the centred part and $\Theta$ stay."""
    unit = Length(1.0)
    point = Covariance(unit, unit, 0.0, 1.0, 1.0, 0.0)
    constant = State(point, point, t=0.0, mean=Mean(layer.offset, layer.offset, 0.0))
    total, mean = _around_mean(num, state.centred, [state, constant], rest=True)
    t = _beside_lengths(num, state.averaged, state.total, total)
    return State(
        total,
        state.centred,
        t,
        o=state.o,
        mean=mean,
        gaussian=False,
        positions=state.positions,
    )


@rule.register
def _(layer: Serial, state: State, num: Arithmetic) -> State:
    for part in layer.layers:
        state = rule(part, state, num)
    return state


@rule.register
def _(layer: Dense, state: State, num: Arithmetic) -> State:
    r"""$K' = \sigma_w^2 K + \sigma_b^2$ and $\Theta' = K' + \sigma_w^2\,(\Theta + g K)$."""
    return affine(state, num, layer.W_std, layer.b_std)


def affine(state: State, num: Arithmetic, W_std: Number, b_std: Number) -> State:
    """Behind weights and biases of these standard deviations."""
    cov, share = with_bias(num, scaled(num, state.total, W_std), b_std)
    cov = with_kept_angle(num, cov)
    o = None if state.o is None else W_std * W_std * state.o
    before = state.averaged
    t = cov.c if known_zero(before) else cov.c + share * before
    return State(cov, cov, t=t, o=o, positions=state.positions)


@rule.register(Elementwise)
def _(layer: Elementwise, state: State, num: Arithmetic) -> State:
    r"""$K' = E[\phi\phi]$, $\Theta' = \Theta\,E[\phi'\phi'] + g\,E[u\phi'\,v\phi']$, for every activation."""
    cov = state.total.without_stale_angle(num)
    made = dual(layer, cov, num)
    t = made.gain * (state.t * made.slope)
    if state.g:
        t = t + state.g * (made.euler() if callable(made.euler) else made.euler)
    o = state.o
    if o is not None:
        for factor in derivative_factors(num, cov, made):
            o = o * factor
    centred = without_mean(num, made.total, made.mean) if made.centred is None else made.centred
    return State(
        made.total, centred, t, o=o, mean=made.mean, gaussian=False, positions=state.positions
    )


@rule.register
def _(layer: LayerNorm, state: State, num: Arithmetic) -> State:
    r"""$K' = K_c/\sqrt{(v_1+\epsilon)(v_2+\epsilon)}$ with the centred $K_c = K - m_1 m_2$,
    $v = q - m^2$; Θ is divided likewise. That the mean is subtracted changes Θ by terms of order
    1/width only.
    """
    if layer.axes == "all" and state.positions is not None:
        return over_all_positions(layer, state, num)
    cov = normalised(num, state.centred, layer.eps)
    t = state.t
    if state.mean is not None:  # Θ/(r1 r2) refers to the centred lengths from here on
        left = state.mean.left(num)
        t = num.divide(num.divide(t, left.first), left.second)
        if state.mean.rest is not None and known_zero(layer.eps):
            t = refuse_lost_spread(num, t, left, state.centred)
    o = _divide(num, state.o, state.centred, layer.eps)
    return with_affine(layer, dataclasses.replace(state, total=cov, centred=cov, mean=None), t, o)


@singledispatch
def over_all_positions(layer: LayerNorm, state: State, num: Arithmetic) -> State:
    """The rule of a LayerNorm whose mean and variance are those of all positions together."""
    raise NotImplementedError


@rule.register
def _(layer: RMSNorm, state: State, num: Arithmetic) -> State:
    r"""$K' = K/\sqrt{(q_1+\epsilon)(q_2+\epsilon)}$, Θ likewise; the mean features stay."""
    total = normalised(num, state.total, layer.eps)
    o = _divide(num, state.o, state.total, layer.eps)
    if state.centred is state.total:
        new = dataclasses.replace(state, total=total, centred=total)
        return with_affine(layer, new, state.t, o)
    first, second = (
        dataclasses.replace(part, q=num.divide(part.q, square.q) * new.q)
        for part, square, new in zip(
            (state.centred.first, state.centred.second),
            (state.total.first, state.total.second),
            (total.first, total.second),
            strict=True,
        )
    )
    # how much the relative difference of the lengths has changed, and with it the others
    squares = total.first.q, total.second.q
    change = num.combined_difference(total.e, -state.total.e, *squares)
    e = num.combined_difference(state.centred.e, change, first.q, second.q)
    centred = state.centred.with_lengths(first, second, e)
    mean = state.mean
    if mean is not None:
        squares = tuple(q * (m * m) for q, m in zip(squares, mean[:2], strict=True))
        mean = mean._replace(e=num.combined_difference(mean.e, change, *squares))
    new = dataclasses.replace(state, total=total, centred=centred, mean=mean)
    return with_affine(layer, new, state.t, o)


@rule.register
def _(layer: GroupNorm, state: State, num: Arithmetic) -> State:
    r"""$K' = \kappa_\nu(\rho)$ and $\Theta' = \Theta\,\kappa_\nu'(\rho)/\sqrt{q_1 q_2}$ (Price's theorem).

    In groups of one degree of freedom the output is ±1, and nothing before it is trained.
    """
    cov = state.total
    acute = cov.acute
    sphere = spherical(num, layer.degrees_of_freedom, num.where(acute, cov.w, cov.z))
    half = 0.5 * sphere.gap
    w, z = num.where(acute, half, 1 - half), num.where(acute, 1 - half, half)
    c = num.where(acute, sphere.value, -sphere.value)
    unit = normalised(num, cov, 0.0)
    new = Covariance(unit.first, unit.second, w, z, c, unit.e, cov.never_obtuse)
    o = _divide(num, state.o, cov, 0.0)
    o = None if o is None else o * sphere.slope
    state = dataclasses.replace(state, total=new, centred=new, gaussian=False)
    return with_affine(layer, state, state.t * sphere.slope, o)


@rule.register
def _(layer: Parallel, state: State, num: Arithmetic) -> State:
    r"""$K = \sum_i K_i + \sum_{i \ne j} m_i m_j'$, $\Theta = \sum_i \Theta_i$.

    The branches' centred parts are orthogonal to one another; their means add up along
    one common direction.
    """
    return summed(num, [rule(branch, state, num) for branch in layer.branches])


def summed(num: Arithmetic, ends: list[State]) -> State:
    """The sum of states that share no randomness but for their means."""
    centred, _ = orthogonal_sum(num, [end.centred for end in ends])
    mean, total = None, centred
    if any(end.mean is not None for end in ends):
        total, mean = _around_mean(num, centred, ends, rest=any(map(_has_rest, ends)))
    t = sum(_beside_lengths(num, end.averaged, end.total, total) for end in ends)
    offsets = [end.o for end in ends if end.o is not None]
    gaussian_state = all(end.gaussian for end in ends)
    return State(
        total,
        centred,
        t,
        o=sum(offsets) if offsets else None,
        mean=mean,
        gaussian=gaussian_state,
        positions=ends[0].positions,
    )


def _around_mean(
    num: Arithmetic, centred: Covariance, ends: list[State], rest: bool
) -> tuple[Covariance, Mean]:
    """The centred part together with the sum of the means of `ends`, and that mean; with what it leaves of the lengths
    if `rest` asks for it."""
    line, sign1, sign2 = _summed_means(num, ends)
    total, _ = orthogonal_sum(num, [centred, line])
    mean = Mean(
        sign1 * num.sqrt(num.divide(line.first.q, total.first.q)),
        sign2 * num.sqrt(num.divide(line.second.q, total.second.q)),
        line.e,
        _rests(num, centred, total) if rest else None,
    )
    return total, mean


def _beside_lengths(num: Arithmetic, t: Number, part: Covariance, whole: Covariance) -> Number:
    """t beside the lengths of a part, as it is beside those of the whole."""
    t = t * num.sqrt(num.divide(part.first.q, whole.first.q))
    return t * num.sqrt(num.divide(part.second.q, whole.second.q))


def _has_rest(state: State) -> bool:
    return state.mean is not None and state.mean.rest is not None


def _rests(num: Arithmetic, centred: Covariance, total: Covariance) -> Both:
    """What the means leave of each length."""
    return Both(
        num.sqrt(num.divide(centred.first.q, total.first.q)),
        num.sqrt(num.divide(centred.second.q, total.second.q)),
    )


def with_affine(
    layer: LayerNorm | RMSNorm | GroupNorm, state: State, t: Number, o: Number
) -> State:
    """A trainable bias adds 1 to Θ; a trainable scale adds u_i v_i, coordinate by coordinate.

    On Gaussian coordinates the latter is kept apart, because an activation may follow,
    whose rule for it differs; on features none can, so it is averaged at once.
    """
    if layer.bias:
        o = 1.0 if o is None else o + 1.0
    g = state.g
    if layer.scale and state.gaussian:
        g = g + 1
    elif layer.scale:
        t = t + state.total.c
    return dataclasses.replace(state, t=t, g=g, o=o)


def _divide(num: Arithmetic, o: Number, cov: Covariance, eps: Number) -> Number:
    """o/sqrt((q1 + eps)(q2 + eps)), one factor after the other, against overflow."""
    if o is None:
        return None
    for side in (cov.first, cov.second):
        o = o / (num.sqrt(side.q) if known_zero(eps) else num.softened(side.q, eps).norm)
    return o


def _summed_means(num: Arithmetic, ends: list[State]) -> tuple[Covariance, Number, Number]:
    """The branches' means, added up: two vectors on one line, and their signs."""
    sum1 = sum2 = difference = 0.0
    for end in ends:
        if end.mean is None:
            continue
        x = end.mean.first * num.sqrt(end.total.first.q)
        y = end.mean.second * num.sqrt(end.total.second.q)
        careful = _sign(num, x) * (end.mean.e * (abs(x) + abs(y)))
        difference = difference + num.where(x * y < 0, x - y, careful)
        sum1, sum2 = sum1 + x, sum2 + y
    opposite = sum1 * sum2 < 0
    long = abs(sum1) + abs(sum2)
    apart = num.where(opposite, abs(sum1) - abs(sum2), _sign(num, sum1) * difference)
    line = Covariance(
        first=Length(num.squared(sum1), sum1 != 0),
        second=Length(num.squared(sum2), sum2 != 0),
        w=num.where(opposite, 1.0, 0.0),
        z=num.where(opposite, 0.0, 1.0),
        c=num.where(opposite, -1.0, 1.0),
        e=num.divide(apart, long),
    )
    return line, _sign(num, sum1), _sign(num, sum2)


def _sign(num: Arithmetic, x: Number) -> Number:
    return num.where(x < 0, -1.0, 1.0)
