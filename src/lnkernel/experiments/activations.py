"""The activations that an experiment's networks can have, by name; ReLU unless told otherwise."""

from __future__ import annotations

import re

from lnkernel.arch import Elementwise, Relu
from lnkernel.arch.parse import parse
from lnkernel.arch.registry import BUILDERS
from lnkernel.errors import InputError

DEFAULT = Relu()


def find_activation(text: str) -> Elementwise:
    """The activation of this name, in letters of any case, or of this text, as `parse` reads it.

    >>> find_activation("relu"), find_activation("silu"), find_activation("Silu(beta=2.0)")
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
    """The activation's name in the settings that identify a result; that of the ReLU was chosen before the others.

    >>> key_of(find_activation("relu")), key_of(find_activation("tanh"))
    ('relu', 'Tanh()')
    """
    return "relu" if activation == DEFAULT else repr(activation)


def name_of(activation: Elementwise) -> str:
    """Its name in a sentence.

    >>> name_of(find_activation("relu")), name_of(find_activation("tanh")), name_of(find_activation("silu"))
    ('ReLU', 'Tanh', 'Silu(beta=1.0)')
    """
    return "ReLU" if activation == DEFAULT else repr(activation).removesuffix("()")


def folder_suffix(activation: Elementwise) -> str:
    """What the name of a folder gets, so that each activation's results have one of their own.

    >>> folder_suffix(find_activation("relu")), folder_suffix(find_activation("silu"))
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
