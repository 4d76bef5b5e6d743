"""Architectures as JSON: names of layers and their exact hyperparameters, read without `eval`."""

from __future__ import annotations

import dataclasses
from typing import Any

from lnkernel.arch import Node
from lnkernel.arch.flow import check_network
from lnkernel.arch.node import fields_of
from lnkernel.arch.norms import AXES
from lnkernel.arch.registry import LAYERS
from lnkernel.arch.traits import traits
from lnkernel.bounds.certified.fields import FieldError, items, mapping, number, text
from lnkernel.errors import CertificateError, LnkernelError

OF_LAYERS = ("tuple[Node, ...]", tuple[Node, ...])  # types of fields, as dataclasses keep them
DEFAULT_AXES = AXES[0]  # of norms, which certificates never named


def describe(arch: Node) -> dict[str, Any]:
    """The architecture as plain data; floats are written in hexadecimal, which is exact.

    >>> import lnkernel as lnk
    >>> describe(lnk.Dense(8, W_std=1.5))
    {'layer': 'Dense', 'width': 8, 'W_std': '0x1.8000000000000p+0', 'b_std': '0x0.0p+0'}
    """
    return {
        "layer": type(arch).__name__,
        **{name: _plain(v) for name, v in fields_of(arch).items() if _counts(arch, v)},
    }


def _counts(arch: Node, value: Any) -> bool:
    """Words are about positions: a layer that is not has none but such as mean nothing to it."""
    return not isinstance(value, str) or traits(arch).on_positions or value != DEFAULT_AXES


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [describe(part) if isinstance(part, Node) else _plain(part) for part in value]
    if isinstance(value, str):
        return {"word": value}
    if value is None or isinstance(value, bool | int):
        return value
    return float(value).hex()


def rebuild(data: Any) -> Node:
    """The architecture that `describe` has written down, checked as a network."""
    try:
        return check_network(_read("architecture", data))
    except (LnkernelError, FieldError, RecursionError) as problem:
        if isinstance(problem, CertificateError):
            raise
        why = (
            "nested too deeply" if isinstance(problem, RecursionError) else str(problem).rstrip(".")
        )
        raise CertificateError(
            f"the architecture in the file cannot be rebuilt ({why})",
            "Make the certificate again with the version of lnkernel that is installed",
        ) from None


def _read(place: str, data: Any) -> Node:
    """A layer with all that `describe` writes of it, and nothing else."""
    _demand(place, ["layer"], mapping(f'field "{place}"', data))
    name = text(f'field "{place}.layer"', data["layer"])
    if name not in LAYERS:
        raise CertificateError(
            f"the file names a layer {name!r} that lnkernel does not know",
            f"Layers are {', '.join(sorted(LAYERS))}; others by lnkernel.arch.registry.register",
        )
    fields = {field.name: field for field in dataclasses.fields(LAYERS[name])}  # type: ignore[arg-type]
    given = {key: value for key, value in data.items() if key != "layer"}
    unknown = [key for key in given if key not in fields]
    if unknown:
        raise FieldError(f'its field "{place}" has "{unknown[0]}", which no {name} has')
    values = {
        key: (_layers if fields[key].type in OF_LAYERS else _value)(f"{place}.{key}", value)
        for key, value in given.items()
    }
    needed = [key for key, field in fields.items() if field.default is dataclasses.MISSING]
    _demand(place, needed, given)
    made: Node = LAYERS[name](**values)
    _demand(place, [key for key, value in fields_of(made).items() if _counts(made, value)], given)
    return made


def _demand(place: str, names: list[str], given: dict[str, Any]) -> None:
    missing = [name for name in names if name not in given]
    if missing:
        raise FieldError(f'it has no field "{place}.{missing[0]}"')


def _layers(place: str, value: Any) -> tuple[Node, ...]:
    parts = enumerate(items(f'field "{place}"', value))
    return tuple(_read(f"{place}[{i}]", part) for i, part in parts)


def _value(place: str, value: Any) -> Any:
    """A hyperparameter; floats are text, and text is a word."""
    if isinstance(value, dict):
        _demand(place, ["word"], value)
        return text(f'field "{place}.word"', value["word"])
    if isinstance(value, list):
        return tuple(_value(f"{place}[{i}]", part) for i, part in enumerate(value))
    if value is None or isinstance(value, bool | int):
        return value
    return number(f'field "{place}"', value)
