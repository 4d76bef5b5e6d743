"""Which parameters the derivatives are taken in: `wrt`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flax import nnx

from lnkernel.errors import InputError

Path = tuple[Any, ...]  # keys of dicts, places in lists, names of attributes
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
    wanted = [_whether_beneath(path) for path in _paths_in(wrt)]
    if wanted:
        return lambda path, _: any(beneath(path) for beneath in wanted)
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
    """An error where no parameter is left, or a path chooses none, with the paths that there are."""
    found = list(chosen)
    unmatched = [path for path in _paths_in(wrt) if not any(map(_whether_beneath(path), found))]
    if found and not unmatched:
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
    if found:
        spelled = (path if isinstance(path, str) else spell(path) for path in unmatched)
        raise InputError(
            "wrt",
            "paths with a parameter beneath each",
            f"{', '.join(spelled)}, which has none",
            f"The paths are {shown}",
        )
    raise InputError(
        "wrt", "a choice of at least one parameter", f"{wrt!r}", f"The paths are {shown}"
    )


def _paths_in(wrt: Wrt) -> list[str | Path]:
    """The paths that it is, one or a list of them, and none if it is something else."""
    if is_path(wrt):
        return [wrt]
    return list(wrt) if isinstance(wrt, list) and all(map(is_path, wrt)) else []


def _whether_beneath(path: str | Path) -> Callable[[Path], bool]:
    """Whether another path begins with this one, key by key."""
    parts = path.strip("/").split("/") if isinstance(path, str) else path
    wanted = tuple(map(str, parts))
    return lambda other: tuple(map(str, other))[: len(wanted)] == wanted


def _arguments(function: Callable[..., Any]) -> int:
    """How many arguments a call needs: one for a path, two for a filter of NNX."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(function).parameters.values()
    return sum(one.kind in kinds and one.default is one.empty for one in given)
