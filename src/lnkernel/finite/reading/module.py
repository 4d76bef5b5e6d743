"""The other way: a Flax network read as an architecture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flax import nnx

from lnkernel.arch import Dense, Node, Parallel, Serial, serial
from lnkernel.arch.flow import check_network
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.finite import modules
from lnkernel.finite.build import Network
from lnkernel.finite.reading.activations import read_activation
from lnkernel.finite.reading.norms import NORMS, read_norm
from lnkernel.finite.reading.spread import check_bias, check_weights

Stds = float | Sequence[float] | None


def from_flax(module: nnx.Module, *, W_std: Stds = None, b_std: Stds = None) -> Serial:
    r"""The architecture of an `nnx.Sequential`, to ask for its kernels.

    It reads `nnx.Linear`, `nnx.LayerNorm`, `nnx.RMSNorm`, `nnx.GroupNorm` (its closed form needs
    `epsilon=0`), `nnx.relu`, `nnx.leaky_relu` (also in a `functools.partial`), `jnp.abs`,
    `jnp.square`, `nnx.identity`, sequences within sequences, and everything that `network` builds.
    Of another layer it says where it stands and why it cannot be read.

    A module does not remember how it was initialised. Unless you say otherwise its Linear layers
    are taken as Flax's defaults make them, `lecun_normal` weights and zero biases, which is
    `W_std=1, b_std=0`; if their numbers show that this is not so, that is an error. Read the module
    before it is trained.

    The kernels are those of the NTK parametrisation of the same network. A bias that starts at
    zero is trained all the same; `Dense(b_std=0)` has no bias, which is right for $K$, and leaves
    the bias's share of $\Theta$ out. Give `b_std` to have a bias in both.

    Args:
        module: the network.
        W_std: of the `nnx.Linear` layers, one number or one for each: their weights were drawn
            with variance $W_{std}^2/n_{in}$ (`he_normal`: `2**0.5`).
        b_std: the same for the standard deviation of their biases; without `use_bias` it is 0.

    >>> import lnkernel as lnk
    >>> from flax import nnx
    >>> rngs = nnx.Rngs(0)
    >>> lnk.finite.from_flax(nnx.Sequential(
    ...     nnx.Linear(3, 64, rngs=rngs), nnx.LayerNorm(64, rngs=rngs), nnx.relu,
    ...     nnx.Linear(64, 1, rngs=rngs)))
    serial(Dense(width=64, W_std=1.0, b_std=0.0), LayerNorm(eps=1e-06, scale=True, bias=True),
           Relu(), Dense(width=1, W_std=1.0, b_std=0.0))
    """
    if not isinstance(module, nnx.Module):
        raise InputError(
            "module",
            "an nnx.Sequential",
            f"{module!r} of type {type(module).__name__}",
            "Write e.g. from_flax(nnx.Sequential(nnx.Linear(3, 64, rngs=rngs), ...))",
        )
    count = sum(type(part) is nnx.Linear for _, part in nnx.iter_modules(module))
    reading = _Reading(_one_each("W_std", W_std, count), _one_each("b_std", b_std, count))
    node, _ = reading.read(module, None, "")
    layers = node.layers if isinstance(node, Serial) else (node,)
    check_network(Serial(layers))
    return serial(*layers)


class _Reading:
    """One pass over a module, in the order in which data flows through it.

    What it returns is checked as a whole, where its positions are those of the module.
    """

    def __init__(self, W_stds: list[float | None], b_stds: list[float | None]):
        self.W_stds, self.b_stds = iter(W_stds), iter(b_stds)

    def read(self, part: Any, width: int | None, here: str) -> tuple[Node, int | None]:
        """The node that `part` stands for, and the number of features behind it, if known."""
        kind = type(part)
        if kind in (nnx.Sequential, Network):
            return self._serial(part, width, here)
        if kind is modules.Sum:
            return self._sum(part, width, here)
        if kind is nnx.Linear:
            return self._linear(part, width, here), part.out_features
        if kind is modules.NTKLinear:
            _check_width(part, part.in_features, width, here)
            return Dense(part.out_features, part.W_std, part.b_std), part.out_features
        if kind in NORMS:
            node, features = read_norm(part, width, here)
            if features is not None:
                _check_width(part, features, width, here)
            return node, width if features is None else features
        return read_activation(part, here), width

    def _serial(self, part: Any, width: int | None, here: str) -> tuple[Node, int | None]:
        nodes: list[Node] = []
        prefix = f"{here}, " if here else ""
        for place, layer in enumerate(part.layers):
            node, width = self.read(layer, width, f"{prefix}layer {place}")
            nodes.extend(node.layers if isinstance(node, Serial) else (node,))
        return Serial(tuple(nodes)), width

    def _sum(self, part: modules.Sum, width: int | None, here: str) -> tuple[Node, int | None]:
        prefix = f"{here}, " if here else ""
        ends = [
            self.read(branch, width, f"{prefix}branch {number}")
            for number, branch in enumerate(part.branches)
        ]
        return Parallel(tuple(node for node, _ in ends)), ends[-1][1]

    def _linear(self, part: nnx.Linear, width: int | None, here: str) -> Dense:
        _check_width(part, part.in_features, width, here)
        W_std, b_std = next(self.W_stds), next(self.b_stds)
        if W_std is None:
            W_std = 1.0
            check_weights(part, here)
        if part.bias is None:
            b_std = 0.0
        elif b_std is None:
            b_std = 0.0
            check_bias(part, here)
        return Dense(part.out_features, W_std, b_std)


def _check_width(part: Any, expected: int, width: int | None, here: str) -> None:
    if width is not None and width != expected:
        raise ArchitectureError(
            type(part).__name__,
            here,
            f"it takes {expected} features, and there are {width} before it",
            "Build it with as many features as the layer before it has",
        )


def _one_each(name: str, given: Stds, count: int) -> list[float | None]:
    if not isinstance(given, Sequence):
        return [given] * count
    if isinstance(given, str) or len(given) != count:
        raise InputError(
            name,
            f"a number, or one for each of the {count} nnx.Linear",
            repr(given),
            f"Write e.g. {name}=1.0",
        )
    return list(given)
