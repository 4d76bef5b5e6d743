"""From inputs to the kernels of all their pairs, or of some."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, at_input
from lnkernel.evaluate.float64 import geometry, namespace
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.deep import run
from lnkernel.evaluate.float64.gathered import gather
from lnkernel.evaluate.float64.per_input import Complete, Nothing, Recalling, Record, Remembering
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram.network import Needs, Network
from lnkernel.types import Array


class Points(NamedTuple):
    """Inputs as they are, and less their means where a LayerNorm acts on the raw input."""

    raw: Any  # geometry.Inputs
    centred: Any  # the same, or None


def prepare(needs: Needs, x: Array) -> Points:
    """The points as a network with these needs takes them."""
    with_range, reads_centred = needs.range, needs.centred_input
    centred = geometry.prepare(x, True, with_range) if reads_centred else None
    return Points(geometry.prepare(x, False, with_range), centred)


def blocks(net: Network, points: Points, index: Array) -> Points:
    """What `quick` reads of the points with these numbers, (blocks, size)."""
    return Points(*(p and geometry.blocks(p, index, net.needs.quick_difference) for p in points))


def units(points: Points) -> Points | None:
    """The unit vectors of `blocks`, whose products `quick` needs, if their coordinates are many."""
    if points.raw.spread is not None:
        return None
    return Points(*(p and p.unit for p in points))


def without_units(points: Points) -> Points:
    """What `quick` reads beside their products."""
    return Points(*(p and p._replace(unit=None) for p in points))


def some(points: Points, most: int) -> Points:
    """The first points, so many at most, copied."""
    return Points(*(p and geometry.some(p, most) for p in points))


def take(points: Points, index: Array) -> Points:
    """The points with these numbers, for `careful`."""
    return Points(*(p and geometry.take(p, index) for p in points))


def through(
    net: Network,
    total: Covariance,
    centred: Covariance | None,
    quick: bool = False,
    equal: bool = False,
    by: Float64 | None = None,
) -> Kernels:
    """K and Θ behind the network of pairs that come with these covariances."""
    start = at_input(total, total if centred is None else centred)
    settings = net.needs.range, quick, equal, net.needs.sharp_lengths, net.needs.delicate
    if by is not None:
        kernels = rule(net.arch, start, by).kernels(by)
    elif namespace.of(total.w) is np:
        eager = EagerFloat64(*settings)
        kernels = rule(net.arch, start, eager).kernels(eager)
    else:
        num = Float64(*settings)
        kernels = run(net.arch, start, num, net.source).kernels(num)
    return Kernels(*map(plain, kernels))


def quick(
    net: Network,
    one: Points,
    two: Points,
    all_live: bool,
    cosines: Points | None = None,
    by: Float64 | None = None,
) -> tuple[Kernels, Array]:
    """The kernels of all pairs, (n, m), as exact as `geometry.quick`; and which of them need `careful`.

    `cosines` are the products of their `units`, which are formed here if they are not given, and `by` is an
    arithmetic other than the usual one.
    """
    with_difference = net.needs.quick_difference
    of_raw, of_centred = (None, None) if cosines is None else cosines
    least = net.needs.delicate
    total, delicate = geometry.quick(one.raw, two.raw, all_live, with_difference, of_raw, least)
    if one.centred is None or two.centred is None:
        return through(net, total, None, quick=True, by=by), delicate
    centred, also = geometry.quick(
        one.centred, two.centred, False, with_difference, of_centred, least
    )
    return through(net, total, centred, quick=True, by=by), delicate | also


def remember(
    net: Network,
    points: Points,
    side: int,
    all_live: bool,
    steps: int | None = None,
    nothing: Nothing = (),
) -> Remembering | None:
    """What `quick` with `recalling` needs of every point on this side of the pairs; None where the network is so deep
    that it becomes a loop. If the number of steps is known, the rest is not computed; nor is what is known of the
    other side, on which there are no points."""
    if net.needs.loop:
        return None
    n = len(points.raw.live)
    all_of_them, none = (blocks_of_one(net, points, np.arange(k)) for k in (n, 0))
    needs = net.needs
    num = Remembering(needs.range, needs.sharp_lengths, needs.delicate, side, n, steps, nothing)
    if steps != 0:
        with suppress(Complete):
            both = (all_of_them, none) if side == 0 else (none, all_of_them)
            quick(net, *both, all_live, by=num)
    return num


def recalling(net: Network, records: tuple[Record, Record]) -> Recalling:
    """The arithmetic of pairs whose points have these records."""
    return Recalling(net.needs.range, net.needs.sharp_lengths, net.needs.delicate, records)


def blocks_of_one(net: Network, points: Points, index: np.ndarray) -> Points:
    """The same as `blocks`, for a single block."""
    made: Points = jax.tree.map(lambda part: part[0], blocks(net, points, index[None]))
    return made


def careful_at(
    net: Network, one: Points, two: Points, places: tuple[np.ndarray, np.ndarray], all_live: bool
) -> Kernels:
    """The same for the pairs of these inputs, first and second: what a length tells is found once for an input."""
    first, second = (take(points, index) for points, index in zip((one, two), places, strict=True))
    if not all_live or one.centred is not None:
        return careful(net, first, second, all_live)
    total = geometry.careful(first.raw, second.raw, False, all_live)
    lengths = [
        Length(gather(points.raw.square, index))
        for points, index in zip((one, two), places, strict=True)
    ]
    return through(net, total.with_lengths(lengths[0], lengths[1], total.e), None)


def careful(net: Network, one: Points, two: Points, all_live: bool) -> Kernels:
    """The kernels of pairs listed side by side, (k,), to the last digits."""
    total = geometry.careful(one.raw, two.raw, False, all_live)
    if one.centred is None or two.centred is None:
        return through(net, total, None)
    return through(net, total, geometry.careful(one.centred, two.centred, True, False))


def diagonal(net: Network, points: Points, all_live: bool) -> Kernels:
    """The kernels of every point with itself, (n,); single numbers where they are the same for all."""
    total = geometry.itself(points.raw, all_live)
    centred = None if points.centred is None else geometry.itself(points.centred, False)
    return through(net, total, centred, equal=True)
