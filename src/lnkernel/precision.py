"""float64 without side effects.

`import lnkernel` changes no JAX setting. Concrete data is computed in float64 under a
scoped `jax.enable_x64`; inside a user's own transformation that is not possible, so there
64-bit mode must be on already.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.errors import PrecisionError
from lnkernel.types import Array


def x64_is_on() -> bool:
    """Whether JAX is in 64-bit mode here and now."""
    return jnp.result_type(float) == jnp.float64


def is_traced(*trees: Any) -> bool:
    """Whether a JAX transformation of the user's has put a tracer anywhere in here."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def inside_jit() -> bool:
    """Whether a program is being traced here, so that even concrete numbers are not computed."""
    return is_traced(jax.lax.neg(np.float32(0)))


def demand_x64() -> None:
    if not x64_is_on():
        raise PrecisionError()


def handed_out(result: Array, x64_was_on: bool) -> Array:
    """float64 that stays float64 in the user's hands: JAX's where 64-bit mode is on, NumPy's else.

    With 64-bit mode off JAX would cut a float64 `jax.Array` to float32 at its first use.
    """
    return jnp.asarray(result) if x64_was_on else np.asarray(result)
