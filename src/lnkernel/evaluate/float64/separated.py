r"""Quick pairs of different lengths behind an analytic activation, from the products of `separable.py`.

Less its mean the activation has the unit features $\hat c_n = a_n/|a_{\ge 1}|$. With the share $s$ of the mean and
what it leaves, $\sqrt{1 - s^2} = |a_{\ge 1}|/|a|$, the cosine of all features is

    s_1 s_2 + sqrt(1 - s_1^2) sqrt(1 - s_2^2) sum c_n(r1) c_n(r2) rho^n.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.choice import choice_for
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.gaps import relative_difference
from lnkernel.evaluate.float64.hermite_features import features
from lnkernel.evaluate.float64.length_curves import lengths_of_nodes
from lnkernel.evaluate.float64.separable import (
    LARGEST,
    Factors,
    Table,
    is_told,
    sum_products,
    table_of,
)

FEW = 4  # lengths
T = TypeVar("T")


class Image(NamedTuple):
    """What an activation makes of one input."""

    size: Any  # |a|
    share: Any  # a_0/|a|
    rest: Any  # |a| without a_0, over |a|
    factors: Factors  # of the series of c_n


@lru_cache(maxsize=64)
def image_table(layer: Smooth, terms: int, longest: float) -> Table | None:
    """Of the numbers of an `Image`, but for powers of the length; None where it would be too large."""
    unit, euler, size, rest = features_at_nodes(layer, terms, longest)
    centred = unit / rest
    centred[0] = 0.0
    if not (is_told(centred) and is_told(euler)):
        return None
    r = lengths_of_nodes(longest)
    # a_n is of order r or less for short vectors, but for phi(0) in a_0
    small = (size / r, rest) if vanishes(layer) else (size, rest / r)
    made = table_of(longest, [small[0], unit[0], small[1]], centred)
    return made if sum(map(sum, made.ranks)) <= LARGEST else None


@lru_cache(maxsize=64)
def euler_table(layer: Smooth, terms: int, longest: float) -> Table:
    """Of the features of u phi'(u), over |a|: made where a rule asks for them, as behind a trainable scale."""
    _, euler, _, _ = features_at_nodes(layer, terms, longest)
    return table_of(longest, [], euler)


@lru_cache(maxsize=4)
def features_at_nodes(layer: Smooth, terms: int, longest: float) -> tuple[np.ndarray, ...]:
    """Those of `Features`, at the lengths of the nodes."""
    lengths: Any = lengths_of_nodes(longest)
    return tuple(map(np.asarray, features(layer, lengths, terms)))


def vanishes(layer: Smooth) -> bool:
    """Whether phi(0) = 0."""
    return function_of(layer).vanishes


def image_of(layer: Smooth, terms: int, longest: float, r: np.ndarray) -> Image | None:
    """What the activation makes of inputs of these lengths; None where a table would be too large."""
    table = image_table(*table_for(layer, terms, longest))
    if table is None:
        return None
    (size, share, rest), factors = table.at(r, unit=True)
    size = size * r if vanishes(layer) else size
    lengths, place = np.unique(r, return_inverse=True)
    if len(lengths) <= FEW:  # as behind a norm: an error of the size would be that of all pairs
        exact = np.array([features(layer, length, terms).size for length in lengths])
        size = exact[place].reshape(r.shape)
    return Image(size, share, rest if vanishes(layer) else rest * r, factors)


def euler_of(layer: Smooth, terms: int, longest: float, r: np.ndarray) -> Factors:
    """The factors of the features of u phi'(u)."""
    return euler_table(*table_for(layer, terms, longest)).at(r)[1]


def table_for(layer: Smooth, terms: int, longest: float) -> tuple[Smooth, int, float]:
    """What tells a table. That of longer vectors than this layer's, which others share, takes more terms than it."""
    plain = _with_plain_numbers(layer)
    choice = choice_for(plain, longest)
    return plain, terms if choice is None else max(terms, choice.terms), longest


def _with_plain_numbers(layer: Smooth) -> Smooth:
    plain: Smooth = jax.tree.map(float, layer)
    return plain


def _both(num: Float64, compute: Callable[..., T], lengths: tuple[Array, Array]) -> tuple[T, T]:
    """What is computed of both inputs of all pairs: once, where those of the rows are those of the columns."""
    r1, r2 = lengths
    one = num.of_input(compute, r1)
    if num.keeps and np.size(r1) == np.size(r2) and np.array_equal(np.ravel(r1), np.ravel(r2)):
        return one, jax.tree.map(lambda part: part.reshape(np.shape(r2)), one)
    return one, num.of_input(compute, r2)


def dual_by_products(
    num: Float64,
    layer: Smooth,
    cov: Covariance,
    lengths: tuple[Array, Array],
    terms: int,
    longest: float,
) -> Dual | None:
    """The angles from their cosines; NaN where too few digits would be left of a small one. None where a table would
    be too large."""
    image = partial(image_of, layer, terms, longest)
    one, two = _both(num, image, lengths)
    if one is None or two is None:
        return None
    y = 1 - 8 * (cov.w * cov.z)
    cosine, steepness = sum_products(one.factors, two.factors, cov.c, y)
    rests, at_zero = one.rest * two.rest, vanishes(layer)
    slope = rests * steepness

    def euler() -> Any:
        first, second = _both(num, partial(euler_of, layer, terms, longest), lengths)
        return sum_products(first, second, cov.c, y)[0]

    alive = (cov.first.live, cov.second.live)
    first, second = (
        Length(side.size * side.size, live).masked(num, side.size * side.size)
        for side, live in zip((one, two), alive if at_zero else (True, True), strict=True)
    )
    left1, left2 = (
        Length(whole.q * (side.rest * side.rest), live)
        for whole, side, live in zip((first, second), (one, two), alive, strict=True)
    )
    sizes, shares = (one.size, two.size), (one.share, two.share)

    def apart(one: Any, two: Any) -> Any:
        """The relative difference, where a rule asks for it."""
        return None if cov.e is None else relative_difference(one, two)

    means, rest = (
        [x * size for x, size in zip(parts, sizes, strict=True)]
        for parts in ([abs(s) for s in shares], (one.rest, two.rest))
    )
    return Dual(
        total=Covariance(
            first,
            second,
            *num.angle(one.share * two.share + rests * cosine),
            apart(*sizes),
        ),
        mean=Mean(*shares, apart(*means), Both(one.rest, two.rest)),
        slope=slope,
        euler=euler,
        derivative=lambda: (slope, *(x / r for x, r in zip(sizes, lengths, strict=True))),
        centred=Covariance(left1, left2, *num.angle(cosine), apart(*rest)),
    )
