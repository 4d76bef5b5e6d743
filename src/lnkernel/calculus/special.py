"""Functions that only some layers need, with one version for each number system.

A layer that needs more than `Arithmetic` offers declares a function of (num, ...) with `special`, and
registers a version for each number system that has one. Where a version is missing, that number
system refuses, and the others work: a function without balls has kernels in float64, and no
certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch, update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

from lnkernel.arch.node import Node
from lnkernel.errors import MissingFunctionError

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")


def special(declared: Callable[..., T]) -> _SingleDispatchCallable[T]:
    """A function that dispatches on its first argument, the number system.

    >>> from lnkernel.calculus.special import special
    >>> @special
    ... def sinc(num, x):
    ...     "sin(x)/x"
    ...     raise NotImplementedError
    >>> class Decimals:
    ...     name, purpose = "decimals", "poem"
    >>> sinc(Decimals(), 1.0)
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingFunctionError: there is no poem for this function: `sinc` (sin(x)/x) has no
    version for decimals. Register one: @sinc.register(Decimals).
    """

    def missing(num: Any, *arguments: Any) -> T:
        what = (declared.__doc__ or "").strip().splitlines()[:1]
        layers = [f"here of {part!r}" for part in arguments if isinstance(part, Node)]
        raise MissingFunctionError(
            declared.__name__,
            ", ".join([*(line.rstrip(".") for line in what), *layers]),
            getattr(num, "name", type(num).__name__),
            getattr(num, "purpose", "result"),
            type(num).__name__,
        )

    return singledispatch(update_wrapper(missing, declared))  # its own body is never run
