"""The shape of the positions behind a layer: what networks of finite width are built from."""

from __future__ import annotations

from functools import singledispatch

from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.convolution import Convolution
from lnkernel.arch.node import Node
from lnkernel.arch.pooling import Flatten, GlobalAvgPool, GlobalSumPool, WindowPool

Shape = tuple[int, ...]


@singledispatch
def shape_behind(layer: Node, shape: Shape) -> Shape:
    """The shape of the positions behind the layer, from that before it; () where there are none.

    >>> import lnkernel as lnk
    >>> shape_behind(lnk.serial(lnk.Conv(8, (3, 3), strides=2), lnk.AvgPool((2, 2))), (32, 32))
    (8, 8)
    """
    return shape


@shape_behind.register
def _(layer: Convolution, shape: Shape) -> Shape:
    return tuple(slide.steps for slide in layer.window.over(shape, type(layer).__name__))


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
