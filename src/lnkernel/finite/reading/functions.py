"""The activation functions that are read as layers; other files can add to them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from flax import nnx

from lnkernel.arch import Node

JITS: tuple[Any, ...] = type(jax.jit(abs)), type(nnx.jit(abs))


class Entry(NamedTuple):
    """A function, and the layers that stand for it."""

    function: Any  # held here, because it is found by its identity
    layer: Node | None
    with_keywords: Callable[..., Node] | None
    name: str | None


_entries: dict[int, Entry] = {}


def register_function(
    function: Any,
    layer: Node | None,
    *,
    with_keywords: Callable[..., Node] | None = None,
    name: str | None = None,
) -> None:
    """From now on `function` is read as `layer`.

    Args:
        function: recognised by its identity.
        layer: what it computes; None where only its keywords tell.
        with_keywords: the layer of `functools.partial(function, **keywords)`, as a function of
            those keywords that it knows.
        name: the function's name, to be listed among those that can be read.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> register_function(jnp.fabs, lnk.Abs())
    >>> find_layer(jnp.fabs)
    Abs()
    """
    known = _entries.get(id(function))  # the same function under another name keeps the one it has
    listed = known.name if known is not None and name is None else name
    _entries[id(function)] = Entry(function, layer, with_keywords, listed)


def without_jit(function: Any) -> Any:
    """What `jax.jit` or `nnx.jit` compiles, which computes the same.

    Many functions of JAX are compiled as they are, and those that are registered stay what they are.

    >>> import jax
    >>> without_jit(jax.jit(jax.nn.relu)) is jax.nn.relu
    True
    """
    while isinstance(function, JITS) and id(function) not in _entries:
        function = function.__wrapped__
    return function


def find_layer(function: Any) -> Node | None:
    """The layer that a function, or a `functools.partial` of one, is registered for."""
    function = without_jit(function)
    if id(function) in _entries:
        entry = _entries[id(function)]
        return entry.layer or _bind_keywords(entry, functools.partial(function))
    if isinstance(function, functools.partial) and id(function.func) in _entries:
        return _bind_keywords(_entries[id(function.func)], function)
    return None


def is_registered(function: Any) -> bool:
    """Whether the function is registered, perhaps for some keywords alone; of a `functools.partial`, its function."""
    return id(getattr(function, "func", function)) in _entries


def _bind_keywords(entry: Entry, function: functools.partial[Any]) -> Node | None:
    if entry.with_keywords is None:
        return None
    try:
        settings = by_name(function.func, function.args) | function.keywords
        bound = inspect.signature(entry.with_keywords).bind(**settings)
    except (TypeError, ValueError):  # a keyword that the layer does not have, or no signature
        return None
    return entry.with_keywords(*bound.args, **bound.kwargs)


def by_name(function: Any, given: Sequence[Any]) -> dict[str, Any]:
    """Arguments by their names; those of a function of any number of them are x1, x2, ..., as NumPy says."""
    if not given:
        return {}
    parameters = list(inspect.signature(function).parameters.values())
    names = [each.name for each in parameters]
    if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        names = [f"x{i}" for i in range(1, len(given) + 1)]
    return dict(zip(names, given, strict=False))


def list_functions() -> str:
    """The registered functions that have a name, for messages: "a, b and c"."""
    *others, last = [entry.name for entry in _entries.values() if entry.name is not None]
    return f"{', '.join(others)} and {last}"
