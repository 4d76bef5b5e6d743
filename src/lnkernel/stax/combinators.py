"""Layers one after another, and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lnkernel.arch import Identity, Node
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.stax.parts import Beside, Branches, Fork, Join, is_whole
from lnkernel.stax.stack import Stack, common_parameterization, concatenate
from lnkernel.stax.triple import Layer, layer_of


def serial(*layers: Any) -> Layer:
    """The layers one after another, the first one first.

    A layer may also be a node of this library's own, such as `lnkernel.RMSNorm()`.

    What has no closed form raises here, and not only when the kernel is computed.

    >>> from lnkernel import stax
    >>> block = stax.serial(stax.Dense(512, W_std=1.5), stax.LayerNorm(eps=0.0), stax.Relu())
    >>> init_fn, apply_fn, kernel_fn = stax.serial(block, stax.Dense(1))
    >>> kernel_fn([[1.0, 2.0], [3.0, 4.0]], None, "cov1").round(12).tolist()  # E relu(u)² = 1/2
    [0.5, 0.5]
    """
    if not layers:
        raise ArchitectureError("stax.serial", "", "it needs at least one layer", "Name one")
    made = concatenate(_as_stacks("serial", layers))
    if is_whole(made.parts):
        _ = made.arch  # the errors of the architecture belong here
    return Layer(made)


def repeat(layer: Any, n: int) -> Layer:
    """The same layer n times, each with parameters of its own: `serial(*n * [layer])`.

    For n = 0 it is `Identity()`.

    >>> from lnkernel import stax
    >>> block = stax.serial(stax.Dense(64), stax.Relu())
    >>> len(stax.repeat(block, 10).arch.layers)
    20
    """
    _check_number("n", n, least=0)
    return serial(*n * [layer]) if n else layer_of(Identity())


def parallel(*layers: Any) -> Layer:
    """A layer for each copy of the input, between `FanOut` and `FanInSum` or `FanInConcat`.

    >>> from lnkernel import stax
    >>> block = stax.serial(stax.Relu(), stax.Dense(64))
    >>> residual = stax.serial(
    ...     stax.FanOut(2), stax.parallel(block, stax.Identity()), stax.FanInSum()
    ... )
    >>> residual.arch
    parallel(serial(Relu(), Dense(width=64, W_std=1.0, b_std=0.0)), Identity())
    """
    if not layers:
        raise ArchitectureError("stax.parallel", "", "it needs at least one layer", "Name one")
    stacks = _as_stacks("parallel", layers)
    branches = Branches(tuple(stack.parts for stack in stacks))
    return Layer(Stack((branches,), common_parameterization(stacks)))


def FanOut(num: int) -> Layer:
    """So many copies of the input, one for each layer of the `parallel` behind it.

    >>> from lnkernel import stax
    >>> one, other = stax.Dense(8), stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(8))
    >>> sum_of_both = stax.serial(stax.FanOut(2), stax.parallel(one, other), stax.FanInSum())
    >>> len(sum_of_both.arch.branches)
    2
    """
    _check_number("num", num, least=1)
    return Layer(Stack((Fork(num),)))


def FanInSum() -> Layer:
    """The sum of the branches.

    There it needs Gaussian branches; here one of them may end in an activation.

    >>> from lnkernel import stax
    >>> one = stax.serial(stax.Dense(8), stax.Relu())
    >>> layer = stax.serial(stax.FanOut(2), stax.parallel(one, stax.Dense(8)), stax.FanInSum())
    >>> layer.arch.branches[1]
    Dense(width=8, W_std=1.0, b_std=0.0)
    """
    return Layer(Stack((Join(),)))


def FanInConcat(axis: int = -1) -> Layer:
    r"""The channels of the branches side by side, which a Dense or a convolution behind them mixes.

    Weights that mix channels side by side are a sum of weights for each branch, with its share of the variance by the
    number of its channels. So the network is a `parallel` sum, and is the same at finite width, too. As there, no
    activation and no norm may stand between; pooling, `Flatten`, `Index` and `ImageResize` may.

    Args:
        axis: -1, the channels.

    >>> from lnkernel import stax
    >>> one, other = stax.serial(stax.Dense(8), stax.Relu()), stax.serial(stax.Dense(24), stax.Erf())
    >>> both = stax.serial(stax.FanOut(2), stax.parallel(one, other), stax.FanInConcat())
    >>> [branch.layers[-1].W_std for branch in stax.serial(both, stax.Dense(1, W_std=2.0)).arch.branches]
    [1.0, 1.7320508075688772]
    """
    if axis != -1:
        raise ArchitectureError(
            "stax.FanInConcat",
            "",
            f"axis={axis!r} is not that of the channels, -1, and branches beside each other in space are not in this "
            "library",
            "Write axis=-1, the last axis, which holds the channels here",
        )
    return Layer(Stack((Beside(),)))


def _as_stacks(name: str, layers: Sequence[Any]) -> list[Stack]:
    return [_as_layer(name, place, layer).stack for place, layer in enumerate(layers)]


def _as_layer(name: str, place: int, layer: Any) -> Layer:
    """A layer as it is, unpacked into its three functions, or as a node of an architecture."""
    if isinstance(layer, Layer):
        return layer
    if isinstance(layer, Node):
        return layer_of(layer)
    if isinstance(layer, tuple) and len(layer) == 3:
        owners = [getattr(function, "__self__", None) for function in layer]
        if isinstance(owners[0], Layer) and all(owner is owners[0] for owner in owners):
            return owners[0]
    raise ArchitectureError(
        f"stax.{name}",
        f"argument {place}",
        f"expected a layer of lnkernel.stax, got {layer!r} of type {type(layer).__name__}",
        "Write e.g. stax.Relu(), with the brackets; layers of your own go into the library itself",
    )


def _check_number(name: str, number: Any, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InputError(
            name, f"an integer, at least {least}", repr(number), f"Choose {name} = {least} or more"
        )
