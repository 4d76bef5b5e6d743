"""A network as parameters of scikit-learn: a description, its text, or a few words."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from lnkernel.arch import Elementwise, Node, mlp
from lnkernel.arch.parse import parse
from lnkernel.arch.registry import BUILDERS
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.arch.traits import traits
from lnkernel.errors import InputError

HIDDEN, NORM, ACTIVATION, W_STD, B_STD = 2, "first", "relu", 2**0.5, 0.1
WORDS = {"hidden": HIDDEN, "norm": NORM, "activation": ACTIVATION, "W_std": W_STD, "b_std": B_STD}


def as_network(arch: Architecture | None) -> Node:
    """The network that is meant; None is the default."""
    return mlp(hidden=HIDDEN, norm=NORM) if arch is None else as_architecture(arch)


def choose_network(arch: Architecture | None, **words: Any) -> Node:
    """`arch`, or, where that is None, the perceptron of these words: one of the two can be given.

    >>> choose_network(None, **WORDS) == as_network(None)
    True
    >>> choose_network("mlp()", **WORDS | {"hidden": 3})
    Traceback (most recent call last):
    ...
    lnkernel.errors.InputError: arch: expected None where hidden=3 is given, got 'mlp()'. ...
    """
    if arch is not None:
        given = [f"{name}={words[name]!r}" for name in WORDS if words[name] != WORDS[name]]
        if given:
            raise InputError(
                "arch",
                f"None where {', '.join(given)} is given",
                repr(arch),
                "Say it in one way: arch=, or hidden=, norm=, activation=, W_std= and b_std=",
            )
        return as_architecture(arch)
    hidden = words["hidden"]
    whole = isinstance(hidden, Integral) and not isinstance(hidden, bool)
    return mlp(
        hidden=int(hidden) if whole else hidden,  # that of a NumPy array is an integer, too
        norm=words["norm"],
        activation=as_activation(words["activation"]),
        W_std=words["W_std"],
        b_std=words["b_std"],
    )


def as_activation(activation: Elementwise | str) -> Any:
    """The activation that is meant: itself, its name, or its text.

    >>> as_activation("leaky_relu"), as_activation("LeakyRelu(0.2)")
    (LeakyRelu(slope=0.01), LeakyRelu(slope=0.2))
    """
    found: Any = activation
    if isinstance(activation, str):
        names = {name.lower(): name for name in BUILDERS}
        name = names.get(activation.lower().replace("_", ""))
        found = parse(f"{name}()" if name else activation)
    if not (isinstance(found, Elementwise) or (isinstance(found, Node) and _is_identity(found))):
        raise InputError(
            "activation",
            "an activation, its name or its text",
            repr(activation),
            'Write e.g. "gelu", "LeakyRelu(0.2)" or lnkernel.Tanh()',
        )
    return found


def _is_identity(layer: Node) -> bool:
    """Whether it is no activation, which makes a linear network."""
    return traits(layer).is_identity
