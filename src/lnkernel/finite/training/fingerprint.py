"""What a function computes, as text: the same for two functions that compute the same alike.

Every call of `optax.adam(1e-3)` makes new functions, by which `jax.jit` would compile anew. Their
traces are equal, with every constant, and by these an optimizer is recognised, within a process for
the compiled program and across processes for checkpoints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a function, which differs in every process
_known: dict[str, optax.GradientTransformationExtraArgs] = {}


def recognise(optimizer: Any, params: Any) -> optax.GradientTransformationExtraArgs:
    """The optimizer, or an earlier one that does the same with such parameters."""
    extended = optax.with_extra_args_support(optimizer)
    return _known.setdefault(optimizer_text(extended, params), extended)


def optimizer_text(optimizer: optax.GradientTransformationExtraArgs, params: Any) -> str:
    """The traces of an optimizer's start and of a step."""

    def step(state: Any, params: Any, slope: Any, value: Any) -> Any:
        def anything(p: Any) -> Any:
            return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(p))

        extra = {"value": value, "grad": slope, "value_fn": anything}
        return optimizer.update(slope, state, params, **extra)

    value = jax.ShapeDtypeStruct((), jnp.result_type(*jax.tree.leaves(params)))
    state = jax.eval_shape(optimizer.init, params)
    return trace_text(optimizer.init, params) + trace_text(step, state, params, params, value)


def trace_text(function: Callable[..., Any], *arguments: Any) -> str:
    """The traced program with its constants, and the structure of its result."""
    program, result = jax.make_jaxpr(function, return_shape=True)(*arguments)
    constants = [digest(np.asarray(constant)) for constant in program.consts]
    return "\n".join([str(program), *constants, str(jax.tree.structure(result))])


def digest(*parts: Any) -> str:
    """A short, fixed text that differs where the arrays or texts do."""
    made = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            made.update(ADDRESS.sub("", part).encode())
        else:
            array = np.ascontiguousarray(part)
            made.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return made.hexdigest()[:16]
