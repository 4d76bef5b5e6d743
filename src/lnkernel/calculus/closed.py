r"""Duals in closed form, at vectors of any length. `lnkernel.calculus.forms` has the formulas.

An activation is the orthogonal sum of its mean feature, its odd part and the rest, its even part. The kernels of these
parts, written in $|\rho|$, have positive Taylor coefficients. So each part has a well-conditioned angle, which
`lnkernel.calculus.twin` gives to all its digits, and `orthogonal_sum` puts them together.

With a noise of variance $s^2$ on every coordinate, lengths enter by $\alpha = r/\sqrt{q + s^2}$ and
$\beta = s/\sqrt{q + s^2}$, of which nothing overflows, and pairs by $a = \alpha_1\alpha_2$, $x = a\rho$ and
$y^2 = 1 - x^2 = \beta_1^2 + \alpha_1^2\beta_2^2 + 4a^2wz$.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length, orthogonal_sum
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.calculus.twin import Elementary, OfTwins, Twin
from lnkernel.check.plain import known_zero


class Side(NamedTuple):
    """One input, by its length: r, alpha and beta."""

    r: Any
    alpha: Any
    beta: Any


class Pair(NamedTuple):
    """Two inputs and the angle between them; all are plain numbers, or all are twins."""

    first: Side
    second: Side
    apart: Any  # r1 - r2
    w: Any
    z: Any
    c: Any

    @property
    def product(self) -> Any:
        return self.first.alpha * self.second.alpha

    def cosine_square(self) -> Any:
        """y² = 1 - (a rho)², a sum of positive terms."""
        one, two, a = self.first, self.second, self.product
        own = one.beta * one.beta + (one.alpha * one.alpha) * (two.beta * two.beta)
        return own + (a * a) * (4 * (self.w * self.z))


Ends = tuple[Number, Number]


class Own(NamedTuple):
    """What is known of one input by itself, to more digits than its pairs are computed with."""

    square: Number  # E phi²
    variance: Number  # of phi
    # From what gives the bare slope of the input and itself to f, of which f² times that is q E phi'²/E phi²,
    # whatever the rounding errors of the formula of the slope are there; and half of what the rounded product still
    # lacks, relatively. So near the diagonal these errors do not add up from layer to layer.
    calibrate: Callable[[Callable[[], Number]], tuple[Number, Number | None]]


class Form:
    r"""The formulas of one activation, each a method. What it lacks is never asked for.

    A part's kernel comes without `scale`, a factor of each input: $E = \sqrt{scale_1 scale_2}\,kernel$.
    """

    noise: float = 1.0  # s²
    vanishes: bool = True  # at 0
    has_odd: bool = True
    has_even: bool = True
    has_mean: bool = True
    odd_is_linear: bool = False  # the odd part is u/2, which changes no angle
    by_cosine: bool = (
        True  # the angle enters by rho and wz alone, so that both kernels hold for rho < 0 as well
    )

    def scale(self, num: Arithmetic, side: Side) -> Number:
        return num.real(1.0)

    def mean(self, num: Arithmetic, side: Side) -> Number:
        r"""$E\,\phi$."""
        raise NotImplementedError

    def odd(self, of: Elementary, pair: Pair) -> Any:
        """The kernel of the odd part, for rho >= 0."""
        raise NotImplementedError

    def even(self, of: Elementary, pair: Pair) -> Any:
        """The kernel of the even part without its mean, for rho >= 0."""
        raise NotImplementedError

    def refine(self, num: Arithmetic, pair: Pair, odd: bool, w: Number, c: Number) -> Number:
        """w' of a part for rho >= 0, from w' and its cosine, where the kernels of both inputs differ too much."""
        return w

    def derivative(self, num: Arithmetic, pair: Pair) -> Number:
        r"""$E[\phi'(u)\phi'(v)]$."""
        raise NotImplementedError

    def bare_slope(self, num: Arithmetic, pair: Pair) -> Number:
        r"""$r_1 r_2\,E[\phi'(u)\phi'(v)]$ but for a factor of each input, its `slope_factor`."""
        return self.derivative(num, pair)

    def slope_factor(self, num: Arithmetic, side: Side) -> Number:
        return side.r

    def euler(self, num: Arithmetic, pair: Pair, lengths: Ends) -> Number:
        r"""$E[u\phi'(u)\,v\phi'(v)]/(r_1' r_2')$."""
        raise NotImplementedError


class Inputs(NamedTuple):
    """A pair, with what is known of its lengths."""

    pair: Pair
    alphas_apart: Number
    betas_apart: Number


def closed_dual(
    form: Form, cov: Covariance, num: Arithmetic, own: tuple[Own, Own] | None = None
) -> Dual:
    """The dual of an activation with these formulas; and with lengths and growths from elsewhere, if there are any."""
    given = read(form, cov, num)
    pair = given.pair
    parts = []
    if form.has_odd:
        parts.append(
            _linear(num, cov) if form.odd_is_linear else _part(num, form, True, given, cov)
        )
    if form.has_even:
        parts.append(_part(num, form, False, given, cov))
    centred = parts[0] if len(parts) == 1 else orthogonal_sum(num, parts)[0]
    centred = _with_cosine(num, centred)
    if own is not None:
        centred = with_squares(centred, own[0].variance, own[1].variance)
    total, mean = centred, None
    if form.has_mean:
        means = form.mean(num, pair.first), form.mean(num, pair.second)
        line = _line(num, form, means, cov)
        total = orthogonal_sum(num, [centred, line])[0]
        total = _with_cosine(num, total)
        if own is not None:
            total = with_squares(total, own[0].square, own[1].square)
        one, two = (
            num.divide(m, num.sqrt(side.q))
            for m, side in zip(means, (total.first, total.second), strict=True)
        )
        mean = Mean(one, two, line.e, Both(*_shares(num, centred, total)))
    return assemble(form, num, pair, total, mean, centred, own)


def _with_cosine(num: Arithmetic, cov: Covariance) -> Covariance:
    """The same pair with c = 1 - 2w where that does not cancel: then no error adds up from layer to layer."""
    return dataclasses.replace(cov, c=num.where(cov.w < 0.25, 1 - 2 * cov.w, cov.c))


def with_squares(cov: Covariance, one: Number, two: Number) -> Covariance:
    """The same pair with these squared lengths, which differ from its own by rounding errors alone."""
    first, second = (
        dataclasses.replace(side, q=q) for side, q in ((cov.first, one), (cov.second, two))
    )
    return cov.with_lengths(first, second, cov.e)


def _shares(num: Arithmetic, part: Covariance, whole: Covariance) -> Ends:
    one, two = (
        num.sqrt(num.divide(x.q, y.q))
        for x, y in ((part.first, whole.first), (part.second, whole.second))
    )
    return one, two


def assemble(
    form: Form,
    num: Arithmetic,
    pair: Pair,
    total: Covariance,
    mean: Mean | None,
    centred: Covariance,
    own: tuple[Own, Own] | None = None,
) -> Dual:
    """The dual of images with these covariances."""
    lengths = num.sqrt(total.first.q), num.sqrt(total.second.q)
    return Dual(
        total=total,
        mean=mean,
        slope=_slope(form, num, pair, lengths, own),
        euler=lambda: form.euler(num, pair, lengths),
        derivative=lambda: (form.derivative(num, pair),),
        centred=centred,
    )


def _slope(
    form: Form, num: Arithmetic, pair: Pair, lengths: Ends, own: tuple[Own, Own] | None
) -> Number:
    bare, sides = form.bare_slope(num, pair), (pair.first, pair.second)
    if own is None:
        one, two = (
            num.divide(form.slope_factor(num, side), r)
            for side, r in zip(sides, lengths, strict=True)
        )
        return one * bare * two
    (one, rest1), (two, rest2) = (
        each.calibrate(partial(own_bare_slope, form, num, side))
        for side, each in zip(sides, own, strict=True)
    )
    slope = one * bare * two
    return slope if rest1 is None else slope + slope * (rest1 + rest2)


def own_bare_slope(form: Form, num: Arithmetic, side: Side) -> Number:
    """That of the input and itself."""
    return form.bare_slope(num, equal_pair(side))


def equal_pair(side: Side) -> Pair:
    """The pair of one input and itself."""
    return Pair(side, side, 0.0, 0.0, 1.0, 1.0)


def side_of(form: Form, num: Arithmetic, q: Number) -> Side:
    """An input of this squared length."""
    spread = num.real(form.noise)
    soft = num.softened(q, spread)
    return Side(num.sqrt(q), soft.ratio, num.divide(num.sqrt(spread), soft.norm))


def read(form: Form, cov: Covariance, num: Arithmetic) -> Inputs:
    """The numbers that the formulas are made of."""
    one, two = (side_of(form, num, length.q) for length in (cov.first, cov.second))
    if known_zero(cov.e):
        zero = cov.e
        return Inputs(Pair(one, two, zero, cov.w, cov.z, cov.c), zero, zero)
    if cov.e is None:
        alphas, apart = one.alpha - two.alpha, one.r - two.r
    else:
        crossed = one.alpha * two.beta + one.beta * two.alpha
        alphas = num.divide(cov.e * (crossed * crossed), one.alpha + two.alpha)
        apart = cov.e * (one.r + two.r)
    betas = -num.divide(alphas * (one.alpha + two.alpha), one.beta + two.beta)
    return Inputs(Pair(one, two, apart, cov.w, cov.z, cov.c), alphas, betas)


def _linear(num: Arithmetic, cov: Covariance) -> Covariance:
    quarter = num.real(0.25)
    first, second = (dataclasses.replace(x, q=quarter * x.q) for x in (cov.first, cov.second))
    return cov.with_lengths(first, second, cov.e)


def _line(num: Arithmetic, form: Form, means: Ends, cov: Covariance) -> Covariance:
    """The mean features: two vectors on one line, in one direction, because their signs are equal."""
    alive = (cov.first.live, cov.second.live) if form.vanishes else (True, True)
    first, second = (Length(m * m, live) for m, live in zip(means, alive, strict=True))
    return Covariance(first, second, 0.0, 1.0, 1.0, _difference(num, first, second, cov), True)


def angle_from_gaps(num: Arithmetic, ends: Any, both: Number, gaps: Any) -> Ends:
    r"""w' and the cosine behind a part. With its kernel $k$ and $d_i = k_{ii} - k_{12}$,

        w' = (k_12 (d_1 + d_2) + d_1 d_2)/(2 sqrt(k_11 k_22) (sqrt(k_11 k_22) + k_12)),

    in which errors of the lengths cancel to second order where the inputs are close. Both $k_{ii}$ should be of one
    size: powers of the lengths belong to `Form.scale`.
    """
    root = num.sqrt(ends[0]) * num.sqrt(ends[1])
    least = both * (gaps[0] + gaps[1]) + gaps[0] * gaps[1]
    return 0.5 * num.divide(num.divide(least, root), root + both), num.divide(both, root)


def _part(num: Arithmetic, form: Form, odd: bool, given: Inputs, cov: Covariance) -> Covariance:
    """The lengths and the angle of one part, the odd or the even one."""
    kernel = form.odd if odd else form.even
    acute = cov.acute
    pair = given.pair
    near = pair._replace(
        w=num.where(acute, pair.w, pair.z),
        z=num.where(acute, pair.z, pair.w),
        c=num.where(acute, pair.c, -1 * pair.c),
    )
    of = OfTwins(num)
    one = kernel(of, _equal_and_not(near, given, first=True))
    two = kernel(of, _equal_and_not(near, given, first=False))
    w, c = angle_from_gaps(num, (one.one, two.one), one.other, (one.gap, two.gap))
    w = form.refine(num, near, odd, w, c)
    z = 1 - w
    if odd:
        w, z = num.where(acute, w, z), num.where(acute, z, w)
        c = num.where(acute, c, -1 * c)
    first, second = (
        Length(form.scale(num, side) * end.one, old.live)
        for side, end, old in ((pair.first, one, cov.first), (pair.second, two, cov.second))
    )
    return Covariance(first, second, w, z, c, _difference(num, first, second, cov), not odd)


def _difference(num: Arithmetic, first: Length, second: Length, before: Covariance) -> Number:
    if known_zero(before.e):
        return before.e
    return num.length_difference(first.q, second.q)


def _equal_and_not(pair: Pair, given: Inputs, first: bool) -> Pair:
    """One input with itself, and the same input with the other, as twins."""
    own, other = (pair.first, pair.second) if first else (pair.second, pair.first)
    zero = 0.0 * pair.w
    sign = 1 if first else -1
    fixed = Side(*(Twin(x, x, zero) for x in own))
    gaps = sign * pair.apart, sign * given.alphas_apart, sign * given.betas_apart
    moving = Side(*(Twin(x, y, gap) for x, y, gap in zip(own, other, gaps, strict=True)))
    return Pair(
        fixed,
        moving,
        Twin(zero, gaps[0], -1 * gaps[0]),
        Twin(zero, pair.w, -1 * pair.w),
        Twin(1 + zero, pair.z, pair.w),
        Twin(1 + zero, pair.c, 2 * pair.w),
    )
