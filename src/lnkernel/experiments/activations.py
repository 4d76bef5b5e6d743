"""The activations that an experiment's networks can have, by name; ReLU unless told otherwise."""

from __future__ import annotations

import re

from lnkernel.arch import Elementwise, Relu
from lnkernel.arch.parse import parse
from lnkernel.arch.registry import BUILDERS
from lnkernel.errors import InputError

DEFAULT = Relu()


def activation_named(text: str) -> Elementwise:
    """The activation of this name, in letters of any case, or of this text, as `parse` reads it.

    >>> activation_named("relu"), activation_named("silu"), activation_named("Silu(beta=2.0)")
    (Relu(), Silu(beta=1.0), Silu(beta=2.0))
    """
    known = {name.lower(): name for name, made in BUILDERS.items() if _is_activation(made)}
    name = known.get(text.lower())
    if name is None and "(" not in text:
        raise _unknown(text, known)
    made = parse(text if name is None else f"{name}()")
    if not isinstance(made, Elementwise):
        raise _unknown(text, known)
    return made


def key_of(activation: Elementwise) -> str:
    """Its name in the settings on which results depend; the ReLU's is older than the others.

    >>> key_of(activation_named("relu")), key_of(activation_named("tanh"))
    ('relu', 'Tanh()')
    """
    return "relu" if activation == DEFAULT else repr(activation)


def shown(activation: Elementwise) -> str:
    """Its name in a sentence.

    >>> shown(activation_named("relu")), shown(activation_named("tanh")), shown(activation_named("silu"))
    ('ReLU', 'Tanh', 'Silu(beta=1.0)')
    """
    return "ReLU" if activation == DEFAULT else repr(activation).removesuffix("()")


def folder_suffix(activation: Elementwise) -> str:
    """What the name of a folder gets, so that each activation's results have one of their own.

    >>> folder_suffix(activation_named("relu")), folder_suffix(activation_named("silu"))
    ('', '-silu-beta-1.0')
    """
    words = re.sub(r"[^a-z0-9.]+", "-", repr(activation).lower()).strip("-")
    return "" if activation == DEFAULT else f"-{words}"


def _is_activation(made: object) -> bool:
    return isinstance(made, type) and issubclass(made, Elementwise)


def _unknown(text: str, known: dict[str, str]) -> InputError:
    return InputError(
        "activation",
        "the name of an activation",
        repr(text),
        f"There are {', '.join(known)}; with arguments write e.g. 'Silu(beta=2.0)'",
    )
