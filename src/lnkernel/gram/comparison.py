"""From inputs to the numbers of their pairs, with all care, and with derivatives in closed form.

A user's gradient of plain numbers, if they are not too many, is computed by NumPy here: nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64 import geometry, namespace
from lnkernel.evaluate.float64.precise import Precise
from lnkernel.evaluate.float64.slopes import Slopes, slopes
from lnkernel.gram.compiled import call_compiled
from lnkernel.gram.partials import is_change
from lnkernel.precision import inside_jit, is_traced
from lnkernel.types import Array

SHORT = 1e-100
MOST = 1 << 18  # coordinates of pairs that NumPy compares sooner than a program is compiled


@dataclass(frozen=True)
class Comparing:
    """How inputs are compared."""

    centre: bool
    with_range: bool
    behind_bias: bool


class Compared(NamedTuple):
    """The numbers of all pairs of n and m inputs."""

    first: tuple[Precise, Array]  # square and whether it is not the zero vector, (n, 1)
    second: tuple[Precise, Array]  # (1, m)
    w: Array  # (n, m)
    z: Array
    e: Array

    def covariance(self) -> Covariance:
        """The pairs as the rules take them. With w, z changes by as much the other way."""
        z = self.z - (self.w - namespace.constant(self.w))
        first, second = Length(*self.first), Length(*self.second)
        return Covariance(first, second, self.w, z, z - self.w, self.e)


def compare(how: Comparing, x: Array, x2: Array) -> Compared:
    """All pairs of x (n, d) and x2 (m, d)."""

    @jax.custom_jvp
    def compute(x: Array, x2: Array) -> Compared:
        made: Compared = _compute(_compare, how, x, x2)
        return made

    def rule(inputs: Sequence[Array], changes: Sequence[Any]) -> tuple[Compared, Compared]:
        compared, found = _compute(_compare_with_slopes, how, *inputs)
        moved = tuple(is_change(change) for change in changes)
        steps = [change for change, moves in zip(changes, moved, strict=True) if moves]
        dw, dq, de = _contract(moved, found, steps)
        return compared, _as_change(compared, dw, dq, de)

    compute.defjvp(rule, symbolic_zeros=True)
    made = compute(x, x2)
    still = lax.stop_gradient(made)
    first, second = (
        (Precise(square.high, constant.low, constant.exponent), live)
        for (square, _), (constant, live) in (
            (made.first, still.first),
            (made.second, still.second),
        )
    )
    return Compared(first, second, made.w, still.z, made.e)


def off_zero(x: Array) -> Array:
    """A zero vector has no direction, but behind a bias the kernel has a derivative there: it is
    that of a vector so short that no digit of the kernel tells it from zero."""
    xp = namespace.of(x)
    dead = xp.all(x == 0, axis=1, keepdims=True)
    return x + xp.where(dead, SHORT, 0.0)


def _compute(function: Any, how: Comparing, x: Array, x2: Array) -> Any:
    if is_traced(x, x2) or inside_jit() or len(x) * x2.size > MOST:
        return call_compiled(function, how, arguments=(x, x2))
    with np.errstate(all="ignore"):
        made = function(how, np.asarray(x, np.float64), np.asarray(x2, np.float64))
    return jax.tree.map(jnp.asarray, made)


def _prepare(how: Comparing, x: Array, x2: Array) -> list[geometry.Inputs]:
    both = (off_zero(x), off_zero(x2)) if how.behind_bias else (x, x2)
    return [geometry.prepare(points, how.centre, how.with_range) for points in both]


def _compare(how: Comparing, x: Array, x2: Array) -> Compared:
    return _pairs_of(how, *_prepare(how, x, x2))


def _compare_with_slopes(how: Comparing, x: Array, x2: Array) -> tuple[Compared, Slopes]:
    one, two = _prepare(how, x, x2)
    made = _pairs_of(how, one, two)
    return made, slopes(one, two, made.w, made.z, how.centre, how.with_range)


def _pairs_of(how: Comparing, one: geometry.Inputs, two: geometry.Inputs) -> Compared:
    made = geometry.careful_matrix(one, two, how.centre)
    first, second = ((side.q, side.live) for side in (made.first, made.second))
    return Compared(first, second, made.w, made.z, made.e)


@partial(jax.jit, static_argnums=0)
def _contract(
    moved: tuple[bool, ...], found: Slopes, steps: list[Array]
) -> tuple[Array, tuple[Array, Array], Array]:
    """What the steps make of w, of both squares and of e."""
    rest = iter(steps)
    dx, dx2 = (next(rest) if moves else None for moves in moved)
    dw: Any = 0.0
    de: Any = 0.0
    dq: list[Any] = [0.0, 0.0]
    for side, (step, axis) in enumerate(((dx, 1), (dx2, 0))):
        if step is not None:
            dw = dw + (found.angle[side] * jnp.expand_dims(step, axis)).sum(axis=-1)
            dq[side] = jnp.expand_dims((found.square[side] * step).sum(axis=-1), axis)
            longer = jnp.expand_dims((found.length[side] * step).sum(axis=-1), axis)
            de = de + found.difference[side] * longer
    return dw, (dq[0], dq[1]), de


def _as_change(made: Compared, dw: Array, dq: tuple[Array, Array], de: Array) -> Compared:
    """The changes as JAX wants them: of whole numbers and truth values there are none."""

    def none(x: Any) -> Any:
        if jnp.issubdtype(x.dtype, jnp.floating):
            return jnp.zeros_like(x)
        return np.zeros(x.shape, jax.dtypes.float0)

    still = jax.tree.map(none, made)
    first, second = (
        (Precise(jnp.broadcast_to(change, square.high.shape), square.low, square.exponent), live)
        for change, (square, live) in zip(dq, (still.first, still.second), strict=True)
    )
    shape = made.w.shape
    dw, de = jnp.broadcast_to(dw, shape), jnp.broadcast_to(de, shape)
    return Compared(first, second, dw, -dw, de)
