"""From inputs to the kernels of all their pairs, or of some."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import (
    needs_difference,
    needs_range,
    needs_sharp_lengths,
    reads_centred_input,
)
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, at_input
from lnkernel.evaluate.float64 import geometry, namespace
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.deep import has_loop, run
from lnkernel.evaluate.float64.per_input import Recalling, Record, Remembering
from lnkernel.evaluate.float64.precise import plain
from lnkernel.types import Array


class Points(NamedTuple):
    """Inputs as they are, and less their means where a LayerNorm acts on the raw input."""

    raw: Any  # geometry.Inputs
    centred: Any  # the same, or None


def prepare(arch: Node, x: Array) -> Points:
    """The points as `arch` needs them."""
    with_range = needs_range(arch)
    centred = geometry.prepare(x, True, with_range) if reads_centred_input(arch) else None
    return Points(geometry.prepare(x, False, with_range), centred)


def blocks(arch: Node, points: Points, index: Array) -> Points:
    """What `quick` reads of the points with these numbers, (blocks, size)."""
    with_difference = needs_difference(arch)
    return Points(*(p and geometry.blocks(p, index, with_difference) for p in points))


def units(points: Points) -> Points | None:
    """The unit vectors of `blocks`, whose products `quick` needs, if their coordinates are many."""
    if points.raw.spread is not None:
        return None
    return Points(*(p and p.unit for p in points))


def without_units(points: Points) -> Points:
    """What `quick` reads beside their products."""
    return Points(*(p and p._replace(unit=None) for p in points))


def take(points: Points, index: Array) -> Points:
    """The points with these numbers, for `careful`."""
    return Points(*(p and geometry.take(p, index) for p in points))


def through(
    arch: Node,
    total: Covariance,
    centred: Covariance | None,
    quick: bool = False,
    equal: bool = False,
    by: Float64 | None = None,
) -> Kernels:
    """K and Θ behind `arch` of pairs that come with these covariances."""
    start = at_input(total, total if centred is None else centred)
    settings = needs_range(arch), quick, equal, needs_sharp_lengths(arch)
    if by is not None:
        kernels = rule(arch, start, by).kernels(by)
    elif namespace.of(total.w) is np:
        eager = EagerFloat64(*settings)
        kernels = rule(arch, start, eager).kernels(eager)
    else:
        num = Float64(*settings)
        kernels = run(arch, start, num).kernels(num)
    return Kernels(*map(plain, kernels))


def quick(
    arch: Node,
    one: Points,
    two: Points,
    all_live: bool,
    cosines: Points | None = None,
    by: Float64 | None = None,
) -> tuple[Kernels, Array]:
    """All pairs, (n, m), as exact as `geometry.quick`; and which of them need `careful`.

    `cosines` are the products of their `units`, which are formed here if they are not given, and `by` is an
    arithmetic other than the usual one.
    """
    with_difference = needs_difference(arch)
    of_raw, of_centred = (None, None) if cosines is None else cosines
    total, delicate = geometry.quick(one.raw, two.raw, all_live, with_difference, of_raw)
    if one.centred is None or two.centred is None:
        return through(arch, total, None, quick=True, by=by), delicate
    centred, also = geometry.quick(one.centred, two.centred, False, with_difference, of_centred)
    return through(arch, total, centred, quick=True, by=by), delicate | also


def remember(arch: Node, points: Points, side: int, all_live: bool) -> Record | None:
    """What `quick` with `recalling` needs of every point on this side of the pairs; None where the network is so deep
    that it becomes a loop."""
    if has_loop(arch):
        return None
    n = len(points.raw.live)
    all_of_them, none = (blocks_of_one(arch, points, np.arange(k)) for k in (n, 0))
    num = Remembering(needs_range(arch), needs_sharp_lengths(arch), side, n)
    quick(arch, *((all_of_them, none) if side == 0 else (none, all_of_them)), all_live, by=num)
    return num.record()


def recalling(arch: Node, records: tuple[Record, Record]) -> Recalling:
    """The arithmetic of pairs whose points have these records."""
    return Recalling(needs_range(arch), needs_sharp_lengths(arch), records)


def blocks_of_one(arch: Node, points: Points, index: np.ndarray) -> Points:
    """The same as `blocks`, for a single block."""
    made: Points = jax.tree.map(lambda part: part[0], blocks(arch, points, index[None]))
    return made


def careful(arch: Node, one: Points, two: Points, all_live: bool) -> Kernels:
    """Pairs listed side by side, (k,), to the last digits."""
    total = geometry.careful(one.raw, two.raw, False, all_live)
    if one.centred is None or two.centred is None:
        return through(arch, total, None)
    return through(arch, total, geometry.careful(one.centred, two.centred, True, False))


def diagonal(arch: Node, points: Points, all_live: bool) -> Kernels:
    """Every point with itself, (n,)."""
    total = geometry.itself(points.raw, all_live)
    centred = None if points.centred is None else geometry.itself(points.centred, False)
    kernels = through(arch, total, centred, equal=True)
    xp = namespace.of(*kernels)
    return Kernels(*(xp.broadcast_to(k, points.raw.live.shape) for k in kernels))
