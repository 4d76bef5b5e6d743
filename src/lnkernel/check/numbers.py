"""Single numbers, shapes, seeds and keys."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.check.plain import as_float
from lnkernel.errors import InputError, TransformationError
from lnkernel.precision import is_traced
from lnkernel.types import Array

MOST_SEEDS = 2**63  # which Python can count


def as_number(value: Any) -> float | None:
    """A number of Python, NumPy or JAX as a float; None for everything else, texts included."""
    if is_traced(value):
        raise TransformationError("a number")
    if np.ma.is_masked(value):
        return None
    kind = np.asarray(value).dtype.kind if not isinstance(value, (str, bool)) else "U"
    return float(value) if kind in "iuf" and np.ndim(value) == 0 else None


def plain_number(name: str, value: object, expected: str) -> float:
    """A plain number out of whatever holds one."""
    if is_traced(value):
        raise TransformationError(name)
    if isinstance(value, np.ndarray | jax.Array) and value.ndim == 0 and not np.ma.is_masked(value):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(name, expected, repr(value), "Give one number")
    plain = as_float(value)
    if plain is None:
        least = "Give a number in the range of float64, up to 1.8e308"
        raise InputError(name, expected, reprlib.repr(value), least)
    return plain


def traced_number(name: str, value: Any, expected: str) -> Array:
    """One number that is traced: of such a one only shape and type are known."""
    given = jnp.asarray(value)
    if given.ndim or not any(
        jnp.issubdtype(given.dtype, kind) for kind in (jnp.integer, jnp.floating)
    ):
        came = f"a traced value of shape {given.shape} and dtype {given.dtype}"
        raise InputError(name, expected, came, "Give one real number")
    return given


def demand_static(name: str, value: Any) -> None:
    """Refuse a tracer where the program itself, its shapes or its loops, depends on the integer."""
    if is_traced(value):
        raise InputError(
            name,
            "a plain Python integer, known when the program is compiled",
            "a value that a jax.jit, jax.grad or jax.vmap around this call is tracing",
            f"Name {name} in static_argnames (or its place in static_argnums) of jax.jit, or close over an integer",
        )


def positive_integer(name: str, value: Any) -> int:
    demand_static(name, value)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(name, "an integer, at least 1", repr(value), f"Choose {name} = 1 or more")
    return int(value)


def as_seed(seed: Any) -> int:
    """One seed of random numbers."""
    demand_static("seed", seed)
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError("seed", "an integer, at least 0", repr(seed), "Write e.g. seed=0")
    return int(seed)


def as_seeds(seeds: Any, at_least: int) -> Sequence[int]:
    """Different integers: 0, 1, ... where only their number is given, which are not listed: whether so many networks
    have room is asked later."""
    demand_static("seeds", seeds)
    expected = f"a number of at least {at_least}, or as many different integers"
    if isinstance(seeds, Integral) and not isinstance(seeds, bool):
        if int(seeds) >= MOST_SEEDS:
            raise InputError("seeds", expected, reprlib.repr(seeds), "Choose fewer than 2**63")
        return _enough(range(int(seeds)), seeds, at_least, expected)
    elif isinstance(seeds, Iterable) and not isinstance(seeds, str):
        given = list(seeds)
        if any(isinstance(s, bool) or not isinstance(s, Integral) or s < 0 for s in given):
            raise InputError("seeds", expected, repr(seeds), "Give integers, 0 or more")
        return _enough([int(seed) for seed in given], seeds, at_least, expected)
    raise InputError("seeds", expected, repr(seeds), "Write e.g. seeds=10")


def _enough(chosen: Sequence[int], given: Any, at_least: int, expected: str) -> Sequence[int]:
    different = len(chosen) if isinstance(chosen, range) else len(set(chosen))
    if len(chosen) < at_least or different < len(chosen):
        why = "A standard error takes two networks or more" if at_least > 1 else "Train one or more"
        raise InputError("seeds", expected, repr(given), why)
    return chosen


def as_flag(name: str, value: Any) -> bool:
    """True or False; a text would count as True, also "no"."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(name, "True or False", repr(value), f"Write {name}=True")
    return bool(value)


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """The sizes of an array's axes; one integer is the size of one axis."""
    demand_static(name, shape)
    given = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(s, bool) or not isinstance(s, Integral) or s < 0 for s in given):
        raise InputError(
            name, "integers, 0 or more", repr(shape), f"Write e.g. {name}=(10,), or {name}=10"
        )
    return tuple(int(size) for size in given)


def _is_key_data(given: Any) -> bool:
    """Whether JAX takes these numbers for a key, as it is set up."""
    try:
        jax.random.wrap_key_data(jnp.asarray(given))
    except (TypeError, ValueError):
        return False
    return True


def as_key(name: str, key: Any) -> jax.Array:
    """One key of `jax.random`, of the new type or two numbers as of old."""
    given = key if isinstance(key, jax.Array | np.ndarray) else np.asarray(0.0)
    new = jnp.issubdtype(given.dtype, jax.dtypes.prng_key) and given.ndim == 0
    old = given.dtype == np.uint32 and given.ndim == 1 and _is_key_data(given)
    if not (new or old):
        one = isinstance(key, Integral) and not isinstance(key, bool)
        came = f"shape {given.shape}, dtype {given.dtype}" if given is key else repr(key)
        remedy = f"jax.random.key({key})" if one else "e.g. jax.random.key(0)"
        raise InputError(name, "one key of jax.random", came, f"Write {remedy}")
    return jnp.asarray(given) if old else key
