"""NumPy or JAX: the functions of whichever the numbers belong to.

Every formula in float64 is written once and runs on both. JAX compiles, differentiates and uses all cores; but
compilation takes seconds, and a few thousand pairs take NumPy milliseconds, the first time too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

OUR_OWN = frozenset(
    (np.ndarray, np.float64, float, int)
)  # told at once, since it is asked so often


def of(*numbers: Any) -> Any:
    """`jax.numpy` if one of the numbers is JAX's, else `numpy`."""
    for x in numbers:
        if type(x) not in OUR_OWN and isinstance(x, jax.Array):
            return jnp
    return np


def constant(x: Any) -> Any:
    """x, without a derivative."""
    return x if of(x) is np else lax.stop_gradient(x)


def to_bits(x: Any) -> Any:
    """float64 numbers as the whole numbers that they are stored as."""
    if isinstance(x, jax.Array):
        return lax.bitcast_convert_type(x, jnp.int64)
    return np.asarray(x, np.float64).view(np.int64)


def from_bits(bits: Any) -> Any:
    """The float64 numbers that are stored so."""
    if isinstance(bits, jax.Array):
        return lax.bitcast_convert_type(bits, jnp.float64)
    return np.asarray(bits, np.int64).view(np.float64)


class differentiable:  # noqa: N801 (a decorator)
    """`jax.custom_jvp` for JAX's numbers; NumPy's go through the function as it is."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()):
        self.plain, self.traced = function, jax.custom_jvp(function, nondiff_argnums)
        self.__doc__ = function.__doc__

    def __call__(self, *numbers: Any) -> Any:
        return (self.traced if of(*numbers) is jnp else self.plain)(*numbers)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        return self.traced.defjvp(rule)


def differentiable_in(*, fixed: tuple[int, ...]) -> Callable[[Callable[..., Any]], differentiable]:
    """The same, where the arguments with these places are no numbers to differentiate in."""
    return partial(differentiable, nondiff_argnums=fixed)
