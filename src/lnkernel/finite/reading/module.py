"""The other way: a Flax network read as an architecture."""

from __future__ import annotations

from collections.abc import Sequence

from flax import nnx

from lnkernel.arch import Node, Serial, serial
from lnkernel.arch.compose import layers_of
from lnkernel.arch.facts import acts_on_positions, position_axes
from lnkernel.arch.flow import check_network, rows_of
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.finite.reading import (  # noqa: F401  # they register their readers
    activations,
    composition,
    dropout,
    linear,
    norms,
    spatial,
    tracing,
)
from lnkernel.finite.reading.refusals import NotUnderstoodError
from lnkernel.finite.reading.registry import Reading, read
from lnkernel.finite.reading.shapes import Squeezed, axes_told, vectors_taken, without_end
from lnkernel.finite.reading.tracing import REMEDY

Stds = float | Sequence[float] | None


def from_flax(module: nnx.Module, *, W_std: Stds = None, b_std: Stds = None) -> Serial:
    r"""The architecture of a Flax module, to ask for its kernels.

    It reads `nnx.Linear`, `nnx.Conv`, `nnx.avg_pool`, `x.reshape(x.shape[0], -1)` and means over all positions,
    `x.mean(axis=(1, 2))`, `nnx.LayerNorm`, `nnx.RMSNorm`, `nnx.GroupNorm` (its closed form needs
    `epsilon=0`), `nnx.relu`, `nnx.leaky_relu`, `nnx.elu` and `nnx.gelu` (also in a `functools.partial`),
    `nnx.silu`, `nnx.sigmoid`, `nnx.softplus`, `nnx.selu`, `nnx.hard_tanh`, `nnx.relu6`, `jnp.tanh`, `jnp.sin`,
    `jnp.cos`, `jnp.sign`, `jnp.abs`, `jnp.square`, `jnp.maximum(x, 0)`, `jnp.clip(x, low, high)`, `x.squeeze(-1)` of
    one output at the end, `x * x`, `-x`, sums with and products by plain numbers such as `(x + y) / 2**0.5`,
    `nnx.identity`, `nnx.Dropout` in evaluation mode (`model.eval()`), sequences within sequences, and everything
    that `network` builds.
    A layer that cannot be read is refused, with its place and the reason.

    A class of your own is read by calling it, with something in the place of the data that records
    which layers it goes through: its `__call__` may call layers and known activations, also through methods
    and functions of yours, those of parents and those that are compiled, in loops, and add the results, or
    multiply them by fixed numbers. A line that does anything else with the data is an error that names this
    line. So are layers that are called twice, whose parameters are shared. (What is read is one call: an `if` on
    numbers of the module is followed as it is.)

    A module does not remember how it was initialised. Unless you say otherwise its Linear layers
    are taken as Flax's defaults make them, `lecun_normal` weights and zero biases, which is
    `W_std=1, b_std=0`; if their numbers show that this is not so, that is an error. Read the module
    before it is trained.

    The kernels are those of the NTK parametrisation of the same network. A bias that starts at
    zero is trained all the same; `Dense(b_std=0)` has no bias, which is right for $K$, and leaves
    the bias's share of $\Theta$ out. Give `b_std` to have a bias in both.

    Args:
        module: the network.
        W_std: for the `nnx.Linear` and `nnx.Conv` layers, one number or one for each in the order of the data: their
            weights were drawn with variance $W_{std}^2/n_{in}$ (`he_normal`: `2**0.5`).
        b_std: the same for the standard deviation of their biases; without `use_bias` it is 0.

    >>> import lnkernel as lnk
    >>> from flax import nnx
    >>> rngs = nnx.Rngs(0)
    >>> lnk.finite.from_flax(nnx.Sequential(
    ...     nnx.Linear(3, 64, rngs=rngs), nnx.LayerNorm(64, rngs=rngs), nnx.relu,
    ...     nnx.Linear(64, 1, rngs=rngs)))
    serial(Dense(width=64, W_std=1.0, b_std=0.0), LayerNorm(eps=1e-06, scale=True, bias=True),
           Relu(), Dense(width=1, W_std=1.0, b_std=0.0))

    A class:

    >>> class Block(nnx.Module):
    ...     def __init__(self, width, rngs):
    ...         self.start = nnx.Linear(3, width, rngs=rngs)
    ...         self.inner = nnx.Linear(width, width, rngs=rngs)
    ...         self.end = nnx.Linear(width, 1, rngs=rngs)
    ...     def __call__(self, x):
    ...         x = self.start(x)
    ...         x = x + self.inner(nnx.relu(x))
    ...         return self.end(x)
    >>> lnk.finite.from_flax(Block(8, nnx.Rngs(0)))
    serial(Dense(width=8, W_std=1.0, b_std=0.0), residual(serial(Relu(), Dense(width=8, W_std=1.0, b_std=0.0))),
           Dense(width=1, W_std=1.0, b_std=0.0))
    """
    if not isinstance(module, nnx.Module):
        raise InputError(
            "module",
            "an nnx.Module",
            f"{module!r} of type {type(module).__name__}",
            "Write e.g. from_flax(nnx.Sequential(nnx.Linear(3, 64, rngs=rngs), ...))",
        )
    count = sum(type(part) in (nnx.Linear, nnx.Conv) for _, part in nnx.iter_modules(module))
    stds = zip(_one_each("W_std", W_std, count), _one_each("b_std", b_std, count), strict=True)
    told: list[int] = []
    taken: list[bool] = []
    tokens = axes_told.set(told), vectors_taken.set(taken)
    try:
        node, _ = read(module, Reading(None, stds))
    except NotUnderstoodError as problem:  # of a function that stands in a sequence
        raise ArchitectureError(type(module).__name__, "", problem.why, REMEDY) from None
    finally:
        axes_told.reset(tokens[0])
        vectors_taken.reset(tokens[1])
    layers = without_end(layers_of(node))
    arch = check_network(Serial(layers))
    if any(isinstance(part, Squeezed) for _, part, _ in rows_of(arch)):
        raise ArchitectureError(
            "squeeze",
            "",
            "it removes an axis before the end of the network",
            "Leave it out there; behind the last layer it may stand",
        )
    _check_axes(arch, told)
    if taken and acts_on_positions(arch):
        raise ArchitectureError(
            "ndim or shape",
            "",
            "it was asked where no layer has told the number of axes, and inputs have positions here",
            "Leave it out there; behind nnx.Conv, and behind a mean or a reshape in the same call, it is known",
        )
    return serial(*layers)


def _check_axes(arch: Node, told: list[int]) -> None:
    """A mean, or a norm, over axes 1, 2, ... is over all positions only if there are so many axes."""
    axes = position_axes(arch)
    wrong = [count for count in told if count != (axes or told[0])]
    if wrong:
        raise ArchitectureError(
            "mean or norm",
            "",
            f"one is over {wrong[0]} axes behind the first, and the positions have {axes or told[0]}",
            "Take all axes of the positions: axis=(1, 2) for the mean of images",
        )


def _one_each(name: str, given: Stds, count: int) -> list[float | None]:
    if not isinstance(given, Sequence):
        return [given] * count
    if isinstance(given, str) or len(given) != count:
        raise InputError(
            name,
            f"a number, or one for each of the {count} nnx.Linear and nnx.Conv",
            repr(given),
            f"Write e.g. {name}=1.0",
        )
    return list(given)
