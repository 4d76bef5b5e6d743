"""A state, or another part of a calculation, cut into its arrays and its form: what a loop or a program carries."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

Form = Any  # tuples, types and numbers: equal and hashable


class Slot(NamedTuple):
    """The place of an array in a state whose arrays have been taken out."""

    number: int
    shape: tuple[int, ...]


def take_out(part: Any, arrays: list[Any]) -> Form:
    """`part` with a slot for every array; the arrays, each once, go into the list."""
    if isinstance(part, jax.Array):
        for number, known in enumerate(arrays):
            if known is part:
                return Slot(number, part.shape)
        arrays.append(part)
        return Slot(len(arrays) - 1, part.shape)
    if isinstance(part, np.ndarray) and part.ndim == 0:
        return part[()]
    if dataclasses.is_dataclass(part):
        fields = dataclasses.fields(part)
        return type(part), tuple(take_out(getattr(part, f.name), arrays) for f in fields)
    if isinstance(part, tuple):
        return type(part), tuple(take_out(item, arrays) for item in part)
    return part


def put_back(form: Form, arrays: list[Any], known: dict[Any, Any] | None = None) -> Any:
    """The part again. What had one form is one object again: rules ask whether both lengths are one and the same."""
    known = {} if known is None else known
    if isinstance(form, Slot):
        return arrays[form.number]
    if isinstance(form, tuple):
        if form not in known:
            kind, items = form
            made = [put_back(item, arrays, known) for item in items]
            known[form] = tuple(made) if kind is tuple else kind(*made)
        return known[form]
    return form
