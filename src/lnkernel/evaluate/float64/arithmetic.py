"""float64 as an arithmetic of the calculus."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.calculus.arithmetic import Cosines, Softened
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.elementary import divide
from lnkernel.evaluate.float64.gaps import DELICATE, NOTHING_DELICATE, with_gap
from lnkernel.evaluate.float64.kept import keep, per_input
from lnkernel.evaluate.float64.namespace import differentiable
from lnkernel.evaluate.float64.powers import power
from lnkernel.evaluate.float64.precise import (
    Precise,
    as_precise,
    is_single,
    normalised,
    plain,
    quotient,
)
from lnkernel.evaluate.float64.precise_functions import ratio, root, without_exponent

T = TypeVar("T")
FEW_PAIRS = 256  # for which a table of numbers of single inputs takes longer than it saves


class Float64:
    """JAX arrays of float64. Lengths may be 0 or infinite; see `lnkernel.calculus.covariance`.

    `with_range` is for networks in which squared lengths may leave the range of float64. With
    `quick`, functions may give NaN for pairs that need more care than the others, and get it later: those whose
    angle is below `delicate`.
    With `equal`, both inputs of every pair are one and the same. With `sharp`, ratios of lengths are rounded
    once, and for equal inputs their squares not at all: where Θ/K grows from layer to layer, so would their errors.
    """

    name, purpose = "float64", "kernel"
    xp: Any = jnp  # where its functions are
    keeps = False  # whether what is made of few inputs is kept

    def __init__(
        self,
        with_range: bool = False,
        quick: bool = False,
        equal: bool = False,
        sharp: bool = False,
        delicate: float = DELICATE,
    ):
        self.with_range, self.quick, self.equal, self.sharp = with_range, quick, equal, sharp
        self.delicate = delicate

    @property
    def rounds_angles(self) -> bool:
        return self.quick and self.delicate == NOTHING_DELICATE

    def real(self, x: float) -> float:
        return float(x)

    def squared(self, x: Array) -> Precise:
        precise = as_precise(x)
        if self.with_range and np.ndim(x):  # hyperparameters are of moderate size
            precise = normalised(precise)
        return precise * precise

    def sqrt(self, x: Any) -> Array:
        return x.root() if isinstance(x, Precise) else _sqrt(self.xp.asarray(x, np.float64))

    def power(self, x: Any, degree: float) -> Precise:
        return power(as_precise(x), float(degree))

    def cosines(self, leg_square: Any, other: Array) -> Cosines:
        """An infinite leg is the limit; 0 and 0 count as (1, 0, 0)."""
        leg, other_square = as_precise(leg_square), self.squared(other)
        total = leg + other_square
        finite = (total.high > 0) & (total.high < self.xp.inf)
        if self.sharp:
            return self._sharp_cosines(leg, other_square, total, finite)
        # the roots come last: XLA then computes them once per input, not once per pair
        cosine = _sqrt(self.xp.where(finite, quotient(leg, total), 1.0))
        sine = _sqrt(self.xp.where(finite, quotient(other_square, total), 0.0))
        return Cosines(cosine, sine, total)

    def _sharp_cosines(
        self, leg: Precise, other: Precise, total: Precise, finite: Array
    ) -> Cosines:
        share = without_exponent(ratio(leg, total))
        exact, sine = root(share), without_exponent(root(ratio(other, total))).high
        cosine = self.xp.where(finite, exact.high, 1.0)
        low = None if self.quick else divide(self.xp.where(finite, exact.low, 0.0), cosine)
        if self.equal:
            high = self.xp.where(finite, share.high, 1.0)
            share = Precise(high, self.xp.where(finite, share.low, 0.0))
        sine = self.xp.where(finite, sine, 0.0)
        return Cosines(cosine, sine, total, low, share if self.equal else None)

    def softened(self, square: Any, eps: Array) -> Softened:
        """Right at eps = 0 and at length 0, with derivatives; an infinite length has ratio 1."""
        square = as_precise(square)
        total = square + eps
        finite = total.high < self.xp.inf
        share = _sqrt(self.xp.where(finite, quotient(square, total), 1.0))
        return Softened(share, total.root())

    def divide(self, x: Any, y: Any) -> Array:
        if isinstance(x, Precise) or isinstance(y, Precise):
            return quotient(as_precise(x), as_precise(y))
        return divide(*self.xp.broadcast_arrays(self.xp.asarray(x, np.float64), y))

    def powered_difference(self, e: Array, degree: float, first: Array, second: Array) -> Array:
        if degree == 1:
            return e
        apart = self.xp.abs(e) > 0.5
        near = self.xp.where(apart, 0.0, e)
        grown = self.xp.expm1(degree * self.xp.log1p(2 * near / (1 - near)))  # (r1/r2)^p - 1
        return self.xp.where(apart, self.direct_difference(first, second, e), grown / (2 + grown))

    def combined_difference(self, e: Array, change: Array, first: Array, second: Array) -> Array:
        apart = (self.xp.abs(e) > 0.5) | (self.xp.abs(change) > 0.5)
        e, change = self.xp.where(apart, 0.0, e), self.xp.where(apart, 0.0, change)
        direct = self.direct_difference(first, second, self.xp.zeros_like(e))
        return self.xp.where(apart, direct, (e + change) / (1 + e * change))

    def length_difference(self, first: Any, second: Any) -> Array:
        return self.direct_difference(first, second, self.xp.zeros(()))

    def direct_difference(self, first: Any, second: Any, otherwise: Array) -> Array:
        """e from the squared lengths; `otherwise` where they are zero or infinite."""
        first, second = as_precise(first), as_precise(second)
        total = first + second
        known = (total.high > 0) & (total.high < self.xp.inf)
        x, y = (_sqrt(self.xp.where(known, quotient(q, total), 1.0)) for q in (first, second))
        return self.xp.where(known, (x - y) / (x + y), otherwise)

    def where(self, condition: Any, yes: Array, no: Array) -> Array:
        if condition is True or condition is False:
            return yes if condition else no
        return self.xp.where(condition, yes, no)

    def either(self, one: Any, other: Any) -> Any:
        return True if one is True or other is True else self.xp.logical_or(one, other)

    def prepares(self, pairs: int) -> bool:
        """Whether `of_input` works on NumPy's numbers or has its results already, so that what single inputs need for
        so many pairs may take tables."""
        return False

    def prefer_care(self) -> None:
        """Asked for where all pairs are computed with care as soon as quickly; a quick way may stop here."""

    def angle(self, cosine: Array) -> tuple[Array, Array, Array]:
        """(w, z, c) from the cosine, for the quick way; NaN where too few digits would be left of a small angle."""
        return with_gap(cosine, self.delicate)

    def of_input(self, compute: Callable[..., T], *numbers: Any) -> T:
        """What `compute` makes of numbers that belong to one input: done once for it, not once for all its pairs."""
        return compute(*numbers)

    def as_number(self, truth: Any) -> Array:
        return self.xp.asarray(truth, np.float64)


class PlainLengths(Float64):
    """Float64 whose squared lengths have no more digits than its other numbers.

    For images, whose lengths are sums over windows: there is one at each position, and twice the digits of all of them
    would take longer than the pairs of few inputs.
    """

    def squared(self, x: Any) -> Any:
        return x * x

    def power(self, x: Any, degree: float) -> Any:
        return plain(super().power(x, degree))

    def cosines(self, leg_square: Any, other: Any) -> Cosines:
        """An infinite leg is the limit; 0 and 0 count as (1, 0, 0)."""
        total = leg_square + other * other
        finite = (total > 0) & (total < self.xp.inf)
        cosine = _sqrt(self.xp.where(finite, divide(leg_square, total), 1.0))
        sine = _sqrt(self.xp.where(finite, divide(other * other, total), 0.0))
        return Cosines(cosine, sine, total)

    def softened(self, square: Any, eps: Any) -> Softened:
        total = square + eps
        finite = total < self.xp.inf
        return Softened(_sqrt(self.xp.where(finite, divide(square, total), 1.0)), _sqrt(total))


class EagerFloat64(Float64):
    """NumPy arrays of float64: nothing to compile, and no derivatives.

    What is made of single numbers, such as the lengths behind a LayerNorm, is kept: they are the same for all inputs,
    and for the next matrix.
    """

    xp = np
    keeps = True

    def prepares(self, pairs: int) -> bool:
        return pairs > FEW_PAIRS

    def cosines(self, leg_square: Any, other: Array) -> Cosines:
        if not _is_known(other):
            return super().cosines(leg_square, other)
        if not _is_known(leg_square):
            leg = as_precise(leg_square)
            if not self.sharp or leg.exponent is not None:
                return per_input(partial(super().cosines, other=other), leg)
            rules = "cosines", self.with_range, float(other)
            made = keep(rules, partial(_all_cosines, self.with_range, other), leg)
            rest, share = None if self.quick else made.rest, made.share if self.equal else None
            return made._replace(rest=rest, share=share)
        settings = self.with_range, self.quick, self.equal, self.sharp
        return _kept_cosines(settings, leg_square, other)

    def softened(self, square: Any, eps: Array) -> Softened:
        return per_input(partial(super().softened, eps=eps), as_precise(square))


def _all_cosines(with_range: bool, other: Any, leg_square: Precise) -> Cosines:
    """With all that any way to compute pairs asks for."""
    num = EagerFloat64(with_range, equal=True, sharp=True)
    return Float64.cosines(num, leg_square, other)


@lru_cache(maxsize=1024)
def _kept_cosines(settings: tuple[bool, ...], leg_square: Any, other: Any) -> Cosines:
    return Float64.cosines(EagerFloat64(*settings), leg_square, other)


def _is_known(x: Any) -> bool:
    if isinstance(x, Precise):
        return is_single(x.high) and is_single(x.low) and x.exponent is None
    return isinstance(x, float)


@differentiable
def _sqrt(x: Array) -> Array:
    """sqrt whose derivative at 0 is taken as 0: lengths enter the kernels by their squares."""
    return namespace.of(x).sqrt(x)


@_sqrt.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    value = _sqrt(x)
    usable = (value > 0) & (value < jnp.inf)
    return value, jnp.where(usable, 0.5 / jnp.where(usable, value, 1.0), 0.0) * dx
