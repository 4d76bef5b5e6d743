"""From inputs to the kernels of all their pairs, or of some."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.state import Kernels, at_input
from lnkernel.evaluate.float64 import geometry
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.deep import run
from lnkernel.gram.structure import needs_difference

Array = Any
ROUGH = 1e-4  # more than the error of a cosine in float32


class Points(NamedTuple):
    """Inputs as they are, and less their means where a LayerNorm acts on the raw input."""

    raw: Any  # geometry.Inputs
    centred: Any  # the same, or None


def prepare(x: Array, centre: bool) -> Points:
    return Points(geometry.prepare(x, False), geometry.prepare(x, True) if centre else None)


def for_quick(arch: Node, points: Points) -> Points:
    """What `quick` and `any_delicate` read, without the rest."""
    with_difference = needs_difference(arch)
    return Points(*(p and geometry.for_quick(p, with_difference) for p in points))


def cut(points: Points, start: Array, size: int) -> Points:
    """`size` points from `start` on."""
    return Points(*(p and geometry.cut(p, start, size) for p in points))


def take(points: Points, index: Array) -> Points:
    """The points with these numbers, for `careful`."""
    return Points(*(p and geometry.take(p, index) for p in points))


def through(arch: Node, total: Covariance, centred: Covariance | None) -> Kernels:
    """K and Θ behind `arch` of pairs that come with these covariances."""
    start = at_input(total, total if centred is None else centred)
    num = Float64()
    return run(arch, start, num).kernels(num)


def quick(arch: Node, one: Points, two: Points, all_live: bool) -> Kernels:
    """All pairs, (n, m), as exact as `geometry.quick`."""
    with_difference = needs_difference(arch)
    total, _ = geometry.quick(one.raw, two.raw, all_live, with_difference)
    if one.centred is None or two.centred is None:
        return through(arch, total, None)
    centred, _ = geometry.quick(one.centred, two.centred, False, with_difference)
    return through(arch, total, centred)


def delicate(one: Points, two: Points, all_live: bool) -> Array:
    """Which of all pairs, (n, m), need `careful`."""
    _, some = geometry.quick(one.raw, two.raw, all_live, False)
    if one.centred is None or two.centred is None:
        return some
    return some | geometry.quick(one.centred, two.centred, False, False)[1]


def cosines(one: Points, two: Points) -> list[Array]:
    """Of all pairs, (n, m), maybe roughly: raw and centred."""
    sides = zip(one, two, strict=True)
    return [geometry.cosines(x, y) for x, y in sides if x is not None]


def any_delicate(cosines: list[Array], dimension: int, wanted: Array | None) -> Array:
    """Whether any (wanted) pair may be delicate."""
    limit = 1 - 2 * geometry.delicate_below(dimension) - ROUGH
    squares = [jnp.square(c) for c in cosines]
    if wanted is not None:
        squares = [jnp.where(wanted, s, 0.0) for s in squares]
    return jnp.stack([jnp.max(s) > limit * limit for s in squares]).any()


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
    kernels = through(arch, total, centred)
    return Kernels(*(jnp.broadcast_to(k, points.raw.square.shape) for k in kernels))
