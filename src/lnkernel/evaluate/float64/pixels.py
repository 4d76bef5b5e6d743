"""From images and sequences to the covariances of their positions.

The angle between the features of two positions comes from the difference and the sum of their unit vectors, coordinate
by coordinate: it has an error of one rounding, however small it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import FIRST, SECOND, Positions
from lnkernel.evaluate.float64 import geometry, namespace
from lnkernel.evaluate.float64.elementary import divide
from lnkernel.evaluate.float64.precise import Precise
from lnkernel.types import Array

WRITTEN_OUT = 16  # channels up to which sums are written out, and fuse


class Pixels(NamedTuple):
    """Inputs with features at positions, ready for comparison."""

    unit: Any  # (n, positions, channels)
    length: Any  # (n, positions)
    square: Precise  # (n, positions)
    live: Any  # whether not the zero vector, (n, positions); None if none of them is


def prepare(x: Array, centre: bool, with_range: bool) -> Pixels:
    """The inputs (n, positions, channels)."""
    rows = geometry.prepare(x.reshape(-1, x.shape[-1]), centre, with_range)
    shape = x.shape[:-1]
    unit = rows.unit.reshape(x.shape)
    length, live = rows.length.reshape(shape), rows.live.reshape(shape)
    square = jax.tree.map(lambda part: part.reshape(shape), rows.square)
    return Pixels(unit, length, square, live)


def take(pixels: Pixels, index: Any) -> Pixels:
    """Some of the inputs."""
    return jax.tree.map(lambda part: part[index], pixels)


def of_pairs(one: Pixels, two: Pixels, at: Positions, with_difference: bool) -> Covariance:
    """All pairs of inputs, (n, m, positions of the pairs)."""
    return _compare(_placed(one, at, FIRST, 0), _placed(two, at, SECOND, 1), with_difference)


def of_same(pixels: Pixels, at: Positions, with_difference: bool) -> Covariance:
    """Every input with itself, (n, positions of the pairs)."""
    if at.paired:
        one, two = (_placed(pixels, at, side, None) for side in (FIRST, SECOND))
        return _compare(one, two, with_difference)
    length = Length(pixels.square, True if pixels.live is None else pixels.live)
    zero, one = (namespace.of(pixels.length).float64(number) for number in (0, 1))
    return Covariance(length, length, zero, one, one, zero)


def _placed(pixels: Pixels, at: Positions, side: int, axis: int | None) -> Pixels:
    """The pixels with axes for the inputs and positions of the other side."""

    def of(part: Any, channels: int) -> Any:
        if part is None:
            return part
        tail = part.shape[part.ndim - channels :]
        xp = namespace.of(part)
        if at.behind:  # the inputs come after their positions
            made = xp.moveaxis(part, 0, part.ndim - channels - 1)
            return made.reshape(*at.shape, *((-1, 1) if side == FIRST else (1, -1)), *tail)
        made = part.reshape(len(part), *at.form(side), *tail)
        return made if axis is None else xp.expand_dims(made, 1 - axis)

    return Pixels(
        of(pixels.unit, 1),
        of(pixels.length, 0),
        jax.tree.map(lambda part: of(part, 0), pixels.square),
        of(pixels.live, 0),
    )


def _compare(one: Pixels, two: Pixels, with_difference: bool) -> Covariance:
    xp = namespace.of(one.unit, two.unit)
    w, z = _angle(one.unit, two.unit)
    if one.live is not None and two.live is not None:  # zero and zero are one and the same
        both, neither = one.live & two.live, ~(one.live | two.live)
        w = xp.where(both, w, xp.where(neither, 0.0, 0.5))
        z = xp.where(both, z, xp.where(neither, 1.0, 0.5))
    c = xp.where(w < 0.25, 1 - 2 * w, z - w)
    e = None
    if with_difference:
        e = divide(*xp.broadcast_arrays(one.length - two.length, one.length + two.length))
    first, second = (
        Length(side.square, True if side.live is None else side.live) for side in (one, two)
    )
    return Covariance(first, second, w, z, c, e)


def _angle(one: Array, two: Array) -> tuple[Array, Array]:
    """A quarter of the squares of the difference and of the sum of unit vectors, which are the last axis."""
    count = one.shape[-1]
    if namespace.of(one, two) is np or count <= WRITTEN_OUT:
        w: Any = 0.0
        z: Any = 0.0
        for k in range(count):
            x, y = 0.5 * one[..., k], 0.5 * two[..., k]
            less, more = x - y, x + y
            w, z = w + less * less, z + more * more
        return w, z
    xp = namespace.of(one, two)
    first, second = (xp.moveaxis(0.5 * side, -1, 0) for side in (one, two))
    shape = np.broadcast_shapes(first.shape[1:], second.shape[1:])

    def add(
        sums: tuple[Array, Array], both: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        less, more = both[0] - both[1], both[0] + both[1]
        return (sums[0] + less * less, sums[1] + more * more), None

    start = xp.zeros(shape), xp.zeros(shape)
    return lax.scan(add, start, (first, second))[0]


def count(shape: tuple[int, ...], paired: bool) -> int:
    """Pairs of positions in a block."""
    return math.prod(shape) ** (2 if paired else 1)
