"""Functions of numbers that belong to pairs, and their derivatives: of each pair by its own numbers alone.

A kernel of a pair depends on the inputs through few numbers: two lengths, their difference and an angle. Its
derivatives by these are taken forwards, all in one pass, and they are all that a gradient has to keep. JAX's own
backward pass would keep, and compile, hundreds of numbers for each pair. The same holds for the derivatives' own
derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from lnkernel.gram.compiled import call_compiled
from lnkernel.types import Array

Values = tuple[Array, ...]
Shape = tuple[int, ...]
MOST = 16  # directions: with more of them a backward pass takes less time


class PairFunction(Protocol):
    """From arrays that have one number for every pair, or are broadcast to that, to values of which the pairs are the
    last axes. Equal ones are one program."""

    def __call__(self, *numbers: Array) -> Values: ...

    def __hash__(self) -> int: ...


def differentiate_by_pair(function: PairFunction, shape: Shape, *numbers: Array) -> Values:
    """The values of the function for pairs of this shape, which JAX differentiates by each pair's own numbers."""

    @jax.custom_jvp
    def compute(*numbers: Array) -> Values:
        made: Values = call_compiled(_call, function, arguments=numbers)
        return made

    def rule(numbers: Sequence[Array], changes: Sequence[Any]) -> tuple[Values, Values]:
        moved = tuple(k for k, change in enumerate(changes) if is_change(change))
        if len(moved) > MOST:
            filled = tuple(change if is_change(change) else _still(change) for change in changes)
            return jax.jvp(function, tuple(numbers), filled)
        found = differentiate_by_pair(_WithPartials(function, moved), shape, *numbers)
        values, partials = found[: len(found) // 2], found[len(found) // 2 :]
        return values, _sum_up(partials, [changes[k] for k in moved], shape)

    compute.defjvp(rule, symbolic_zeros=True)
    return compute(*numbers)


def is_change(tangent: Any) -> bool:
    """Whether a number changes at all."""
    return not isinstance(tangent, SymbolicZero) and tangent.dtype != jax.dtypes.float0


@dataclass(frozen=True)
class _WithPartials:
    """The values of a function, and behind them their derivatives by the numbers that move, (moved, ...)."""

    function: PairFunction
    moved: tuple[int, ...]

    def __call__(self, *numbers: Array) -> Values:
        def of_moved(*some: Array) -> Values:
            whole = list(numbers)
            for k, number in zip(self.moved, some, strict=True):
                whole[k] = number
            return self.function(*whole)

        some = tuple(numbers[k] for k in self.moved)

        def along(direction: Array) -> tuple[Values, Values]:
            steps = tuple(jnp.full_like(number, direction[k]) for k, number in enumerate(some))
            made: tuple[Values, Values] = jax.jvp(of_moved, some, steps)
            return made

        values, partials = jax.vmap(along, out_axes=(None, 0))(jnp.eye(len(some)))
        return (*values, *partials)


def _call(function: PairFunction, *numbers: Array) -> Values:
    return function(*numbers)


def _still(change: Any) -> Any:
    return jnp.zeros(change.shape, change.dtype) if change.dtype != jax.dtypes.float0 else change


@partial(jax.jit, static_argnums=2)
def _sum_up(partials: Values, changes: list[Array], shape: Shape) -> Values:
    """What the values change by."""
    steps = jnp.stack([jnp.broadcast_to(change, shape) for change in changes])

    def total(part: Array) -> Array:
        between = (1,) * (part.ndim - steps.ndim)
        return (part * steps.reshape(len(changes), *between, *shape)).sum(axis=0)

    return tuple(map(total, partials))
