"""float64 without side effects.

`import lnkernel` changes no JAX setting. Concrete data is computed in float64 under a
scoped `jax.enable_x64`; inside a user's own transformation that is not possible, so there
64-bit mode must be on already.

One rule says what comes back. For plain numbers (lists, NumPy arrays, `jax.Array`s) it is a NumPy
array of float64, whatever JAX's settings: JAX would cut its own to float32 where 64-bit mode is
off, and a large matrix would be copied. Inside a transformation it is a value of that
transformation, which JAX hands out as a `jax.Array`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.errors import PrecisionError, TransformationError
from lnkernel.types import Array


def x64_is_on() -> bool:
    """Whether JAX is in 64-bit mode here and now."""
    return jnp.result_type(float) == jnp.float64


def is_traced(*trees: Any) -> bool:
    """Whether a JAX transformation of the user's has put a tracer anywhere in here."""
    # a generator is a leaf to JAX, which warns that it will not be for ever
    given = [tree for tree in trees if not isinstance(tree, Iterator)]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given))


def inside_jit() -> bool:
    """Whether a program is being traced here, so that even concrete numbers are not computed."""
    return is_traced(
        jax.device_put(np.float32(0))
    )  # outside of a program nothing is compiled for it


def demand_x64() -> None:
    if not x64_is_on():
        raise PrecisionError()


def out_of_a_program(leaf: Any) -> bool:
    """Whether it is a number of JAX's that is known."""
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)


def as_leaf(number: Any) -> Any:
    """A hyperparameter as JAX takes it in: by its value, whatever the precision that it was written in."""
    return float(number) if out_of_a_program(number) and number.ndim == 0 else number


def demand_float64(*trees: Any) -> None:
    """An error for numbers that JAX hands out in 32-bit mode, cut to float32."""
    for leaf in jax.tree.leaves(trees):
        short = out_of_a_program(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
        if short and leaf.dtype != jnp.float64:
            raise PrecisionError()


def demand_plain_numbers(what: str, *trees: Any) -> None:
    """An error for what is computed outside of the user's own transformations only."""
    if is_traced(*trees) or inside_jit():
        raise TransformationError(what)


def as_own_numpy(result: Array) -> np.ndarray:
    """A NumPy array that its owner may write to; copied only where it is JAX's."""
    made = np.asarray(result)
    return made if made.flags.writeable else made.copy()
