"""From inputs to the kernels of all their pairs, or of some."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.state import Kernels, at_input
from lnkernel.evaluate.float64 import geometry
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.deep import run

Array = Any


class Points(NamedTuple):
    """Inputs as they are, and less their means where a LayerNorm acts on the raw input."""

    raw: geometry.Inputs
    centred: geometry.Inputs | None


def prepare(x: Array, centre: bool) -> Points:
    return Points(geometry.prepare(x, False), geometry.prepare(x, True) if centre else None)


def take(points: Points, index: Any) -> Points:
    """Some of the points: an integer, a slice, an index array."""
    return jax.tree.map(lambda leaf: leaf[index], points)


def through(arch: Node, total: Covariance, centred: Covariance | None) -> Kernels:
    """K and Θ behind `arch` of pairs that come with these covariances."""
    start = at_input(total, total if centred is None else centred)
    num = Float64()
    return run(arch, start, num).kernels(num)


def quick(arch: Node, one: Points, two: Points, all_live: bool) -> Kernels:
    """All pairs, (n, m), as exact as `geometry.quick`."""
    total, _ = geometry.quick(one.raw, two.raw, all_live)
    if one.centred is None or two.centred is None:
        return through(arch, total, None)
    centred, _ = geometry.quick(one.centred, two.centred, False)
    return through(arch, total, centred)


def delicate(one: Points, two: Points, all_live: bool) -> Array:
    """Which of all pairs, (n, m), need `careful`."""
    _, some = geometry.quick(one.raw, two.raw, all_live)
    if one.centred is None or two.centred is None:
        return some
    return some | geometry.quick(one.centred, two.centred, False)[1]


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
    return Kernels(*(jnp.broadcast_to(k, points.raw.length.shape) for k in kernels))
