"""Sums over windows of positions, of arrays whose last axes are positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch.window import Slide
from lnkernel.calculus.covariance import Covariance, with_kept_angle
from lnkernel.calculus.positions import (
    Groups,
    of_one_side,
    spread,
    window_places,
    window_sum,
    without_axes,
)
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.arithmetic import Float64, PlainLengths
from lnkernel.evaluate.float64.elementary import computed_once
from lnkernel.evaluate.float64.precise import Precise
from lnkernel.types import Array


@spread.register
def _(num: Float64, x: Any, form: tuple[int, ...]) -> Any:
    def of(part: Any) -> Any:
        part = num.xp.asarray(part)
        shape = np.broadcast_shapes(part.shape, form)
        return part if part.shape == shape else num.xp.broadcast_to(part, shape)

    return jax.tree.map(of, x)


@window_sum.register
def _(num: Float64, x: Any, groups: Groups, slides: list[Slide]) -> Any:
    x = _in_few_steps(x)
    for axes, slide in zip(groups, slides, strict=True):
        x = _padded(x, axes, slide)
    x = _in_memory(x)
    if _holds_all(x, groups, slides):
        return _sum_of_first(x, len(groups))[(None,) * len(groups)]
    order = list(zip(groups, slides, strict=True))
    if not _comes_first(x, groups):  # axes that lie together in memory
        order.reverse()
    for axes, slide in order:
        whole = _is_whole(x, axes, slide)
        x = _sum_of_all(x, axes) if whole else reduce(add, _places(x, axes, slide))
    return x


@window_places.register
def _(num: Float64, x: Any, groups: Groups, slides: list[Slide]) -> Iterator[Any]:
    for axes, slide in zip(groups, slides, strict=True):
        x = _padded(x, axes, slide)
    x = _in_memory(x)
    for places in product(*(range(slide.size) for slide in slides)):
        yield reduce(
            lambda made, step: _cut(made, *step), zip(groups, slides, places, strict=True), x
        )


@with_kept_angle.register
def _(num: PlainLengths, cov: Covariance) -> Covariance:
    """By a root or a division, which XLA does not repeat. An activation takes the root of a small angle anyway."""
    if not isinstance(cov.w, jax.Array):
        return cov
    if cov.never_obtuse:
        root = jnp.sqrt(cov.w)
        w = root * root
        return dataclasses.replace(cov, w=w, z=1 - w, c=1 - 2 * w)
    w, z = computed_once(cov.w), computed_once(cov.z)
    return dataclasses.replace(cov, w=w, z=z, c=jnp.where(w < 0.25, 1 - 2 * w, z - w))


@of_one_side.register
def _(num: Float64, x: Any, others: tuple[int, ...]) -> Any:
    def of(part: Any) -> Any:
        inside = [axis for axis in others if -axis <= np.ndim(part) and part.shape[axis] > 1]
        for axis in inside:
            part = namespace.of(part).take(part, np.array([0]), axis=axis)
        return part

    return jax.tree.map(of, x)


@without_axes.register
def _(num: Float64, x: Any, count: int, behind: int) -> Any:
    def of(part: Any) -> Any:
        stop = np.ndim(part) - behind
        gone = min(count, stop)
        return part if gone <= 0 else part.reshape(part.shape[: stop - gone] + part.shape[stop:])

    return jax.tree.map(of, x)


def _in_few_steps(x: Any) -> Any:
    """In a program, lengths to the digits of float64: a sum over nine places to twice the digits would take longer to
    compile than all the rest, and no layer behind it multiplies its rounding error."""
    if isinstance(x, Precise) and x.exponent is None and isinstance(x.high, jax.Array):
        return x.high
    return x


def _is_whole(x: Any, axes: tuple[int, ...], slide: Slide) -> bool:
    """Whether the window holds all positions, of plain numbers."""
    plain = len(jax.tree.leaves(x)) == 1
    return plain and slide.steps == 1 and x.shape[axes[0]] == slide.size


def _holds_all(x: Any, groups: Groups, slides: list[Slide]) -> bool:
    """Whether one window holds all positions, which come first in memory in an array of a program."""
    pairs = zip(groups, slides, strict=True)
    return (
        isinstance(x, jax.Array)
        and _comes_first(x, groups)
        and all(len(axes) == 1 and _is_whole(x, axes, slide) for axes, slide in pairs)
    )


def _sum_of_first(x: Array, count: int) -> Array:
    """The sum over so many axes, the last of them first, each as a product: what makes x is then computed row by row,
    without a division of whole numbers for each of its numbers."""
    rest = x.shape[count:]
    while count:
        rows = x.reshape(*x.shape[:count], -1)
        ones = jnp.ones((*x.shape[: count - 1], 1, x.shape[count - 1]), x.dtype)
        count -= 1
        x = (ones @ rows).reshape(*x.shape[:count], *rest)
    return x


def _sum_of_all(x: Array, axes: tuple[int, ...]) -> Array:
    xp = namespace.of(x)
    if len(axes) == 1:
        if xp is np:
            return x.sum(axis=axes[0], keepdims=True)
        # as a product: XLA's own sums take one number at a time, with all that makes it
        axis, ones = axes[0] % x.ndim, xp.ones(x.shape[axes[0]], x.dtype)
        if axis == 0:
            return (ones @ x.reshape(len(x), -1)).reshape(1, *x.shape[1:])
        return xp.expand_dims(xp.tensordot(x, ones, (axis, 0)), axis)
    total = xp.diagonal(x, axis1=axes[0], axis2=axes[1]).sum(axis=-1)
    return xp.expand_dims(total, tuple(axis % x.ndim for axis in axes))


def _places(x: Any, axes: tuple[int, ...], slide: Slide) -> Iterator[Any]:
    return (_cut(x, axes, slide, place) for place in range(slide.size))


def _comes_first(x: Any, groups: Groups) -> bool:
    """Whether the first axes of the arrays are those of a window, with others behind them."""
    return all(-groups[0][0] == np.ndim(part) > len(groups) for part in jax.tree.leaves(x))


def _in_memory(x: Any) -> Any:
    """x, computed before a window reads it. XLA would compute what makes x anew for each place of the window, behind
    the next window for 81 places, and ask for each number whether it lies in the padding."""
    return jax.tree.map(
        lambda part: lax.optimization_barrier(part) if isinstance(part, jax.Array) else part, x
    )


def _padded(x: Any, axes: tuple[int, ...], slide: Slide) -> Any:
    if not (slide.low or slide.high):
        return x

    def of(part: Array) -> Array:
        widths = [(0, 0)] * part.ndim
        for axis in axes:
            widths[axis] = slide.low, slide.high
        made: Array = namespace.of(part).pad(
            part, widths, mode="wrap" if slide.wraps else "constant"
        )
        return made

    return jax.tree.map(of, x)


def _cut(x: Any, axes: tuple[int, ...], slide: Slide, place: int) -> Any:
    """The elements at one place of the window, for each of its steps."""
    stop = place + (slide.steps - 1) * slide.stride + 1

    def of(part: Array) -> Array:
        if isinstance(part, jax.Array):
            for axis in axes:
                part = lax.slice_in_dim(part, place, stop, slide.stride, axis % part.ndim)
            return part
        index = [slice(None)] * part.ndim
        for axis in axes:
            index[axis] = slice(place, stop, slide.stride)
        return part[tuple(index)]

    return jax.tree.map(of, x)
