"""What `kernel_fn` returns: an array, a namedtuple, or all that there is."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64

from lnkernel.errors import InputError
from lnkernel.gram.kernel import kernels, nngp, ntk
from lnkernel.stax.stack import Stack, concatenate
from lnkernel.types import Array, Matrix, MorePoints, Points

Covariance = Float64[Array, " points"] | Float64[Array, "points points"]
FIELDS = ("nngp", "ntk", "cov1", "cov2")


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """The kernels of a network at some points, each computed when it is first asked for.

    `kernel_fn(x1, x2)` makes it. `nngp` and `ntk` are those between x1 and x2; `cov1` and `cov2`
    are the NNGP kernels of the points of x1 and of x2 with themselves (`cov2` is None without x2).
    Another `kernel_fn` takes it instead of points, and puts its layers on top.

    >>> from lnkernel import stax
    >>> _, _, kernel_fn = stax.serial(stax.Dense(8, W_std=2.0), stax.Relu())
    >>> kernel = kernel_fn([[1.0, 2.0]])
    >>> kernel
    Kernel(1 x 1 points, serial(Dense(width=8, W_std=2.0, b_std=0.0), Relu()))
    >>> stax.Dense(1).kernel_fn(kernel).nngp.round(12).tolist()  # 2² |x|²/2 halved by the ReLU
    [[5.0]]
    """

    stack: Stack  # the layers
    x1: Points
    x2: MorePoints | None
    full: bool  # whether cov1 and cov2 are matrices

    def __post_init__(self) -> None:
        _ = self.stack.arch  # branches that are not whole have no kernel

    @cached_property
    def nngp(self) -> Matrix:
        return nngp(self.stack.arch)(self.x1, self.x2)

    @cached_property
    def ntk(self) -> Matrix:
        return ntk(self.stack.arch_with_ntk)(self.x1, self.x2)

    @cached_property
    def cov1(self) -> Covariance:
        return self._covariance(self.x1)

    @cached_property
    def cov2(self) -> Covariance | None:
        return None if self.x2 is None else self._covariance(self.x2)

    def _covariance(self, x: Points) -> Covariance:
        kernel = nngp(self.stack.arch)
        return kernel(x) if self.full else kernel.diagonal(x)

    def followed_by(self, stack: Stack, full: bool) -> Kernel:
        """The kernels behind these further layers."""
        above = concatenate([self.stack, stack])
        return Kernel(above, self.x1, self.x2, self.full or full)

    def __repr__(self) -> str:
        n, m = (np.shape(x)[0] for x in (self.x1, self.x1 if self.x2 is None else self.x2))
        return f"Kernel({n} x {m} points, {self.stack.arch!r})"


def names_of(get: str | tuple[str, ...], known: tuple[str, ...] = FIELDS) -> tuple[str, ...]:
    """The fields asked for, in lower case, as neural-tangents reads them."""
    names = (get,) if isinstance(get, str) else tuple(get)
    low = tuple(name.lower() for name in names)
    if not low or len(set(low)) < len(low) or not set(low) <= set(known):
        raise InputError(
            "get",
            f"one or several different names of {', '.join(known)}",
            repr(get),
            'Write e.g. get="ntk" or get=("nngp", "ntk")',
        )
    return low


def take_fields(kernel: Kernel, names: tuple[str, ...]) -> tuple[Any, ...]:
    """These fields as a namedtuple; both kernels in one pass where both are asked for."""
    fields = namedtuple("AnalyticKernel", names)  # type: ignore[misc]  # the fields vary
    both = {}
    if {"nngp", "ntk"} <= set(names):
        both = kernels(kernel.stack.arch_with_ntk)(kernel.x1, kernel.x2)._asdict()
    return fields(*(both[name] if name in both else getattr(kernel, name) for name in names))
