"""What every part of an architecture is: frozen data, equal by value, a JAX pytree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar, cast, dataclass_transform

import jax

T = TypeVar("T")


class Node:
    """A part of an architecture: a layer, or a composition of layers.

    It says what the network is and nothing else. Kernels, certificates and
    finite networks are interpretations that stand outside it.
    """

    def _repr_html_(self) -> str:
        from lnkernel.arch.show import html_table

        return html_table(self)


def static(**kwargs: Any) -> Any:
    """A field that is part of the structure, not a hyperparameter to differentiate."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def node(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree whose leaves are its hyperparameters."""
    made = dataclasses.dataclass(frozen=True)(cls)
    names = {True: [], False: []}  # type: dict[bool, list[str]]
    for field in dataclasses.fields(made):
        names[field.metadata.get("static", False)].append(field.name)
    register = cast(Callable[..., Any], jax.tree_util.register_dataclass)
    register(made, data_fields=names[False], meta_fields=names[True])
    return made


def known(value: Any) -> bool:
    """Whether a hyperparameter is a plain number (and not, say, a tracer of `jax.grad`)."""
    return isinstance(value, Real)


def known_zero(value: Any) -> bool:
    """Whether a hyperparameter is certain to be zero when the program is built."""
    return known(value) and float(value) == 0.0
