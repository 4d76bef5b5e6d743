"""Results have the types that their functions promise, with shapes and float64.

`conftest.py` puts `results` around every function of the modules with public signatures. Arguments
are not refused here, because users give what they like, and tests give wrong things on purpose to
see our own errors: `lnkernel.check` judges them. But where an argument has a shape that its type
speaks of, the sizes n, d, m and k are known from it, and the result must have them.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from beartype import beartype
from jaxtyping import AbstractArray


def results(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype of what a function returns. jaxtyping calls it, and keeps the sizes of a call."""
    hints = dict(function.__annotations__)
    promised = hints.pop("return", Any)
    shapes = {name: found for name, hint in hints.items() if (found := _shapes(hint))}
    function.__annotations__ = {"return": promised}
    checked, signature = beartype(function), inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name in (name for name in shapes if name in given):  # in their order
            any(isinstance(given[name], shape) for shape in shapes[name])  # this notes its sizes
        return checked(*args, **kwargs)

    return call


def _shapes(hint: Any) -> list[type]:
    """The arrays with a shape among the types of a union."""
    kinds = typing.get_args(hint) or (hint,)
    return [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, AbstractArray)]
