r"""Patches: the features of several positions side by side, as a convolution and Flatten read them.

The kernel of patches is the mean of the kernels of their positions, one after another, $K' = \langle K \rangle$.
As in an orthogonal sum the lengths $r_i'^2 = \langle r_i^2 \rangle$ give every place its share
$\alpha_i = r_i/r_i'$ of both, and

    w' = <a w> + <(alpha_1 - alpha_2)^2>/4,   z' = <a z> + <(alpha_1 - alpha_2)^2>/4,   a = alpha_1 alpha_2,

because $\langle\alpha_i^2\rangle = 1$: sums of non-negative terms. Zeros around an image are positions of length 0.
(Garriga-Alonso et al. 2019, Novak et al. 2019 for K; Arora et al. 2019 for the NTK.)
"""

from __future__ import annotations

import dataclasses
import math

from lnkernel.arch.convolution import Conv
from lnkernel.arch.pooling import Flatten
from lnkernel.arch.window import Slide
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import (
    FIRST,
    SECOND,
    Positions,
    demand_positions,
    spread,
    whole,
    window_places,
    window_sum,
    without_axes,
)
from lnkernel.calculus.rules import affine, rule
from lnkernel.calculus.state import State
from lnkernel.check.plain import known_zero


@rule.register
def _(layer: Conv, state: State, num: Arithmetic) -> State:
    r"""$K'_{pp'} = \sigma_w^2 \langle K_{p+f,\,p'+f} \rangle_f + \sigma_b^2$, Θ likewise with $K'$ in the place of
    $\sigma_b^2$."""
    at = demand_positions(layer, state.positions)
    slides = layer.window.over(at.shape, "Conv")
    return affine(patches(num, state, at, slides), num, layer.W_std, layer.b_std)


@rule.register
def _(layer: Flatten, state: State, num: Arithmetic) -> State:
    r"""$K' = \langle K_{pp} \rangle_p$ and $\Theta' = \langle \Theta_{pp} \rangle_p$."""
    at = demand_positions(layer, state.positions)
    made = patches(num, state, at, whole(at.shape))
    return drop_positions(num, made, at)


def patches(num: Arithmetic, state: State, at: Positions, slides: list[Slide]) -> State:
    """The patches that a window reads, one for each of its steps."""
    size = math.prod(slide.size for slide in slides)
    cov = _angle(num, state.total, at, slides, size)

    def mean(x: Number) -> Number:
        total = window_sum(num, spread(num, x, at.form(None)), at.together, slides)
        return total * (num.real(1.0) / size)

    t = state.averaged
    if not known_zero(t):
        weighted = mean(state.total.times_lengths(num, t))
        t = _by_lengths(num, weighted, cov)
    o = None if state.o is None else mean(state.o)
    after = dataclasses.replace(at, shape=tuple(slide.steps for slide in slides))
    return State(cov, cov, t, o=o, gaussian=state.gaussian, positions=after)


def _angle(
    num: Arithmetic, cov: Covariance, at: Positions, slides: list[Slide], size: int
) -> Covariance:
    first = _length(num, cov.first, at, FIRST, slides, size)
    alike = cov.second is cov.first and not at.paired
    second = first if alike else _length(num, cov.second, at, SECOND, slides, size)
    if not at.paired and known_zero(cov.w) and known_zero(cov.e):  # an input and itself
        return cov.with_lengths(first, second, cov.e)

    def mean(x: Number) -> Number:
        weighted = spread(num, cov.times_lengths(num, x), at.form(None))
        total = window_sum(num, weighted, at.together, slides)
        return _by_lengths(
            num, total * (num.real(1.0) / size), Covariance(first, second, 0, 0, 0, 0)
        )

    e: Number = 0.0
    tilt: Number = 0.0
    if at.paired or not known_zero(cov.e):
        tilt = _tilt(num, cov, first, second, at, slides, size)
        e = None if cov.e is None else num.length_difference(first.q, second.q)
    w = mean(cov.w) + tilt
    if cov.never_obtuse:
        return Covariance(first, second, w, 1 - w, 1 - 2 * w, e, True)
    z = mean(cov.z) + tilt
    c = num.where(w < 0.25, 1 - 2 * w, z - w)
    return Covariance(first, second, w, z, c, e)


def _length(
    num: Arithmetic, length: Length, at: Positions, side: int, slides: list[Slide], size: int
) -> Length:
    """The mean square; a patch is alive if one of its positions is."""
    alone, form = at.alone(side), at.form(side)
    q = window_sum(num, spread(num, length.q, form), alone, slides) * (num.real(1.0) / size)
    live = length.live
    if live is not True:
        places = window_places(num, spread(num, live, form), alone, slides)
        live = False
        for place in places:
            live = num.either(live, place)
    return Length(q, live)


def _tilt(
    num: Arithmetic,
    cov: Covariance,
    first: Length,
    second: Length,
    at: Positions,
    slides: list[Slide],
    size: int,
) -> Number:
    r"""What the shares of both inputs differ by, a quarter of the mean square:
    $\alpha_1 - \alpha_2 = (r_1 \, r_2'/r_1' - r_2)/r_2'$, with one factor of the pair for all places of a window."""
    sides = (FIRST, cov.first, first), (SECOND, cov.second, second)
    roots = [spread(num, num.sqrt(old.q), at.form(side)) for side, old, _ in sides]
    inverse = [num.divide(1.0, num.sqrt(new.q)) for _, _, new in sides]
    if slides == whole(at.shape):  # one window: not place by place, of which there may be thousands
        apart = roots[FIRST] * inverse[FIRST] - roots[SECOND] * inverse[SECOND]
        apart = spread(num, apart, at.form(None))
        return window_sum(num, apart * apart, at.together, slides) * (num.real(0.25) / size)
    places = [
        window_places(num, root, at.alone(side), slides)
        for (side, _, _), root in zip(sides, roots, strict=True)
    ]
    total: Number = 0.0
    ratio = num.sqrt(second.q) * inverse[FIRST]
    for one, two in zip(*places, strict=True):
        apart = one * ratio - two
        total = total + apart * apart
    return total * (inverse[SECOND] * inverse[SECOND] * (num.real(0.25) / size))


def _by_lengths(num: Arithmetic, x: Number, cov: Covariance) -> Number:
    """x/(r1 r2), and x where these are 0."""
    for side in (cov.first, cov.second):
        x = x * num.divide(1.0, num.sqrt(side.q))
    return x


def drop_positions(num: Arithmetic, state: State, at: Positions) -> State:
    """The state where one position is left: its axes go."""
    count = len(at.shape) * (2 if at.paired else 1)

    def drop(x: Number) -> Number:
        return x if x is None or x is True else without_axes(num, x, count, at.behind)

    def of(cov: Covariance) -> Covariance:
        first, second = cov.each(lambda side: Length(drop(side.q), drop(side.live)))
        return Covariance(
            first, second, drop(cov.w), drop(cov.z), drop(cov.c), drop(cov.e), cov.never_obtuse
        )

    total = of(state.total)
    centred = total if state.centred is state.total else of(state.centred)
    mean = state.mean
    if mean is not None:
        rest = mean.rest and type(mean.rest)(*map(drop, mean.rest))
        mean = type(mean)(drop(mean.first), drop(mean.second), drop(mean.e), rest)
    return dataclasses.replace(
        state,
        total=total,
        centred=centred,
        t=drop(state.t),
        o=drop(state.o),
        mean=mean,
        positions=None,
    )
