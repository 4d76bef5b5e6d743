"""The multilayer perceptron, by a few words."""

from __future__ import annotations

import reprlib
from typing import Any

from lnkernel.arch.compose import Serial, serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.homogeneous import Relu
from lnkernel.arch.node import Node
from lnkernel.arch.norms import LayerNorm, RMSNorm
from lnkernel.check.layers import no_tracer
from lnkernel.check.plain import as_integer
from lnkernel.errors import ArchitectureError
from lnkernel.precision import is_traced

DEEPEST = 10_000  # hidden layers; the kernel of one pair takes half a minute there


def mlp(
    hidden: int = 2,
    width: int = 128,
    *,
    norm: str | None = None,
    activation: Elementwise | None = None,
    W_std: float = 2**0.5,
    b_std: float = 0.1,
    outputs: int = 1,
    norm_layer: LayerNorm | RMSNorm | None = None,
) -> Serial:
    r"""A multilayer perceptron: `hidden` times (Dense, [norm], activation), then a Dense.

    Args:
        hidden: number of hidden layers, at most 10,000.
        width: their width.
        norm: which hidden layers are normalised, between Dense and activation:
            None, "first", "last" or "all".
        activation: any activation of this library; `Relu()` by default.
        W_std, b_std: standard deviations of the weights and biases of every Dense.
        outputs: width of the last Dense.
        norm_layer: the normalisation; `LayerNorm()` by default.

    >>> import lnkernel as lnk
    >>> lnk.mlp(hidden=1, width=64, norm="first", W_std=1.5, b_std=0.0)
    serial(Dense(width=64, W_std=1.5, b_std=0.0), LayerNorm(eps=0.0, scale=False, bias=False),
           Relu(), Dense(width=1, W_std=1.5, b_std=0.0))
    """
    normalised = chosen_blocks("mlp", hidden, norm)
    activation = known_activation("mlp", activation, Relu())
    norm_layer = LayerNorm() if norm_layer is None else norm_layer
    layers: list[Node] = []
    for block in range(hidden):
        layers.append(Dense(width, W_std=W_std, b_std=b_std))
        layers.extend([norm_layer] if block in normalised else [])
        layers.append(activation)
    return serial(*layers, Dense(outputs, W_std=W_std, b_std=b_std))


def known_activation(
    name: str, activation: Elementwise | None, default: Elementwise
) -> Elementwise:
    """The activation of a builder of this name. A text is for those who read texts."""
    if isinstance(activation, str):
        raise ArchitectureError(
            name,
            "",
            f"activation must be a layer, got the text {reprlib.repr(activation)}",
            "Write e.g. activation=lnkernel.Relu(), with the brackets; texts are read by lnkernel.parse and by "
            "lnkernel.sklearn.NTKRegressor",
        )
    return default if activation is None else activation


def as_count(name: str, word: str, value: Any, remedy: str) -> int:
    """A number of layers and the like, of NumPy as well; `name` and `word` are those of the builder."""
    if is_traced(value):
        raise ArchitectureError(name, "", *no_tracer(word))
    count = as_integer(value)
    if count is None or count < 1:
        raise ArchitectureError(name, "", f"{word} must be an integer >= 1, got {value!r}", remedy)
    return count


def chosen_blocks(name: str, given: Any, norm: str | None, word: str = "hidden") -> range:
    """Which of so many hidden layers are normalised; `name` and `word` are those of the builder, for messages."""
    hidden = as_count(name, word, given, "Name at least one layer")
    if hidden > DEEPEST:
        raise ArchitectureError(
            name,
            "",
            f"{word} must be at most {DEEPEST}, got {hidden}, whose layers alone would fill the memory",
            "Choose fewer layers, or width=... if the width was meant",
        )
    if norm is not None and norm not in ("first", "last", "all"):
        raise ArchitectureError(
            name, "", f"norm={norm!r} is not known", 'Use None, "first", "last" or "all"'
        )
    chosen = {"first": range(1), "last": range(hidden - 1, hidden), "all": range(hidden)}
    return range(0) if norm is None else chosen[norm]
