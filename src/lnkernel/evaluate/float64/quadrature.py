r"""Integrals over pairs, in float64, for any angle and for lengths from 0 to 1e150.

Let $a \ge b$ be the roots of $w$ and $z$. Then $u = r_1(ax + by)$ and $v = \pm r_2(ax - by)$.
For each $y$ the integral over $x$ is split where $u$ or $v$ crosses a kink, and graded around these places. What is
left is a function of $y$ that bends only where a kink of $u$ meets one of $v$; there the integral over $y$ is
split and graded.
No narrow scale is left, however small the angle and however long the inputs. A function that is straight far out is
graded up to there only, around both inputs: the panels beyond resolve the Gaussian, and that is all there is.

The small angle is an integral over a square, $w' = \frac14 E\,(\phi(u)/r_1' - \phi(v)/r_2')^2$: errors of 1e-16 in the
difference are errors of $10^{-16}\sqrt{w'}$ in $w'$, as much as a ReLU behind it can bear.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.quadrature import Grading, Table, graded_quadrature
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.angle_table import look_up
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.closed_pairs import closed_pair, own_numbers
from lnkernel.evaluate.float64.functions import Function, density, function_of
from lnkernel.evaluate.float64.gaps import relative_difference
from lnkernel.evaluate.float64.hermite_features import SHORTEST
from lnkernel.evaluate.float64.known_pairs import known_pairs
from lnkernel.evaluate.float64.on_diagonal import dual_of_equals
from lnkernel.evaluate.float64.panels import (
    NODES,
    REACH,
    WEIGHTS,
    Marks,
    gaussian_rule,
    longest_for,
    marks_of,
)
from lnkernel.evaluate.float64.resolution import FASTEST, demand_resolved

LEAST_SPREAD = 2.0**-4  # the spreads of two inputs beside their lengths


class Side(NamedTuple):
    """One input: the length of phi, E phi - phi(0), and the length of phi less its mean."""

    size: Array
    shift: Array
    spread: Array


class Places(NamedTuple):
    """What the integrals of a pair depend on: both inputs, their lengths, and the roots of w and z."""

    one: Side
    two: Side
    r1: Array
    r2: Array
    root_w: Array
    root_z: Array


class Pair(NamedTuple):
    """Expectations of a pair, over the product of the lengths behind the activation."""

    product: Array  # E phi(u) phi(v)
    w: Array
    z: Array
    centred_w: Array
    centred_z: Array
    slope: Array  # r1 r2 E phi'(u) phi'(v)
    euler: Any  # E u phi'(u) v phi'(v), or what gives it


@graded_quadrature.register
def _(num: Float64, layer: Elementwise, cov: Covariance, grading: Grading, table: Table) -> Dual:
    # a finer grading asks for integrals, to compare others with
    known = None
    if grading.tables and grading.fineness == 1 and num.xp is np:
        known = known_pairs(layer)
    rule = None
    if known is not None and known.moments is not None:
        rule = partial(known.moments, grading.longest)
    if num.equal and (itself := dual_of_equals(num, layer, cov, rule=rule)) is not None:
        return itself
    if known is not None and known.for_all and num.quick:
        num.prefer_care()
    if num.quick and not table and grading.fineness == 1 and closed_pair(layer) is not None:
        return _quickly(num, layer, cov, grading.longest)
    if known is not None and not num.quick and np.ndim(cov.w) == 1:
        return known.dual(cov, grading.longest)
    phi = function_of(layer)
    lengths = cov.each(lambda length: num.sqrt(length.q))
    if table and np.ndim(lengths[0]) == np.ndim(lengths[1]) == 0:
        pair = Pair(*look_up(table, cov.w, cov.z, num.sqrt))
        side = _side_of(table, phi)
        return _assemble(num, phi, cov, lengths, (side, side), pair)
    if not jax.tree.leaves(layer):  # all of it is known, and nobody may have looked at it yet
        demand_resolved(layer, grading.levels)
    r1, r2 = (jnp.maximum(r, SHORTEST) for r in lengths)
    one, two = (sides_of(phi, r, grading, num.quick) for r in (r1, r2))
    w, z = (jnp.asarray(v, jnp.float64) for v in (cov.w, cov.z))
    if num.quick:  # nothing is quick here: every pair is left to the careful way
        pair = Pair(*[jnp.full(jnp.broadcast_shapes(w.shape, r1.shape, r2.shape), jnp.nan)] * 7)
    else:
        places = Places(one, two, r1, r2, num.sqrt(w), num.sqrt(z))
        pair = integrate_pairs(phi, grading, places)
    return _assemble(num, phi, cov, (r1, r2), (one, two), pair)


def _quickly(num: Float64, layer: Elementwise, cov: Covariance, longest: float) -> Dual:
    """By a closed form; the angles from their cosines, which are NaN where too few digits would be left of them."""
    form = closed_pair(layer)
    assert form is not None
    xp = num.xp
    r1, r2 = (num.sqrt(side.q) for side in (cov.first, cov.second))
    first, second = (num.of_input(partial(own_numbers, layer, form), r) for r in (r1, r2))
    found = form.of_pair(first, second, cov.w, cov.z, longest)
    phi = function_of(layer)
    one, two = (
        Side(
            xp.sqrt(each.moments.square),
            each.moments.mean - phi.at_zero,
            xp.sqrt(each.moments.variance),
        )
        for each in (first, second)
    )
    size, spread = one.size * two.size, one.spread * two.spread
    product = xp.where(found.sure, found.product, xp.nan)
    w, z, cosine = num.angle(product / size)
    covariance = product - first.moments.mean * second.moments.mean
    # beside a large mean the rounding errors of the product are those of more than the covariance
    centred = num.angle(xp.where(spread >= LEAST_SPREAD * size, covariance / spread, xp.nan))
    pair = Pair(
        cosine,
        w,
        z,
        centred[0],
        centred[1],
        slope=r1 * r2 * found.slopes / size,
        euler=lambda: found.euler() / size,
    )
    return _assemble(num, phi, cov, (r1, r2), (one, two), pair)


def _side_of(table: Table, phi: Function) -> Side:
    """Of the length that the table is for."""
    xp = namespace.of(*table[-1])
    mean, even, odd = map(xp.asarray, table[-1])
    square = even + odd
    return Side(xp.sqrt(square + mean * mean), mean - phi.at_zero, xp.sqrt(square))


def _assemble(
    num: Float64,
    phi: Function,
    cov: Covariance,
    lengths: tuple[Array, Array],
    sides: tuple[Side, Side],
    pair: Pair,
) -> Dual:
    (r1, r2), (one, two), xp = lengths, sides, namespace.of(pair.w)
    alive = [_stays_alive(num, phi, side.live) for side in (cov.first, cov.second)]
    first, second = (
        Length(xp.square(side.size), live).masked(num, xp.square(side.size))
        for side, live in zip(sides, alive, strict=True)
    )
    rest1, rest2 = (
        Length(xp.square(side.spread), old.live).masked(num, xp.square(side.spread))
        for side, old in ((one, cov.first), (two, cov.second))
    )
    mean1, mean2 = (side.shift + phi.at_zero for side in sides)
    return Dual(
        total=Covariance(
            first, second, pair.w, pair.z, pair.product, relative_difference(one.size, two.size)
        ),
        mean=Mean(
            mean1 / one.size,
            mean2 / two.size,
            relative_difference(xp.abs(mean1), xp.abs(mean2)),
            Both(one.spread / one.size, two.spread / two.size),
        ),
        slope=pair.slope,
        euler=pair.euler,
        derivative=lambda: (pair.slope, one.size / r1, two.size / r2),
        centred=Covariance(
            rest1,
            rest2,
            pair.centred_w,
            pair.centred_z,
            pair.centred_z - pair.centred_w,
            relative_difference(one.spread, two.spread),
        ),
    )


def _stays_alive(num: Float64, phi: Function, live: Any) -> Any:
    """Whether phi of a state is not zero: where the state is not, or phi(0) is not."""
    return live if phi.vanishes or live is True else num.either(live, phi.at_zero != 0)


# ---------------------------------------------------------------- single inputs


def sides_of(phi: Function, r: Array, grading: Grading, without_numbers: bool = False) -> Side:
    """The sides of inputs with lengths r; NaN where they are longer than the grading reaches, or phi grows too fast."""
    if without_numbers and r.ndim:
        return Side(*[jnp.full(r.shape, jnp.nan)] * 3)
    marks = marks_of(phi, grading)
    x, weights = gaussian_rule(marks.all / r[..., None], marks.coarse)
    values = phi.rest(r[..., None] * x)
    shift = jnp.sum(weights * values, axis=-1)
    spread = jnp.sqrt(jnp.sum(weights * jnp.square(values - shift[..., None]), axis=-1))
    square = jnp.square(spread) + jnp.square(shift + phi.at_zero)
    ends = jnp.square(phi(r[..., None] * jnp.array([-REACH, REACH]))) * density(jnp.array(REACH))
    longest = jnp.inf if grading.straight_beyond else longest_for(phi, grading.levels)
    known = (r <= longest) & (jnp.max(ends, axis=-1) <= FASTEST * square)
    return Side(jnp.where(known, jnp.sqrt(square), jnp.nan), shift, spread)


# ---------------------------------------------------------------- pairs


def integrate_pairs(phi: Function, grading: Grading, places: Places) -> Pair:
    """The expectations of all pairs, of any shape, one after the other: each takes some 1e4 nodes or more."""
    marks = marks_of(phi, grading)
    parts, structure = jax.tree.flatten(places)
    parts = jnp.broadcast_arrays(*parts)
    shape = parts[0].shape

    @partial(jax.checkpoint, prevent_cse=False)  # derivatives keep only one pair in memory
    def through(pair: Places) -> Pair:
        return _integrate(phi, marks, pair)

    found = lax.map(through, jax.tree.unflatten(structure, map(jnp.ravel, parts)))
    return Pair(*(part.reshape(shape) for part in found))


def _integrate(phi: Function, marks: Marks, pair: Places) -> Pair:
    sign = jnp.where(pair.root_w <= pair.root_z, 1.0, -1.0)  # the sign of the cosine
    a, b = jnp.maximum(pair.root_w, pair.root_z), jnp.minimum(pair.root_w, pair.root_z)

    def at(y: Array) -> Pair:
        return _over_x(phi, marks, pair, a, b * y, sign)

    # at angle 0 nothing depends on y, and all splits may lie at 0
    splits = _meetings(marks, pair.r1, sign * pair.r2) / jnp.where(b > 0, b, 1.0)
    y, weights = gaussian_rule(splits, marks.coarse)
    return jax.tree.map(lambda values: jnp.sum(weights * values), jax.vmap(at)(y))


def _meetings(marks: Marks, r1: Array, r2: Array) -> Array:
    """b y where kinks of u and v meet, at u = r1(ax + by) and v = r2(ax - by); and the grading around it, from the
    scale on which the longer input bends. If it does not reach the scale of the shorter one, it begins there again."""
    places = jnp.ravel(marks.centres[:, None] / r1 - marks.centres / r2)
    longer, shorter = jnp.maximum(r1, jnp.abs(r2)), jnp.minimum(r1, jnp.abs(r2))
    scales = (2 / longer, 2 / shorter) if marks.straight_beyond else (2 / longer,)
    distances = jnp.concatenate([marks.distances * scale for scale in scales])
    return 0.5 * Marks(places, distances).all


def _over_x(phi: Function, marks: Marks, pair: Places, a: Array, by: Array, sign: Array) -> Pair:
    """The integral over x. Places are given by their distances from the zeros of u and of v, which keep
    their digits where the inputs are long and the kinks close to these zeros. Both are sorted, because many places
    may be one and the same x in float64, and these stay in their order."""
    one, two, r1, r2, *_ = pair
    splits, zero = marks.all, by / a
    from_u, from_v = splits / (r1 * a), jnp.sort(sign * splits) / (r2 * a)
    from_u, from_v = (
        jnp.concatenate([from_u, from_v + 2 * zero, marks.coarse + zero]),
        jnp.concatenate([from_u - 2 * zero, from_v, marks.coarse - zero]),
    )
    x = from_u - zero
    inside = jnp.clip(x, -REACH, REACH)
    order = jnp.argsort(inside)
    from_u, from_v = (
        jnp.where(x == inside, place, inside + shift)[order]
        for place, shift in ((from_u, zero), (from_v, -zero))
    )
    near_u = _larger(from_u) < _larger(from_v)
    half = 0.5 * jnp.where(near_u, jnp.diff(from_u), jnp.diff(from_v))
    steps = half[:, None] * (1 + NODES)
    weights = half[:, None] * WEIGHTS * density(from_u[:-1, None] + steps - zero)
    u = r1 * a * (from_u[:-1, None] + steps)
    v = sign * r2 * a * (from_v[:-1, None] + steps)
    f, df = phi.with_slope(u)
    g, dg = phi.with_slope(v)
    p, q = (phi.at_zero + f) / one.size, (phi.at_zero + g) / two.size
    s, t = _over(f - one.shift, one.spread), _over(g - two.shift, two.spread)
    slopes = df * dg / (one.size * two.size)
    values = Pair(
        product=p * q,
        w=0.25 * jnp.square(p - q),
        z=0.25 * jnp.square(p + q),
        centred_w=0.25 * jnp.square(s - t),
        centred_z=0.25 * jnp.square(s + t),
        slope=r1 * r2 * slopes,
        euler=u * v * slopes,
    )
    return jax.tree.map(lambda value: jnp.sum(weights * value), values)


def _larger(places: Array) -> Array:
    """The larger of the distances at both ends of each panel."""
    size = jnp.abs(places)
    return jnp.maximum(size[:-1], size[1:])


def _over(x: Array, size: Array) -> Array:
    """x/size; of a constant function, which has no size, nothing is left."""
    return x / jnp.where(size > 0, size, 1.0)
