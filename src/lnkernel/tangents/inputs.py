"""Inputs and vectors, checked, in the precision of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lnkernel.check.arrays import as_points, shape_of
from lnkernel.errors import InputError, TrainingModeError
from lnkernel.tangents.function import Function, OutputError, are_alike, evaluate
from lnkernel.types import Inputs


def in_precision(name: str, x: Inputs, dtype: Any) -> Float[np.ndarray, "n ..."]:
    """Inputs of any shape (n, ...) in the network's precision, checked."""
    shape = shape_of(name, x)
    flat = np.reshape(x, (shape[0], -1)) if len(shape) > 2 and 0 not in shape else x
    points = np.asarray(as_points(name, flat))
    return convert(name, points, dtype).reshape(shape)


def convert(name: str, values: np.ndarray, dtype: Any) -> np.ndarray:
    """float64 numbers in another precision, if they are in its range."""
    with np.errstate(over="ignore"):
        made = values.astype(dtype)
    if not np.isfinite(made).all():
        raise InputError(
            name,
            f"numbers in the range of the network's {np.dtype(dtype)}",
            f"{np.abs(values).max():.3g}",
            "Rescale the data, or train in float64",
        )
    return made


def count_outputs(function: Function, name: str, x: np.ndarray) -> int:
    """The number of the network's outputs for such inputs."""
    try:
        made = evaluate.eval_shape(function, x[:1])
    except TrainingModeError as problem:  # once more, without what JAX adds about its own frames
        raise TrainingModeError(problem.model, problem.changed, problem.remedy) from None
    except OutputError:
        raise
    except (TypeError, ValueError, flax.errors.FlaxError) as problem:
        raise InputError(
            name,
            "inputs that the network accepts",
            f"shape {x.shape}, at which it raises {type(problem).__name__}: {problem}",
            "Give the points the dimension that the network was built for; tokens go into a function "
            "f(params, x) that makes integers of them by x.astype(int)",
        ) from problem
    return int(made.shape[1])


def as_rows(name: str, v: Any, n: int, outputs: int) -> Float[np.ndarray, "n outputs"]:
    """A number for every input and output, (n,) or (n, outputs), as (n, outputs)."""
    given = np.asarray(v)
    allowed = [(n, outputs)] + ([(n,)] if outputs == 1 else [])
    if given.shape not in allowed or given.dtype.kind not in "iuf":
        raise InputError(
            name,
            f"one number for every input and output, shape {allowed[-1]}",
            f"shape {given.shape}, dtype {given.dtype}",
            "Give the rows in the order of the inputs",
        )
    if not np.isfinite(given).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
        raise InputError(name, "finite numbers", f"{given[where]} at {where}", "Drop such inputs")
    return given.reshape(n, outputs)


def as_direction(name: str, v: Any, params: Any) -> Any:
    """A tree like the parameters, in their precision."""
    if not are_alike(v, params):
        raise InputError(
            name,
            f"a tree like the chosen parameters, {jax.tree.structure(params)}",
            f"{jax.tree.structure(v)}",
            "Make it by jax.tree.map from the tangent's `params`",
        )
    shapes = [tuple(np.shape(leaf)) for tree in (v, params) for leaf in jax.tree.leaves(tree)]
    half = len(shapes) // 2
    if shapes[:half] != shapes[half:]:
        raise InputError(
            name,
            f"arrays of the shapes {shapes[half:]}",
            f"{shapes[:half]}",
            "Make it by jax.tree.map from the tangent's `params`",
        )
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(v)):
        raise InputError(name, "finite numbers", "nan or inf", "Look for where it comes from")
    return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), v, params)


def demand_finite(made: np.ndarray, what: str) -> np.ndarray:
    """The same numbers, if all are finite. It needs no memory of their size."""
    if made.size and not np.isfinite([made.min(), made.max()]).all():
        where = int(np.argwhere(~np.isfinite(made))[0][0])
        raise InputError(
            "model",
            f"a network with finite {what}",
            f"nan or inf at input {where}",
            "Look at its output there: a logarithm, a root or a quotient outside of its range, or "
            "an overflow that dtype=jnp.float64 avoids",
        )
    return made


def check_each_on_its_own(
    joint: Callable[[Any], Any], function: Function, x: Float[np.ndarray, "n ..."]
) -> None:
    """Whether two inputs together give what each gives alone; BatchNorm in training mode does not.

    A difference by rounding is smaller than the square root of the precision.
    """
    some = x[:: max(1, len(x) - 1)][:2]
    alone = demand_finite(np.asarray(evaluate(function, some), np.float64), "outputs")
    made = np.asarray(joint(some), np.float64)
    if made.size != alone.size or made.shape[:1] != (len(some),):
        raise InputError(
            "model",
            f"a function that has outputs (n,) or (n, k) for n inputs, here {alone.shape}",
            f"outputs of shape {made.shape}",
            "Return one row for each input, not a sum or a mean over them",
        )
    together = made.reshape(alone.shape)
    scale = np.abs(alone).max() + np.abs(together).max()
    if np.abs(alone - together).max() > np.sqrt(jnp.finfo(x.dtype).eps) * scale:
        raise TrainingModeError(
            "f(params, x)",
            "two inputs together have other outputs than each alone",
            "Give the function of the network in evaluation mode, after model.eval()",
        )


def check_columns(y: np.ndarray, outputs: int) -> None:
    """Targets (n,) or (n, k) have as many columns as the model has outputs."""
    columns = 1 if y.ndim == 1 else y.shape[1]
    if columns != outputs:
        raise InputError(
            "y",
            f"as many outputs as the model has, {outputs}",
            f"{columns} for each point",
            "Give y one column for each output",
        )
