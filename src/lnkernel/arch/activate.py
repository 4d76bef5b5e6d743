"""Any JAX function of one number as an activation."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch.node import node, static
from lnkernel.arch.piecewise import Piecewise
from lnkernel.check.numbers import as_number
from lnkernel.errors import ArchitectureError

SAMPLES = np.concatenate([[0.0], np.linspace(-3.97, 4.03, 41)])  # none is likely to be a kink but 0
NEAR_KINK = 1e-3  # derivatives are not compared closer to one
AGREE = 1e-10  # relatively, of two derivatives that are meant to be one: kernels are exact to 1e-13


@node
class Activate(Piecewise):
    r"""$\phi(u) = \mathrm{fn}(u)$ for a function of your own, written with `jax.numpy`.

    Args:
        fn: a function of one number, which acts on every coordinate by itself.
        derivative: $\phi'$; by default JAX differentiates `fn`.
        kinks: the numbers at which $\phi$ has a kink, or a higher derivative a jump. Between them it must be
            analytic and vary over distances of about 1 or more; where it does not, kernels are refused.

    It is part of the structure of a network and has no hyperparameters. Texts cannot name it.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> x = [[1.0, 2.0], [3.0, -1.0]]
    >>> own, known = (lnk.mlp(activation=act) for act in (lnk.Activate(jnp.tanh), lnk.Tanh()))
    >>> bool((abs(lnk.ntk(own)(x) / lnk.ntk(known)(x) - 1) < 1e-14).all())
    True
    >>> shrink = lnk.Activate(lambda u: jnp.sign(u) * jnp.maximum(abs(u) - 1, 0), kinks=(-1, 1))
    >>> lnk.nngp(lnk.mlp(hidden=1, activation=shrink)).diagonal(x).shape
    (2,)
    """

    fn: Callable[[Any], Any] = static()
    derivative: Callable[[Any], Any] | None = static(default=None)
    kinks: tuple[float, ...] = static(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", _as_kinks(self.kinks))
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            for name in ("fn", "derivative"):
                if name == "fn" or self.derivative is not None:
                    _check_function(name, getattr(self, name))
            _check_derivative(self)
            _check_jumps(self)

    def __repr__(self) -> str:
        """The text, without the addresses by which Python prints functions."""
        names = {"fn": self.fn} | (
            {} if self.derivative is None else {"derivative": self.derivative}
        )
        named = [f"{key}={getattr(fn, '__name__', type(fn).__name__)}" for key, fn in names.items()]
        return f"Activate({', '.join([*named, f'kinks={self.kinks}'])})"


def apply_to_each(fn: Callable[[Any], Any], u: jax.Array) -> jax.Array:
    """The function of every number by itself."""
    return _over_all(fn)(u.reshape(-1)).reshape(u.shape)


@lru_cache(maxsize=64)
def _over_all(fn: Callable[[Any], Any]) -> Callable[[jax.Array], jax.Array]:
    """One program for every number of them; else each operation of the function would have one of its own."""
    return jax.jit(jax.vmap(fn))


def _refuse(reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError("Activate", "", reason, remedy)


def _as_kinks(kinks: Any) -> tuple[float, ...]:
    given = [kinks] if as_number(kinks) is not None else kinks
    numbers = [as_number(kink) for kink in given] if isinstance(given, tuple | list) else [None]
    if any(number is None or not np.isfinite(number) for number in numbers):
        _refuse(
            f"kinks must be a tuple of finite numbers, got {kinks!r}", "Write e.g. kinks=(0.0,)"
        )
    return tuple(sorted({number + 0.0 for number in numbers if number is not None}))


def _check_function(name: str, fn: Any) -> None:
    """Refuse what is not a function of one number, with finite real values, and of each coordinate by itself."""
    if not callable(fn):
        _refuse(f"{name} must be a function, got {fn!r}", "Write e.g. Activate(jnp.tanh)")
    try:
        hash(fn)
    except TypeError:
        _refuse(
            f"{name} is a {type(fn).__name__} that cannot be hashed",
            "Wrap it: lambda u: the_function(u)",
        )
    try:
        out = jax.eval_shape(fn, jax.ShapeDtypeStruct((), jnp.float64))
        shape, dtype = out.shape, jnp.dtype(out.dtype)
    except Exception as problem:  # whatever goes wrong in the user's function
        said = str(problem).strip().splitlines() or [""]
        _refuse(
            f"{name} cannot be traced by JAX as a function of one number "
            f"({type(problem).__name__}: {said[0][:200]})",
            "Write it with jax.numpy, with jnp.where in place of `if`",
        )
    if shape != () or dtype.kind not in "fiuV":  # bfloat16 is of kind V
        what = f"shape {shape}" if shape != () else f"dtype {dtype}"
        _refuse(
            f"{name} must make one real number of one, got {what}",
            "Write a function that acts on every coordinate by itself",
        )
    if dtype.kind in "fV" and dtype.itemsize < 8:
        _refuse(
            f"{name} makes {dtype} of float64, so that half of the digits are lost",
            "Remove the conversion (`astype`, `dtype=`) in it, or an array of that type that it holds",
        )
    values = np.asarray(apply_to_each(fn, jnp.asarray(SAMPLES)))
    if not np.isfinite(values).all():
        place = SAMPLES[int(np.argmax(~np.isfinite(values)))]
        _refuse(
            f"{name}({place:g}) is {values[int(np.argmax(~np.isfinite(values)))]}",
            "A Gaussian takes every real value: the function must be finite everywhere",
        )
    _check_elementwise(name, fn, values)


def _check_elementwise(name: str, fn: Callable[[Any], Any], values: np.ndarray) -> None:
    """Refuse a function of whole vectors that does not treat each coordinate by itself, and all alike."""
    try:
        together = np.asarray(fn(jnp.asarray(SAMPLES)))
    except Exception:  # it takes single numbers only, as it is used
        return
    if together.shape != values.shape or not np.allclose(together, values, rtol=1e-9, atol=1e-12):
        _refuse(
            f"{name} of a vector is not what it is of each coordinate by itself",
            "Write one that does not mix coordinates; a norm is a layer of its own",
        )


def _check_derivative(layer: Activate) -> None:
    if layer.derivative is None:
        return
    away = np.abs(SAMPLES[:, None] - np.asarray(layer.kinks)).min(axis=1, initial=1.0) > NEAR_KINK
    u = jnp.asarray(SAMPLES[away])
    given = np.asarray(apply_to_each(layer.derivative, u))
    found = np.asarray(apply_to_each(jax.grad(lambda t: layer.fn(t) * 1.0), u))
    wrong = np.abs(given - found) > AGREE * (np.abs(found) + np.abs(found).max())
    if wrong.any():
        at = int(np.argmax(wrong))
        _refuse(
            f"derivative({float(u[at]):g}) is {given[at]:.13g}, and JAX differentiates fn to {found[at]:.13g} there",
            "Correct it, or leave derivative=None",
        )


def _check_jumps(layer: Activate) -> None:
    for kink in layer.kinks:
        step = 1e-9 * max(1.0, abs(kink))
        left, right = np.asarray(apply_to_each(layer.fn, jnp.asarray([kink - step, kink + step])))
        if abs(right - left) > 1e-6 * (1 + abs(left) + abs(right)):
            _refuse(
                f"fn jumps at {kink:g}, from {left:.6g} to {right:.6g}, so that E phi'(u)^2 is infinite and the "
                "NTK does not exist",
                "Take a continuous function; lnkernel.Sign and lnkernel.Step have the NNGP kernel",
            )
