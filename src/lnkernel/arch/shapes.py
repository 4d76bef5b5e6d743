"""The shape of the positions behind a layer: what networks of finite width are built from, and memory is planned by."""

from __future__ import annotations

import math
from functools import reduce, singledispatch

from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.convolution import Conv, ConvLocal, ConvTranspose
from lnkernel.arch.crop import Crop
from lnkernel.arch.node import Node
from lnkernel.arch.pooling import Flatten, GlobalAvgPool, GlobalSumPool, WindowPool
from lnkernel.arch.resize import Resize

Shape = tuple[int, ...]


@singledispatch
def shape_behind(layer: Node, shape: Shape) -> Shape:
    """The shape of the positions behind the layer, from that before it; () where there are none.

    >>> import lnkernel as lnk
    >>> shape_behind(lnk.serial(lnk.Conv(8, (3, 3), strides=2), lnk.AvgPool((2, 2))), (32, 32))
    (8, 8)
    """
    return shape


@shape_behind.register(Conv)
@shape_behind.register(ConvLocal)
def _(layer: Conv | ConvLocal, shape: Shape) -> Shape:
    return tuple(slide.steps for slide in layer.window.over(shape, type(layer).__name__))


@shape_behind.register
def _(layer: ConvTranspose, shape: Shape) -> Shape:
    wide = tuple(map(len, layer.over(shape)))
    return tuple(slide.steps for slide in layer.window.over(wide, "ConvTranspose"))


@shape_behind.register
def _(layer: Crop, shape: Shape) -> Shape:
    return tuple(map(len, layer.over(shape)))


@shape_behind.register
def _(layer: Resize, shape: Shape) -> Shape:
    return layer.behind(shape)


@shape_behind.register
def _(layer: WindowPool, shape: Shape) -> Shape:
    return tuple(slide.steps for slide in layer.slides.over(shape, type(layer).__name__))


@shape_behind.register(GlobalAvgPool)
@shape_behind.register(GlobalSumPool)
@shape_behind.register(Flatten)
def _(layer: GlobalAvgPool | GlobalSumPool | Flatten, shape: Shape) -> Shape:
    return ()


@shape_behind.register
def _(layer: Serial, shape: Shape) -> Shape:
    for part in layer.layers:
        shape = shape_behind(part, shape)
    return shape


@shape_behind.register
def _(layer: Parallel, shape: Shape) -> Shape:
    return shape_behind(layer.branches[0], shape)


@singledispatch
def largest_shape(layer: Node, shape: Shape) -> Shape:
    """The shape of the positions where there are most of them, before, inside of or behind the layer.

    >>> import lnkernel as lnk
    >>> largest_shape(lnk.serial(lnk.ConvTranspose(8, (2, 2), 2), lnk.AvgPool((4, 4))), (8, 8))
    (17, 17)
    """
    return _larger(shape, shape_behind(layer, shape))


@largest_shape.register
def _(layer: ConvTranspose, shape: Shape) -> Shape:
    """With the zeros that its filter reads."""
    return _larger(shape, tuple(map(len, layer.over(shape))))


@largest_shape.register
def _(layer: Serial, shape: Shape) -> Shape:
    largest = shape
    for part in layer.layers:
        largest = _larger(largest, largest_shape(part, shape))
        shape = shape_behind(part, shape)
    return largest


@largest_shape.register
def _(layer: Parallel, shape: Shape) -> Shape:
    return reduce(_larger, (largest_shape(branch, shape) for branch in layer.branches))


def _larger(one: Shape, two: Shape) -> Shape:
    """The one with more positions; () has none."""
    return max(one, two, key=lambda shape: math.prod(shape) if shape else 0)
