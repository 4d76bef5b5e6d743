"""Points, images and targets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Set
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.errors import InputError, TransformationError
from lnkernel.precision import is_traced
from lnkernel.types import Array


def as_traced_points(name: str, x: Any) -> Array:
    """Data inside a user's transformation: of a tracer only the shape can be checked."""
    if not is_traced(x):
        return jnp.asarray(as_points(name, x))
    given = as_traced_array(name, x)
    _check_shape(name, given.shape, _over_a_vmap(name))
    return jnp.asarray(given, jnp.float64)


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


def as_images(name: str, x: Any, axes: int | None) -> Array:
    """Concrete images or sequences as a float64 array (n, positions, channels), exactly as given."""
    given = _as_numpy(name, x)
    _check_kind(name, given.dtype)
    _check_image_shape(name, given.shape, axes)
    points = as_points(name, given.reshape(len(given), -1))
    return points.reshape(given.shape)


def as_traced_images(name: str, x: Any, axes: int | None) -> Array:
    """Images inside a user's transformation."""
    if not is_traced(x):
        return jnp.asarray(as_images(name, x, axes))
    given = as_traced_array(name, x)
    _check_image_shape(name, given.shape, axes, _over_a_vmap(name))
    return jnp.asarray(given, jnp.float64)


def _over_a_vmap(name: str) -> str:
    """The remedy of those who map a kernel over single points."""
    return f"; over the points of a jax.vmap write lambda {name}: f({name}[None])[0]"


def as_traced_array(name: str, x: Any, each: str = "coordinates") -> Array:
    """Real numbers in an array of any shape, out of tracers, or of a list that holds some."""
    refuse_containers(name, x)
    try:
        given = jnp.asarray(x)
    except (TypeError, ValueError):  # which say how JAX puts such a list together
        raise InputError(
            name,
            "an array of numbers",
            f"a {type(x).__name__} whose rows differ in length, or hold what is no number",
            f"Give every point the same number of {each}",
        ) from None
    _check_kind(name, given.dtype)
    return given


def _check_image_shape(
    name: str, shape: tuple[int, ...], axes: int | None, beside: str = ""
) -> None:
    known = {1: "(n, length, channels)", 2: "(n, height, width, channels)"}
    known[3] = "(n, depth, height, width, channels)"
    wanted = known.get(axes or 0, "(n, positions..., channels)")
    if not (3 <= len(shape) <= 5 if axes is None else len(shape) == axes + 2):
        raise InputError(
            name,
            f"an array of shape {wanted}, because the network acts on positions",
            f"shape {tuple(shape)}",
            f"For one input write {name}[None]; for inputs without channels {name}[..., None]{beside}",
        )
    if 0 in shape:
        raise InputError(
            name,
            "at least one input, position and channel",
            f"shape {tuple(shape)}",
            "Check how the data was loaded or filtered",
        )


def check_dimensions(x: Array, x2: Array) -> None:
    if x.ndim > 2 and x.shape[1:] != x2.shape[1:]:
        raise InputError(
            "x2",
            f"inputs of the shape of those in x, {tuple(x.shape[1:])}",
            f"shape {tuple(x2.shape)}",
            "Give both the same positions and channels",
        )
    if x.shape[1] != x2.shape[1]:
        raise InputError(
            "x2",
            f"the dimension of x, {x.shape[1]}",
            f"shape {tuple(x2.shape)}",
            "Give both the same number of columns",
        )


def check_centred(x: Array) -> None:
    """Where a LayerNorm acts on the raw input: refuse one dimension, and warn of two."""
    if x.shape[-1] == 1:
        raise InputError(
            "x",
            "at least 2 dimensions, because a LayerNorm acts on the raw input",
            "1 dimension, which LayerNorm turns into 0 whatever its value",
            "Put a Dense before the LayerNorm",
        )
    if x.shape[-1] == 2:
        warnings.warn(
            "a LayerNorm acts on a raw input of 2 dimensions: with eps=0 it leaves of each point "
            "only the sign of x[0] - x[1]. Put a Dense before it if that is not meant.",
            stacklevel=5,
        )


class Data(NamedTuple):
    """Inputs and targets as float64 arrays of our own that nobody writes to."""

    x: np.ndarray  # (n, d); of images and sequences (n, positions, channels)
    y: np.ndarray  # (n, k)
    one_output: bool  # whether y came as (n,)


def as_data(X: Any, y: Any, of_positions: bool = False) -> Data:
    """The data, checked: shapes, finite numbers, as many targets as inputs, which may be images or sequences."""
    x = np.array(as_images("X", X, None) if of_positions else as_points("X", X))
    targets = as_targets(y, len(x))
    one_output = targets.ndim == 1
    columns = targets[:, None] if one_output else targets
    for array in (x, columns):
        array.flags.writeable = False
    return Data(x, columns, one_output)


def as_targets(y: Any, n: int) -> np.ndarray:
    """y as a new float64 array of shape (n,) or (n, k)."""
    refuse_containers("y", y)
    try:
        given = np.asarray(y)
    except (TypeError, ValueError) as problem:
        raise _no_array("y", y, problem, "outputs") from None
    shape = tuple(given.shape)
    if given.ndim not in (1, 2) or shape[0] != n or 0 in shape:
        transposed = given.ndim == 2 and shape[1] == n
        raise InputError(
            "y",
            f"one target per point of X, shape ({n},) or ({n}, k)",
            f"shape {shape}",
            "Write y.T" if transposed else "Check that X and y were loaded and filtered alike",
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
        raise InputError(
            "y",
            "finite numbers",
            f"{given[where]} for point {where[0]}",
            "Drop such points from X and y alike",
        )
    return np.array(as_points("y", given.reshape(n, -1))).reshape(shape)


def as_inputs(x: Any, dimension: int | tuple[int, ...], name: str = "x") -> np.ndarray:
    """Inputs to predict at, of the dimension of the training inputs; of images, of their shape."""
    if isinstance(dimension, tuple):
        points = np.asarray(as_images(name, x, len(dimension) - 1))
    else:
        points = np.asarray(as_points(name, x))
    _check_dimension(name, points.shape, dimension)
    return points


def as_traced_inputs(x: Any, dimension: int | tuple[int, ...], name: str = "x") -> Array:
    """The same inside a user's transformation."""
    if isinstance(dimension, tuple):
        points = as_traced_images(name, x, len(dimension) - 1)
    else:
        points = as_traced_points(name, x)
    _check_dimension(name, points.shape, dimension)
    return points


def shape_of_one(x: Array) -> int | tuple[int, ...]:
    """The dimension of inputs (n, d), or the shape of one of images and sequences."""
    return int(x.shape[1]) if x.ndim == 2 else tuple(int(size) for size in x.shape[1:])


def _check_dimension(name: str, shape: tuple[int, ...], dimension: int | tuple[int, ...]) -> None:
    if isinstance(dimension, tuple):
        if tuple(shape[1:]) != dimension:
            raise InputError(
                name,
                f"inputs of the shape of the training inputs, {dimension}",
                f"shape {tuple(shape)}",
                f"Give {name} the positions and channels that X has",
            )
        return
    if shape[1] != dimension:
        raise InputError(
            name,
            f"the dimension of the training inputs, {dimension}",
            f"shape {tuple(shape)}",
            f"Give {name} the columns that X has",
        )


def as_array(name: str, x: Any) -> Array:
    """Real numbers in an array of any shape, as they are; a tracer passes."""
    if is_traced(x):
        return as_traced_array(name, x)
    given = x if isinstance(x, jax.Array) else _as_numpy(name, x)
    _check_kind(name, given.dtype)
    return given


def demand_finite(name: str, given: Array, dtype: Any) -> None:
    """Refuse numbers that are not finite, or not in this dtype. A tracer passes, and so do numbers of other hosts."""
    if is_traced(given) or (isinstance(given, jax.Array) and not given.is_fully_addressable):
        return
    numbers = np.asarray(given)
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(numbers.astype(dtype))
    if wrong.any():
        point, *place = (int(i) for i in np.argwhere(wrong)[0])
        value = numbers[(point, *place)]
        finite_as_given = bool(np.isfinite(value))
        raise InputError(
            name,
            f"numbers in the range of {np.dtype(dtype)}" if finite_as_given else "finite numbers",
            f"{value} at point {point}, coordinate {', '.join(map(str, place))}",
            "Scale them, or compute in float64"
            if finite_as_given
            else f"Drop such points, e.g. {name}[np.isfinite({name}).all({_axes(numbers.ndim)})]",
        )


def _axes(ndim: int) -> str:
    """All axes but that of the points, as they are written."""
    return "1" if ndim == 2 else str(tuple(range(1, ndim)))


def _no_array(name: str, x: Any, problem: Exception, each: str) -> Exception:
    """The error for what NumPy makes no array of: a tracer, or a ragged list."""
    if is_traced(x):
        return TransformationError(name)
    came = f"a {type(x).__name__} that is no array ({problem})".replace(".)", ")")
    return InputError(
        name, "an array of numbers", came, f"Give every point the same number of {each}"
    )


def refuse_containers(name: str, x: Any) -> None:
    """Refuse what NumPy makes an array of that is not the one that was meant."""
    if x is None:
        raise InputError(name, "an array of numbers", "None", f"Give a value for {name}")
    if isinstance(x, Iterator):
        came = f"a {type(x).__name__}"
        remedy = f"Write list(...) around it, or np.array(list({name}))"
        raise InputError(name, "an array of numbers", came, remedy)
    if type(x).__module__.startswith("scipy.sparse"):
        raise InputError(
            name,
            "an array of numbers",
            f"a sparse matrix ({type(x).__name__})",
            f"Write {name}.toarray(), if that fits into memory",
        )
    if isinstance(x, Mapping | Set):
        came = f"a {type(x).__name__}"
        remedy = "Put its numbers into the columns of an array, e.g. by np.column_stack"
        raise InputError(name, "an array of numbers", came, remedy)
    refuse_masked(name, x)


def refuse_masked(name: str, x: Any) -> None:
    """Refuse an array, or lists of any depth, of which numbers are masked: NumPy would take what is below the mask."""
    parts = jax.tree.leaves(x) if isinstance(x, list | tuple) else (x,)
    if not any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, parts))):
        return  # sooner, for long lists of numbers
    masked = [
        part for part in parts if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part)
    ]
    if masked:
        count, of = sum(int(np.ma.count_masked(part)) for part in masked), sum(map(np.size, parts))
        filled = f": {name}.filled(value)" if x is masked[0] else ""
        raise InputError(
            name,
            "an array without missing numbers",
            f"a masked array with {count} of {of} masked",
            f"Drop such points, or fill the numbers in{filled}",
        )


def shape_of(name: str, x: Any, each: str = "coordinates") -> tuple[int, ...]:
    """The shape of data that may be lists; rows of different lengths are refused."""
    refuse_containers(name, x)
    try:
        return tuple(np.shape(x))
    except (TypeError, ValueError) as problem:
        raise _no_array(name, x, problem, each) from None


def _as_numpy(name: str, x: Any) -> np.ndarray:
    refuse_containers(name, x)
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as problem:
        raise _no_array(name, x, problem, "coordinates") from None


def _check_kind(name: str, dtype: Any) -> None:
    if not (jnp.issubdtype(dtype, jnp.floating) or np.dtype(dtype).kind in "iub"):
        raise InputError(name, "real numbers", f"dtype {dtype}", _remedy_of_kind(name, dtype))


def _remedy_of_kind(name: str, dtype: Any) -> str:
    """What helps with numbers of this type, which are no real ones."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        return f"Give the real and the imaginary part as coordinates of their own, or {name}.real alone"
    if kind == "O":
        return (
            "Some entry is no number, or an integer of more than 64 bits; convert the data by "
            f"np.asarray({name}, float), which names an entry that it cannot convert"
        )
    return f"Convert the data to numbers, e.g. texts of numbers by np.asarray({name}, float)"


def _check_shape(name: str, shape: tuple[int, ...], beside: str = "") -> None:
    if len(shape) != 2:
        raise InputError(
            name,
            "a 2-D array of shape (points, dimension)",
            f"shape {tuple(shape)}",
            f"For one point write {name}[None, :]; for points on a line write {name}[:, None]{beside}",
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
