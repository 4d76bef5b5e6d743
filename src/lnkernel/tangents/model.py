"""A model that was read: its function, its chosen parameters, and the way back to users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lnkernel.errors import InputError
from lnkernel.precision import is_traced
from lnkernel.tangents.function import Function
from lnkernel.tangents.selection import Path, spell

Tree = Any  # a pytree of arrays


class Model(NamedTuple):
    """What `tangent` knows of a model."""

    function: Function
    paths: list[Path]  # of the chosen parameters, in the order of the leaves
    whole: Callable[[Tree], Tree]  # chosen parameters in the form in which users have them
    chosen: Callable[[Tree], Tree]  # the way back: the chosen ones of all parameters
    structured: bool = False  # whether its Jacobian can be kept in factors
    joint: Callable[[Array], Array] | None = None  # f of several inputs at once, to be compared


def cast(tree: Tree, dtype: DTypeLike | None) -> Tree:
    """All floating-point leaves in this precision, which holds in the caller's scope."""

    def one(leaf: Any) -> Any:
        floating = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return jnp.asarray(leaf, dtype) if floating else leaf

    return tree if dtype is None else jax.tree.map(one, tree)


def refuse_infinite(paths: Sequence[Path], leaves: Sequence[Any], name: str) -> None:
    """Nothing finite comes from parameters that are not."""
    for path, leaf in zip(paths, leaves, strict=True):
        if not is_traced(leaf) and not bool(np.isfinite(np.asarray(leaf)).all()):
            raise InputError(
                name,
                "finite parameters",
                f"nan or inf in {spell(path)}",
                "Training that diverged leaves such: take an earlier state, or a smaller rate",
            )


def refuse_integers(paths: Sequence[Path], leaves: Sequence[Any]) -> None:
    """Derivatives are taken in floating-point numbers."""
    for path, leaf in zip(paths, leaves, strict=True):
        kind = jnp.result_type(leaf)
        if not jnp.issubdtype(kind, jnp.floating):
            raise InputError(
                "wrt",
                "parameters that are floating-point arrays",
                f"{spell(path)} of dtype {kind}",
                "Choose others; counters and keys have no derivatives",
            )
