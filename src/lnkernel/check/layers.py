"""Hyperparameters of a layer: each function takes the layer and the names of its fields."""

from __future__ import annotations

import math
import reprlib
from typing import Any, NoReturn

import jax
import numpy as np

from lnkernel.check.plain import as_float, as_integer, known, known_zero
from lnkernel.errors import ArchitectureError
from lnkernel.precision import is_traced

HIGHEST_DEGREE = 150  # of a homogeneous activation


def _refuse_layer(layer: Any, reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError(type(layer).__name__, "", reason, remedy)


def _plain(layer: Any, name: str) -> Any:
    """The hyperparameter; a NumPy scalar is replaced by a plain number, which prints as one."""
    value = getattr(layer, name)
    if isinstance(value, np.generic) and known(value):
        value = value.item()
        object.__setattr__(layer, name, value)
    return value


def number(layer: Any, name: str) -> None:
    """A plain number, or an array or tracer that JAX differentiates."""
    value = _plain(layer, name)
    if isinstance(value, bool) or not (known(value) or isinstance(value, jax.Array)):
        _refuse_layer(layer, f"{name} must be a number, got {value!r}", f"Write e.g. {name}=1.0")
    if known(value) and as_float(value) is None:
        _refuse_layer(
            layer,
            f"{name} must be in the range of float64, up to 1.8e308, got {reprlib.repr(value)}",
            f"Choose a smaller {name}",
        )


def flag(layer: Any, name: str) -> None:
    value = getattr(layer, name)
    if not isinstance(value, bool):
        _refuse_layer(layer, f"{name} must be True or False, got {value!r}", f"Write {name}=True")


def finite(layer: Any, name: str) -> None:
    number(layer, name)
    value = getattr(layer, name)
    if known(value) and not math.isfinite(value):
        _refuse_layer(
            layer, f"{name} must be a finite number, got {value}", f"Choose a finite {name}"
        )


def not_negative(layer: Any, name: str) -> None:
    value = getattr(layer, name)
    if known(value) and value < 0:
        _refuse_layer(layer, f"{name} must not be negative, got {value}", f"Choose {name} >= 0")


def positive(layer: Any, name: str) -> None:
    value = getattr(layer, name)
    if known(value) and value <= 0:
        _refuse_layer(layer, f"{name} must be positive, got {value}", f"Choose {name} > 0")


def in_order(layer: Any, low: str, high: str) -> None:
    below, above = getattr(layer, low), getattr(layer, high)
    if known(below) and known(above) and not below < above:
        _refuse_layer(
            layer, f"{low} must be below {high}, got {below} and {above}", f"Choose {low} < {high}"
        )


def one_of(layer: Any, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(layer, name)
    if value not in choices:
        shown = " or ".join(f"{choice!r}" for choice in choices)
        _refuse_layer(layer, f"{name}={value!r} is not known", f"Use {shown}")


def no_tracer(name: str) -> tuple[str, str]:
    """The reason and the remedy where an integer is traced on which the network's structure depends."""
    return (
        f"{name} must be a plain Python integer, known when a program is compiled, got a value that a jax.jit, "
        "jax.grad or jax.vmap around this call is tracing",
        "Close over a plain integer, or name it in static_argnames of jax.jit",
    )


def integer_at_least(layer: Any, name: str, least: int) -> None:
    value = _plain(layer, name)
    if is_traced(value):
        _refuse_layer(layer, *no_tracer(name))
    plain = as_integer(value)
    if plain is None or plain < least:
        _refuse_layer(
            layer,
            f"{name} must be an integer, at least {least}, got {value!r}",
            f"Choose {name} = {least} or more",
        )
    if plain >= 2**63:
        _refuse_layer(
            layer,
            f"{name} must be in the range of 64-bit integers, got {reprlib.repr(value)}",
            f"Choose a smaller {name}",
        )
    object.__setattr__(layer, name, plain)


def homogeneous_degree(layer: Any) -> None:
    """The NTK needs E phi'(u)^2, which is finite for degrees above 1/2 only."""
    degree = _plain(layer, "degree")
    if known(degree) and HIGHEST_DEGREE < degree < math.inf:
        _refuse_layer(
            layer,
            f"degree must be at most {HIGHEST_DEGREE}, got {reprlib.repr(degree)}: beyond that "
            "E phi(u)^2 is not in the range of float64",
            "Choose a lower degree",
        )
    plain = as_float(degree) if known(degree) else None
    if plain is None or not math.isfinite(plain):
        _refuse_layer(
            layer, f"degree must be a plain finite number, got {degree!r}", "Write e.g. 1.5"
        )
    if degree <= 0.5:
        _refuse_layer(
            layer,
            f"degree must exceed 1/2, got {degree}: below that E phi'(u)^2 is infinite and the "
            "NTK does not exist",
            "Choose a degree > 1/2",
        )


def not_all_zero(layer: Any, *names: str) -> None:
    if all(known_zero(getattr(layer, name)) for name in names):
        _refuse_layer(
            layer,
            f"{' and '.join(names)} are both zero, so the activation is zero everywhere",
            "Choose one of them different from zero",
        )


def group_has_limit(layer: Any) -> None:
    """Refuse a GroupNorm without a closed form, which takes eps = 0 and not two degrees of freedom."""
    if not known_zero(layer.eps):
        _refuse_layer(
            layer,
            f"eps must be exactly 0, got {layer.eps!r}: normalisation in finite groups has no "
            "closed form otherwise",
            "Use eps=0, or LayerNorm, which allows any eps",
        )
    if layer.degrees_of_freedom == 2:
        size, centre = layer.group_size, layer.centre
        _refuse_layer(
            layer,
            f"group_size={size} with centre={centre} leaves two degrees of freedom, for which the "
            "NTK's diagonal is infinite",
            f"Use group_size={size + 1} or more",
        )
