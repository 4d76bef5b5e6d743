r"""Self-attention: the features of all positions, added up with weights that the input itself gives.

With `scaling="linear"` the scores of an input tend to $\sigma_{QK} K_{pa}(x, x)$, so that its weights
$\zeta_{pa}(x)$ are numbers, and

$$M_{pp'} = \sum_{ab} \zeta_{pa}(x)\, K_{ab}\, \zeta_{p'b}(x'), \quad K' = \sigma_{OV}^2 M + \sigma_b^2, \quad
\Theta' = \sigma_{OV}^2 \Big(\sum_{ab} \zeta_{pa} \Theta_{ab} \zeta'_{p'b} + 2 M\Big) + \sigma_b^2:$$

that is a sum over positions, and then two layers of weights. What keys and queries learn is of a smaller order.

With `scaling="sqrt"` the scores stay random, with covariance $\sigma_{QK}^2 K_{pp'} K_{aa'}$, and for weights equal
to the scores, with $s = \sigma_{QK}\sigma_{OV}$ and $\langle A, B\rangle = \sum_{ab} A_{ab} B_{ab}$,

$$K' = s^2 \langle K, K\rangle K + \sigma_b^2, \quad
\Theta' = s^2 \big(2 \langle K, \Theta\rangle K + \langle K, K\rangle (\Theta + 4 K)\big) + \sigma_b^2,$$

a part for each of the four layers of weights, and for each of three ways into the layer. Where keys and queries have an
embedding of covariance $R$, these are $K + R$ and $\Theta + R$ in them. (Hron et al. 2020.)

As behind a pooling, the angle between two inputs that are nearly the same is a difference of sums.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from lnkernel.arch.attention import Attention
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Length
from lnkernel.calculus.pooling import between
from lnkernel.calculus.positions import Positions, demand_positions, spread
from lnkernel.calculus.rules import affine, rule
from lnkernel.calculus.special import special
from lnkernel.calculus.state import State
from lnkernel.check.plain import known_zero


@special
def attention_weights(num: Arithmetic, kind: str, scores: Number) -> Number:
    """what attention makes of scores (..., position, position that it looks at)."""
    raise NotImplementedError


@special
def weighted_sums(
    num: Arithmetic, x: Number, at: Positions, first: Number, second: Number
) -> Number:
    """the sums over all positions of both inputs, with weights."""
    raise NotImplementedError


@special
def sum_of_products(num: Arithmetic, x: Number, y: Number, at: Positions) -> Number:
    """the sum of x y over all pairs of positions, which keep axes of one element."""
    raise NotImplementedError


@special
def constant_block(num: Arithmetic, matrix: Number, at: Positions) -> Number:
    """numbers (positions, positions) as the block of every pair of inputs."""
    raise NotImplementedError


@rule.register
def _(layer: Attention, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    if layer.scaling == "sqrt":
        made = _by_random_scores(layer, state, num, at)
        return affine(made, num, layer.QK_std * layer.OV_std, layer.b_std)
    made = _by_fixed_weights(layer, state, num, at)
    return affine(made, num, layer.OV_std, layer.b_std)


def _by_fixed_weights(layer: Attention, state: State, num: Arithmetic, at: Positions) -> State:
    """The mixed features, with Θ of the values' weights."""

    def weigh(own: Number) -> Number:
        """The weights that follow from the kernel of one input between all of its positions, (..., count, count)."""
        if layer.embedding is not None:
            own = own + layer.embedding.std**2 * layer.embedding.covariance(at.shape)
        return attention_weights(num, layer.weights, layer.QK_std * own)

    block = _block(num, state, at, state.total.c)
    weights = at.own.between_positions(num, at, block, weigh)
    mix = partial(weighted_sums, num, at=at, first=weights[0], second=weights[1])
    t = state.averaged
    theta = None if known_zero(t) else mix(_block(num, state, at, t))
    o = None if state.o is None else mix(spread(num, state.o, at.form(None)))
    return _mixed(num, state, at, mix(block), theta, o, weights_before=1)


def _by_random_scores(layer: Attention, state: State, num: Arithmetic, at: Positions) -> State:
    """The mixed features, with Θ of the weights of queries, keys and values."""
    dot = partial(sum_of_products, num, at=at)
    embedding: Number = 0.0
    if layer.embedding is not None:
        R = layer.embedding.covariance(at.shape)
        embedding = layer.embedding.std**2 * constant_block(num, R, at)
    K = _block(num, state, at, state.total.c)
    keys = K + embedding
    size = dot(keys, K)

    def through(of_values: Number, of_keys: Number) -> Number:
        """The sum of the parts by values, by keys and by queries."""
        return (dot(keys, of_values) + dot(K, of_keys)) * keys + size * of_keys

    t = state.averaged
    theta = 0.0 * K if known_zero(t) else _block(num, state, at, t)
    o = None
    if state.o is not None:
        offset = spread(num, state.o, at.form(None))
        o = through(offset, offset)
    return _mixed(
        num, state, at, size * keys, through(theta, theta + embedding), o, weights_before=3
    )


def _block(num: Arithmetic, state: State, at: Positions, x: Number) -> Number:
    """r1 r2 x at all pairs of positions."""
    return spread(num, state.total.times_lengths(num, x), at.form(None))


def _mixed(
    num: Arithmetic,
    state: State,
    at: Positions,
    K: Number,
    theta: Number | None,
    o: Number,
    weights_before: int,
) -> State:
    """The state with these kernels, and Θ of so many layers of weights, each of which adds K."""
    squares = at.own.squares(num, at, K)
    sides = state.total.first, state.total.second
    first, second = (
        Length(q, True if old.live is True else q > 0)
        for q, old in zip(squares, sides, strict=True)
    )
    cov = between(num, K, first, second, at, with_e=state.total.e is not None)
    t = weights_before * cov.c
    if theta is not None:
        for side in (first, second):
            theta = theta * num.divide(1.0, num.sqrt(side.q))
        t = t + theta
    return dataclasses.replace(
        state, total=cov, centred=cov, t=t, g=0, o=o, mean=None, positions=at
    )
