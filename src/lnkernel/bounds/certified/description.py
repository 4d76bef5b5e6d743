"""Architectures as JSON: names of layers and their exact hyperparameters, read without `eval`."""

from __future__ import annotations

from typing import Any

from lnkernel.arch import Node
from lnkernel.arch.flow import check_network
from lnkernel.arch.node import fields_of
from lnkernel.arch.norms import AXES
from lnkernel.arch.registry import LAYERS
from lnkernel.arch.traits import traits
from lnkernel.errors import CertificateError, LnkernelError

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
        return check_network(_read(data))
    except (
        *(LnkernelError, TypeError, ValueError, KeyError, AttributeError),
        *(OverflowError, RecursionError),
    ) as problem:
        if isinstance(problem, CertificateError):
            raise
        why = "nested too deeply" if isinstance(problem, RecursionError) else problem
        raise CertificateError(
            f"the architecture in the file cannot be rebuilt ({why})",
            "Make the certificate again with the version of lnkernel that is installed",
        ) from None


def _read(data: Any) -> Node:
    name = data["layer"]
    if name not in LAYERS:
        raise CertificateError(
            f"the file names a layer {name!r} that lnkernel does not know",
            f"Layers are {', '.join(sorted(LAYERS))}; others by lnkernel.arch.registry.register",
        )
    values = {key: _value(value) for key, value in data.items() if key != "layer"}
    made: Node = LAYERS[name](**values)
    return made


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return str(value["word"])
    if isinstance(value, list):
        return tuple(_read(part) if isinstance(part, dict) else _value(part) for part in value)
    return float.fromhex(value) if isinstance(value, str) else value
