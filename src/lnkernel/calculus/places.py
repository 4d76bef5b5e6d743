r"""Positions that stand elsewhere behind a layer, or come several times, or not at all.

Every number of a pair, and of a single input, is taken along with its position, so that all digits stay. Where nothing
comes in, as between the positions of a transposed convolution, is a zero vector.
"""

from __future__ import annotations

import dataclasses
from functools import reduce

import numpy as np

from lnkernel.arch.convolution import ConvTranspose
from lnkernel.arch.crop import Crop
from lnkernel.arch.places import NOTHING, Places
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.convolution import patches
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import FIRST, SECOND, Positions, demand_positions, spread
from lnkernel.calculus.rules import affine, rule
from lnkernel.calculus.special import special
from lnkernel.calculus.state import Both, Mean, State


@special
def places_along(num: Arithmetic, x: Number, axis: int, places: np.ndarray) -> Number:
    """x at these places of one axis; 0, or False, where there is nothing."""
    raise NotImplementedError


@rule.register
def _(layer: Crop, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    return taken(num, state, at, layer.over(at.shape))


@rule.register
def _(layer: ConvTranspose, state: State, num: Arithmetic) -> State:
    r"""The rule of a convolution of stride 1, with zeros between the positions that it reads."""
    at = demand_positions(layer, state.positions)
    wide = taken(num, state, at, layer.over(at.shape))
    assert wide.positions is not None
    slides = layer.window.over(wide.positions.shape, "ConvTranspose")
    return affine(patches(num, wide, wide.positions, slides), num, layer.W_std, layer.b_std)


def _is_single(x: Number) -> bool:
    return isinstance(x, int | float) or getattr(x, "ndim", 1) == 0


def taken(num: Arithmetic, state: State, at: Positions, places: Places) -> State:
    """The state with these positions of both inputs. Where there is nothing, lengths are 0 and angles do not matter."""
    gaps = any((along == NOTHING).any() for along in places)

    def of(x: Number, side: int | None, everywhere: bool = False) -> Number:
        """Numbers of one input, or of pairs; one number for all of them stays one, unless it is for `everywhere`."""
        if x is None or (_is_single(x) and not everywhere):
            return x
        sides = (side,) if side is not None else (FIRST, SECOND) if at.paired else (FIRST,)
        moves = [
            (axis, along) for one in sides for axis, along in zip(at.axes(one), places, strict=True)
        ]
        x = spread(num, x, at.form(side))
        return reduce(lambda made, move: places_along(num, made, *move), moves, x)

    def of_length(length: Length, side: int) -> Length:
        live = length.live
        if gaps or live is not True:
            live = of(np.asarray(True) if live is True else live, side, gaps)
        return Length(of(length.q, side, gaps), live)

    def of_pair(cov: Covariance) -> Covariance:
        first = of_length(cov.first, FIRST)
        alike = cov.second is cov.first and not at.paired
        second = first if alike else of_length(cov.second, SECOND)
        w, z, c, e = (of(x, None) for x in (cov.w, cov.z, cov.c, cov.e))
        return Covariance(first, second, w, z, c, e, cov.never_obtuse)

    def of_mean(mean: Mean) -> Mean:
        rest = mean.rest and Both(*(of(x, side) for side, x in enumerate(mean.rest)))
        return Mean(of(mean.first, FIRST), of(mean.second, SECOND), of(mean.e, None), rest)

    total = of_pair(state.total)
    return dataclasses.replace(
        state,
        total=total,
        centred=total if state.centred is state.total else of_pair(state.centred),
        t=of(state.t, None),
        o=of(state.o, None, gaps),
        mean=None if state.mean is None else of_mean(state.mean),
        positions=dataclasses.replace(at, shape=tuple(map(len, places))),
    )
