"""Sequences, sums and linear layers of NNX: what the factored Jacobian knows of a module.

A type is registered with its own call, so that subclasses, which may call otherwise, are not taken
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flax import nnx

from lnkernel.tangents.selection import Path

Scales = Callable[[Any], tuple[Any, Any]]
Kind = TypeVar("Kind", bound=type)

_PARTS: dict[type, tuple[str, bool]] = {}
_LINEAR: dict[type, Scales] = {}


def register_sequence(kind: Kind, attribute: str = "layers") -> Kind:
    """Modules of this type apply the modules in a list one after the other."""
    _PARTS[kind] = attribute, False
    return kind


def register_sum(kind: Kind, attribute: str) -> Kind:
    """Modules of this type add up what the modules in a list make of the same input."""
    _PARTS[kind] = attribute, True
    return kind


def register_linear(kind: Kind, scales: Scales) -> Kind:
    """Modules of this type are h = c W a + s b, with W in `kernel` (inputs, outputs), b in `bias`
    (or None), and (c, s) what `scales` says of a module.
    """
    _LINEAR[kind] = scales
    return kind


register_sequence(nnx.Sequential)
register_linear(nnx.Linear, lambda layer: (1.0, 1.0))


def is_sequence(layer: Any) -> bool:
    """Whether modules in a list are applied one after the other."""
    return type(layer) in _PARTS and not _PARTS[type(layer)][1]


def is_linear(layer: Any) -> bool:
    """Whether it is h = c W a + s b."""
    return type(layer) in _LINEAR


def scales(layer: Any) -> tuple[Any, Any]:
    """c and s of a linear layer."""
    return _LINEAR[type(layer)](layer)


def parts(layer: Any) -> tuple[str, bool, Any] | None:
    """The attribute that holds the parts of a sequence or a sum, whether it is a sum, the parts."""
    if type(layer) not in _PARTS:
        return None
    attribute, is_sum = _PARTS[type(layer)]
    return attribute, is_sum, getattr(layer, attribute)


def inner_layers(layer: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The layers that are no sequences or sums of others, with their paths."""
    inner = parts(layer)
    if inner is None:
        yield path, layer
        return
    name, _, layers = inner
    for number, part in enumerate(layers):
        yield from inner_layers(part, (*path, name, number))
