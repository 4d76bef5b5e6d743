"""Which parameters the derivatives are taken in: `wrt`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flax import nnx

from lnkernel.errors import InputError

Path = tuple[Any, ...]  # of keys of dicts, places in lists, names of attributes
Choice = Callable[[Path, Any], bool]
Wrt = Any  # a filter of NNX, a predicate on the path, a path, or a list of paths


def choose(wrt: Wrt) -> Choice:
    """`wrt` as a predicate on paths and values.

    >>> first = choose("layers/0")
    >>> first(("layers", 0, "kernel"), None), first(("layers", 10, "kernel"), None)
    (True, False)
    >>> choose(lambda path: path[-1] == "bias")(("layers", 0, "kernel"), None)
    False
    """
    if is_path(wrt):
        return _beneath([wrt])
    if isinstance(wrt, list) and wrt and all(map(is_path, wrt)):
        return _beneath(wrt)
    if callable(wrt) and not isinstance(wrt, type) and _arguments(wrt) == 1:
        return lambda path, _: bool(wrt(path))
    try:
        return nnx.filterlib.to_predicate(wrt)
    except (TypeError, ValueError):
        raise InputError(
            "wrt",
            "a filter of flax.nnx, a predicate on the path, a path or a list of paths",
            f"{wrt!r} of type {type(wrt).__name__}",
            'Write e.g. wrt=nnx.LoRAParam, wrt=lambda path: path[-1] == "kernel" or '
            'wrt=["layers/0", "layers/2"]',
        ) from None


def is_path(value: Any) -> bool:
    """ "layers/0/kernel" or ("layers", 0, "kernel")."""
    return isinstance(value, str) or (
        isinstance(value, tuple) and all(isinstance(key, str | int) for key in value)
    )


def spell(path: Sequence[Any]) -> str:
    """A path as text.

    >>> spell(("layers", 0, "kernel"))
    'layers/0/kernel'
    """
    return "/".join(map(str, path))


def refuse_nothing(chosen: Iterable[Any], paths: Iterable[Path], name: str, wrt: Wrt) -> None:
    """An error where no parameter is left, with the paths that there are."""
    if any(True for _ in chosen):
        return
    known = [spell(path) for path in paths]
    if wrt is None or not known:
        raise InputError(
            name,
            "at least one trained parameter, an nnx.Param or a floating-point array",
            "a model without any",
            "Make its parameters variables of type flax.nnx.Param, or give them as params",
        )
    shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    raise InputError(
        "wrt", "a choice of at least one parameter", f"{wrt!r}", f"The paths are {shown}"
    )


def _beneath(paths: Iterable[Any]) -> Choice:
    """All that begins with one of the paths, key by key."""
    parts = [tuple(p.strip("/").split("/")) if isinstance(p, str) else p for p in paths]
    wanted = [tuple(map(str, part)) for part in parts]

    def inside(path: Path, _: Any) -> bool:
        keys = tuple(map(str, path))
        return any(keys[: len(part)] == part for part in wanted)

    return inside


def _arguments(function: Callable[..., Any]) -> int:
    """How many arguments a call needs: one for a path, two for a filter of NNX."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(function).parameters.values()
    return sum(one.kind in kinds and one.default is one.empty for one in given)
