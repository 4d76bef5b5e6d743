"""The one place where user data enters: float64, shapes, finite entries.

`import lnkernel` changes no JAX setting. Concrete data is computed in float64 under a
scoped `jax.enable_x64`; inside a user's own transformation that is not possible, so there
64-bit mode must be on already.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.errors import InputError, PrecisionError

Array = Any


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


def as_traced_points(name: str, x: Any) -> Array:
    """Data inside a user's transformation: of a tracer only the shape can be checked."""
    if not is_traced(x):
        return jnp.asarray(as_points(name, x))
    _check_kind(name, x.dtype)
    _check_shape(name, x.shape)
    return x.astype(jnp.float64)


def as_points(name: str, x: Any) -> Array:
    """Concrete data as a float64 array of shape (points, dimension), exactly as given."""
    given = _as_numpy(name, x)
    _check_kind(name, given.dtype)
    _check_shape(name, given.shape)
    with np.errstate(over="ignore"):
        points = given.astype(np.float64)
    if not _same_numbers(points, given):
        raise InputError(
            name,
            "numbers that float64 holds exactly",
            f"dtype {given.dtype} with values that it does not",
            f"Round them on purpose: {name}.astype(float)",
        )
    if not np.isfinite(points).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(points))[0])
        raise InputError(
            name,
            "finite numbers",
            f"{points[row, column]} at point {row}, coordinate {column}",
            f"Drop such points, e.g. {name}[np.isfinite({name}).all(1)]",
        )
    return x if isinstance(x, jax.Array) and x.dtype == np.float64 else points


def check_dimensions(x: Array, x2: Array) -> None:
    if x.shape[1] != x2.shape[1]:
        raise InputError(
            "x2",
            f"the dimension of x, {x.shape[1]}",
            f"shape {tuple(x2.shape)}",
            "Give both the same number of columns",
        )


def check_centred(x: Array) -> None:
    """What LayerNorm on the raw input does to inputs of very few dimensions."""
    if x.shape[1] == 1:
        raise InputError(
            "x",
            "at least 2 dimensions, because a LayerNorm acts on the raw input",
            "1 dimension, which LayerNorm turns into 0 whatever its value",
            "Put a Dense before the LayerNorm",
        )
    if x.shape[1] == 2:
        warnings.warn(
            "a LayerNorm acts on a raw input of 2 dimensions: with eps=0 it leaves of each point "
            "only the sign of x[0] - x[1]. Put a Dense before it if that is not meant.",
            stacklevel=4,
        )


def handed_out(result: Array, x64_was_on: bool) -> Array:
    """float64 that stays float64 in the user's hands: JAX's where 64-bit mode is on, NumPy's else.

    With 64-bit mode off JAX would cut a float64 `jax.Array` to float32 at its first use.
    """
    return jnp.asarray(result) if x64_was_on else np.asarray(result)


def _as_numpy(name: str, x: Any) -> np.ndarray:
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as problem:
        raise InputError(
            name,
            "an array of numbers",
            f"{type(x).__name__} ({problem})",
            "Give every point the same number of coordinates",
        ) from None


def _check_kind(name: str, dtype: Any) -> None:
    if not (jnp.issubdtype(dtype, jnp.floating) or np.dtype(dtype).kind in "iub"):
        raise InputError(
            name, "real numbers", f"dtype {dtype}", "Convert the data to float64 first"
        )


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise InputError(
            name,
            "a 2-D array of shape (points, dimension)",
            f"shape {tuple(shape)}",
            f"For one point write {name}[None, :]; for points on a line write {name}[:, None]",
        )
    if 0 in shape:
        raise InputError(
            name,
            "at least one point and one dimension",
            f"shape {tuple(shape)}",
            "Check how the data was loaded or filtered",
        )


def _same_numbers(converted: np.ndarray, given: np.ndarray) -> bool:
    if given.dtype.kind in "iu":
        large = np.abs(converted) >= 2.0**53
        return all(int(a) == int(b) for a, b in zip(converted[large], given[large], strict=True))
    if given.dtype.itemsize <= 8:
        return True
    return bool(np.array_equal(converted.astype(given.dtype), given, equal_nan=True))
