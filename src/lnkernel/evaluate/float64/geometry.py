r"""From input vectors to the covariance of the raw input, without cancellation.

`careful` compares two vectors with all care: inputs that differ in the last bit, or are
multiples of one another up to rounding, or are antipodal, have the right angle. Most
pairs need none of that: `quick` takes the angle from the difference and the sum of
the unit vectors, and tells which pairs it is not exact enough for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.elementary import divide, product_sum, total
from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.evaluate.float64.namespace import constant
from lnkernel.evaluate.float64.precise import Precise, as_precise, exponent_of, two_to
from lnkernel.evaluate.float64.projection import centred, project
from lnkernel.types import Array as AnyArray

WRITTEN_OUT = 16  # dimensions up to which sums over coordinates are written out, and fuse
FEW = 4  # dimensions up to which differences of coordinates are summed, and not their products
# Zeros fill up the coordinates to one of these dimensions, so that few programs are compiled. In one dimension
# directions are exact, and up to FEW they are compared differently.
FILLED_UP = (1, FEW, 8, 12, WRITTEN_OUT)


class Inputs(NamedTuple):
    """Input vectors ready for comparison, one per row (or a single one).

    Where a program does not read a part, it is None.
    """

    scaled: Any  # x 2^-k, with entries of moderate size; (n, d)
    exponent: Any  # k; (n,)
    unit: Any  # x/|x|, centred first where asked; (n, d)
    spread: Any  # x/(2|x|) and zeros, with the points side by side, if dimensions are few; (d or more, n)
    length: Any  # |x|; (n,)
    square: Precise  # |x|^2/d; (n,)
    live: Array  # whether |x| > 0; (n,)


def prepare(x: AnyArray, centre: bool, with_range: bool = False) -> Inputs:
    """Lengths and directions; each vector is first scaled by a power of two, which is exact.

    `with_range` gives squared lengths twice the digits and an exponent of their own.
    """
    xp = namespace.of(x)
    exponent = 1 + exponent_of(xp.max(xp.abs(x), axis=1))
    scaled = shift(xp.asarray(x), -exponent[:, None])
    y = centred(scaled) if centre else scaled
    square = _square_sum(y) if with_range else as_precise(xp.sum(y * y, axis=1))
    live = square.high > 0
    norm = xp.where(live, square.root(), 1.0)
    unit = xp.where(live[:, None], y / norm[:, None], 0.0)
    length = shift(xp.where(live, norm, 0.0), exponent)
    # a loop over pairs then reads one coordinate of all points in the order of memory
    spread = _fill_up(0.5 * unit.T) if x.shape[1] <= WRITTEN_OUT else None
    mean_square = _divide(square, x.shape[1])
    if with_range:
        mean_square = replace(mean_square, exponent=2 * exponent.astype(np.int64))
    else:
        mean_square = as_precise(shift(mean_square.high, 2 * exponent))
    return Inputs(scaled, exponent, unit, spread, length, mean_square, live)


def _fill_up(spread: AnyArray) -> AnyArray:
    wanted = next(d for d in FILLED_UP if d >= len(spread))
    xp = namespace.of(spread)
    return xp.concatenate([spread, xp.zeros((wanted - len(spread), spread.shape[1]))])


def blocks(inputs: Inputs, index: AnyArray, with_difference: bool) -> Inputs:
    """What `quick` reads of the points with these numbers, (blocks, size)."""
    kept = inputs._replace(scaled=None, exponent=None)
    kept = kept if with_difference else kept._replace(length=None)
    if inputs.spread is None:
        return take(kept, index)
    spread = namespace.of(inputs.spread).moveaxis(inputs.spread[:, index], 0, 1)
    return take(kept._replace(unit=None), index)._replace(spread=spread)


def some(inputs: Inputs, most: int) -> Inputs:
    """The first points, so many at most, copied."""
    made: Inputs = jax.tree.map(lambda part: part[:most].copy(), _without_spread(inputs))
    return made._replace(spread=None if inputs.spread is None else inputs.spread[:, :most].copy())


def take(inputs: Inputs, index: AnyArray) -> Inputs:
    """The points with these numbers, for `careful`."""
    return jax.tree.map(lambda part: part[index], _without_spread(inputs))


def delicate_below(dimension: int) -> float:
    """The least min(w, z) that `quick` can be trusted with.

    On a line the directions are ±1, exactly. In few dimensions the error of the angle
    is about one unit of rounding; in many, that of the cosine is. Either is relatively large
    only where the angle is small.
    """
    if dimension == 1:
        return 0.0
    return 2.0**-10 if dimension <= FEW else 2.0**-7


def quick(
    one: Inputs,
    two: Inputs,
    all_live: bool,
    with_difference: bool,
    cosine: Array | None = None,
    least: float = 0.0,
) -> tuple[Covariance, Array]:
    """The covariances of all pairs, (n, m); and for which of them `careful` must be asked.

    Where the dimensions are many, `cosine` may be given: the products of all unit vectors.

    Without `with_difference` the difference of the lengths is left to the rules, which take it
    from the lengths: exact enough for pairs that are not delicate, if no activation has a
    degree below 1 (those tell apart angles far below the rounding error). Angles below `least` are delicate
    where they come from cosines; with NOTHING_DELICATE no angle is.
    """
    if one.spread is not None and two.spread is not None:
        dimension = len(one.spread)
        coordinates = [
            (x[:, None], y[None, :]) for x, y in zip(one.spread, two.spread, strict=True)
        ]
        if dimension <= FEW:
            w = total([(x - y) * (x - y) for x, y in coordinates])
            z = total([(x + y) * (x + y) for x, y in coordinates])
        else:
            half = 2 * product_sum(coordinates)
            w, z = 0.5 - half, 0.5 + half
    else:
        dimension = WRITTEN_OUT + 1
        half = 0.5 * (one.unit @ two.unit.T if cosine is None else cosine)
        w, z = 0.5 - half, 0.5 + half
    e = None
    if with_difference:
        r1, r2 = one.length[:, None], two.length[None, :]
        e = divide(*namespace.of(r1, r2).broadcast_arrays(r1 - r2, r1 + r2))
    if least == NOTHING_DELICATE:
        delicate = namespace.of(w).zeros(w.shape, bool)
    else:
        limit = delicate_below(dimension)
        limit = max(limit, least) if dimension > FEW else limit
        delicate = (w < limit) | (z < limit)
    if not all_live:
        delicate = delicate & one.live[:, None] & two.live[None, :]
    return _covariances_of_all(one, two, w, z, e, all_live), delicate


def careful(one: Inputs, two: Inputs, centre: bool, all_live: bool) -> Covariance:
    """The covariances of pairs of vectors listed side by side, (k, d) each, computed with all care."""
    w, z, e = _compare(one, two, centre)
    first, second = (Length(x.square, x.live) for x in (one, two))
    return _covariance(first, second, w, z, e, all_live)


def careful_matrix(one: Inputs, two: Inputs, centre: bool) -> Covariance:
    """The covariances of all pairs, (n, m), computed with all care."""
    rows = jax.tree.map(lambda part: part[:, None], _without_spread(one))
    columns = jax.tree.map(lambda part: part[None, :], _without_spread(two))
    return _covariances_of_all(one, two, *_compare(rows, columns, centre), all_live=False)


def _without_spread(inputs: Inputs) -> Inputs:
    return inputs._replace(spread=None)


def _compare(one: Inputs, two: Inputs, centre: bool) -> tuple[Array, Array, Array]:
    """w, z and e of pairs of vectors, (..., d) each."""
    xp = namespace.of(one.unit, two.unit)
    cosine = xp.sum(one.unit * two.unit, axis=-1)
    acute = cosine >= 0
    shift = two.exponent - one.exponent
    similar = xp.abs(shift) <= 2
    f = xp.where(acute, 1.0, -1.0) * two_to(xp.where(similar, shift, 0))
    rest, excess = project(one.scaled, two.scaled, f, centre)

    near = xp.abs(cosine) > 0.5
    norm1, norm2 = (
        xp.sum(v * v, axis=-1)
        for v in ((centred(x.scaled) if centre else x.scaled) for x in (one, two))
    )
    square = xp.sum(rest * rest, axis=-1)
    sine = square / xp.where(norm2 > 0, norm2, 1.0)
    sine = xp.where(near & (sine < 1), sine, 0.0)
    m = xp.where(near, sine / (2 * (1 + xp.sqrt(1 - sine))), 0.5 * (1 - xp.abs(cosine)))
    w, z = xp.where(acute, m, 1 - m), xp.where(acute, 1 - m, m)

    # (r2/r1)^2 - 1 where the lengths are similar: y = lambda x + rest, by Pythagoras
    both = one.live & two.live
    use = similar & both
    growth = excess * (2 + excess) + f * f * square / xp.where(norm1 > 0, norm1, 1.0)
    growth = xp.where(use, growth, 0.0)
    stretch = 1 + xp.sqrt(xp.where(growth > -1, 1 + growth, 1.0))
    long = one.length + two.length
    apart = (one.length - two.length) / xp.where(long > 0, long, 1.0)
    return w, z, xp.where(use, -growth / (stretch * stretch), apart)


def _covariances_of_all(
    one: Inputs, two: Inputs, w: Array, z: Array, e: Array | None, all_live: bool
) -> Covariance:
    """The covariances of all pairs, (n, m), from their angles."""
    first = Length(jax.tree.map(lambda q: q[:, None], one.square), one.live[:, None])
    second = Length(jax.tree.map(lambda q: q[None, :], two.square), two.live[None, :])
    return _covariance(first, second, w, z, e, all_live)


def _covariance(
    first: Length, second: Length, w: Array, z: Array, e: Array | None, all_live: bool
) -> Covariance:
    if all_live:
        first, second = Length(first.q), Length(second.q)
    else:
        # a zero vector has no direction: a right angle to everything but zero is the symmetric
        # choice; zero and zero are one and the same
        both, neither = first.live & second.live, ~(first.live | second.live)
        xp = namespace.of(w)
        w = xp.where(both, w, xp.where(neither, 0.0, 0.5))
        z = xp.where(both, z, xp.where(neither, 1.0, 0.5))
    return Covariance(first, second, w, z, z - w, e)


def itself(inputs: Inputs, all_live: bool) -> Covariance:
    """The covariance of every input with itself, (n,). The angle is one number: so are lengths behind a LayerNorm."""
    length = Length(inputs.square) if all_live else Length(inputs.square, inputs.live)
    zero, one = (namespace.of(inputs.length).float64(number) for number in (0, 1))
    return Covariance(length, length, zero, one, one, zero)


def _square_sum(x: Array) -> Precise:
    """The sum of the squares of each row, joined in pairs."""
    width = 1 << (x.shape[1] - 1).bit_length()
    squares = as_precise(namespace.of(x).pad(x, ((0, 0), (0, width - x.shape[1]))))
    squares = squares * squares
    while squares.high.shape[1] > 1:
        left, right = (_every_second(squares, start) for start in (0, 1))
        squares = left + right
    return jax.tree.map(lambda v: v[:, 0], squares)


def _every_second(x: Precise, start: int) -> Precise:
    return jax.tree.map(lambda v: v[:, start::2], x)


def _divide(x: Precise, number: int) -> Precise:
    high = x.high / number
    rest = x + as_precise(high) * -number
    return Precise(high, constant(rest.high + rest.low) / number)


def shift(x: Array, exponent: Array) -> Array:
    """x 2^k, in two factors so that each is in range."""
    half = exponent >> 1
    return x * two_to(half) * two_to(exponent - half)
