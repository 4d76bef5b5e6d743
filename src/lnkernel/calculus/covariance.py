r"""The covariance of one pair of states, without cancellation.

Two inputs, at some place in a network, have states $u$ and $v$: vectors of lengths
$r_1 = \sqrt{E u^2}$, $r_2 = \sqrt{E v^2}$ and angle $\theta$. The textbook carries
$q_1 = r_1^2$, $q_2 = r_2^2$ and $K = r_1 r_2 \cos\theta$; but where two inputs are close,
$1 - K/\sqrt{q_1 q_2}$ is then rounding noise, and a ReLU's NTK depends on its square
root. Here every small quantity is carried itself:

* $w = \sin^2(\theta/2)$ and $z = \cos^2(\theta/2)$, both to full relative accuracy,
* $c = \cos\theta$, to full relative accuracy wherever all contributions are positive,
* $e = (r_1 - r_2)/(r_1 + r_2)$, the relative difference of the lengths; None where the
  states are so far apart that the rounded lengths tell it.

Squared lengths may be infinite: nothing else depends on their size, except next to a bias or
an eps, where the limit is exact.
Every operation below is a sum of non-negative terms in $w$, $z$ and the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeVar

from lnkernel.calculus.arithmetic import Arithmetic, Cosines, Number, Truth
from lnkernel.check.plain import known_zero

T = TypeVar("T")


@dataclass(frozen=True)
class Length:
    """The squared length q of one state; `live` is False for an exact zero vector.

    q is carried and not its root because layers multiply it by simple numbers: a ReLU
    by exactly 1/2, where a rounded root of 1/2 would lean the same way in every layer.
    """

    q: Number
    live: Truth = True

    def masked(self, num: Arithmetic, q: Number) -> Length:
        """Squared length `q` where this state is not zero, and 0 where it is."""
        return Length(q if self.live is True else num.where(self.live, q, 0.0), self.live)


@dataclass(frozen=True)
class Covariance:
    """Two states: their lengths and the angle between them."""

    first: Length
    second: Length
    w: Number
    z: Number
    c: Number
    e: Number
    never_obtuse: bool = False  # known before any number is: behind a ReLU, for example

    @property
    def acute(self) -> Truth:
        return True if self.never_obtuse else self.w <= self.z

    def times_lengths(self, num: Arithmetic, x: Number) -> Number:
        """r1 r2 x; with x = c it is K = E uv."""
        return num.sqrt(self.first.q) * (num.sqrt(self.second.q) * x)

    def without_stale_angle(self, num: Arithmetic) -> Covariance:
        r"""Where one state is the zero vector, and the other is not, a right angle.

        An activation's derivative at 0 is so taken as the mean of the two one-sided ones.
        """
        if self.first.live is True and self.second.live is True:
            return self
        one, two = num.as_number(self.first.live), num.as_number(self.second.live)
        stale = one * (1 - two) + two * (1 - one)
        w, z = (x + stale * (0.5 - x) for x in (self.w, self.z))
        return dataclasses.replace(self, w=w, z=z, c=self.c * (1 - stale))

    def each(self, make: Callable[[Length], T]) -> tuple[T, T]:
        """What `make` gives of both lengths; where they are one and the same, it is asked once."""
        first = make(self.first)
        return first, first if self.second is self.first else make(self.second)

    def with_lengths(self, first: Length, second: Length, e: Number) -> Covariance:
        return dataclasses.replace(self, first=first, second=second, e=e)


@singledispatch
def with_kept_angle(num: Arithmetic, cov: Covariance) -> Covariance:
    """The same pair, whose angle took many steps and is read by several others: a number system whose compiler would
    repeat the steps for each of them may prevent that."""
    return cov


def scaled(num: Arithmetic, cov: Covariance, factor: Number) -> Covariance:
    """Both states multiplied by one number."""
    square = num.squared(factor)
    first, second = cov.each(lambda length: Length(square * length.q, length.live))
    return cov.with_lengths(first, second, cov.e)


def with_bias(num: Arithmetic, cov: Covariance, bias: Number) -> tuple[Covariance, Number]:
    r"""Both states with one more coordinate, `bias`, orthogonal to the others; and the share
    $\alpha_1 \alpha_2$ of the old part in the new product of lengths.

    With $\alpha = r/r'$ and $\beta = b/r'$ for each input, $S = \alpha_1\beta_2 + \beta_1\alpha_2$
    and the tilt $\kappa = \frac12 (eS)^2/(1 + \alpha_1\alpha_2 + \beta_1\beta_2)$, which is
    $\frac12(1 - \alpha_1\alpha_2 - \beta_1\beta_2)$ without its cancellation:

        w' = a1 a2 w + kappa,   z' = a1 a2 z + b1 b2 + kappa,   c' = a1 a2 c + b1 b2,
        e' = e (S/(b1 + b2))^2.

    Where angles may be rounded, w' and z' are taken from c'.
    """
    if known_zero(bias):
        return cov, 1.0
    one, two = cov.each(lambda length: num.cosines(length.q, bias))
    old, new = one.leg * two.leg, one.other * two.other
    if one.rest is not None:
        old = old + old * (one.rest + two.rest)
    live = cov.each(
        lambda length: True if length.live is True else num.either(length.live, bias > 0)
    )
    first = Length(one.square, live[0])
    second = first if two is one else Length(two.square, live[1])
    share = old if one.share is None else one.share
    if known_zero(cov.w) and known_zero(cov.e):  # an input and itself: the angle is 0, exactly
        one_and_same = 1 - cov.w
        angle = cov.w, one_and_same, one_and_same
        itself = Covariance(first, second, *angle, cov.e, cov.never_obtuse)
        return itself, share
    if known_zero(cov.e):
        tilt, e = 0.0, 0.0
    elif cov.e is None:
        (h1, k1), (h2, k2) = _halve(num, one), _halve(num, two)
        sine = k1 * h2 - h1 * k2
        tilt, e = sine * sine, None
    else:
        crossed = one.leg * two.other + one.other * two.leg
        sine = cov.e * crossed
        tilt = 0.5 * (sine * sine) * num.divide(1.0, 1.0 + old + new)
        shrink = num.divide(crossed, one.other + two.other)
        e = cov.e * (shrink * shrink)
    if num.rounds_angles:
        c = old * cov.c + new
        return Covariance(first, second, 0.5 - 0.5 * c, 0.5 + 0.5 * c, c, e), share
    w = old * cov.w + tilt
    if cov.never_obtuse:
        return Covariance(first, second, w, 1 - w, 1 - 2 * w, e, True), share
    # c' = 1 - 2w' where that does not cancel: then no error adds up from layer to layer
    c = num.where(w < 0.25, 1 - 2 * w, old * cov.c + new)
    return Covariance(first, second, w, old * cov.z + (new + tilt), c, e), share


def _halve(num: Arithmetic, angle: Cosines) -> tuple[Number, Number]:
    """Cosine and sine of half the angle."""
    cosine = num.sqrt(0.5 * (1 + angle.leg))
    return cosine, 0.5 * angle.other / cosine


def normalised(num: Arithmetic, cov: Covariance, eps: Number) -> Covariance:
    r"""Both states divided by $g = \sqrt{r^2 + \epsilon}$: the angle stays.

    With $\alpha = r/g$: $q' = \alpha^2$ and
    $e' = e\,\epsilon\,\big((\alpha_1/g_2 + \alpha_2/g_1)/(\alpha_1 + \alpha_2)\big)^2$.
    With $\epsilon = 0$ every length is 1, except that a zero vector stays zero.
    """
    if known_zero(eps):
        if cov.first.live is True and cov.second.live is True:
            unit = Length(1.0)
            return cov.with_lengths(unit, unit, 0.0)
        first, second = cov.each(lambda length: length.masked(num, 1.0))
        e = None if cov.e is None else num.as_number(first.q) - num.as_number(second.q)
        return cov.with_lengths(first, second, e)
    one, two = cov.each(lambda length: num.softened(length.q, eps))
    first = cov.first.masked(num, one.ratio * one.ratio)
    second = cov.second.masked(num, two.ratio * two.ratio)
    if cov.e is None:
        return cov.with_lengths(first, second, None)
    crossed = num.divide(one.ratio, two.norm) + num.divide(two.ratio, one.norm)
    shrink = num.divide(crossed, one.ratio + two.ratio)
    return cov.with_lengths(first, second, cov.e * (eps * shrink * shrink))


def orthogonal_sum(num: Arithmetic, parts: Sequence[Covariance]) -> tuple[Covariance, list[Number]]:
    r"""The sum of independent (orthogonal) parts, and each one's share $a_i$ of the product
    of lengths.

    With $\alpha_{i} = r_i/r$ per input, $a_i = \alpha_{i1}\alpha_{i2}$, and for each pair of
    parts the sine $s_{ij} = \alpha_{i1}\alpha_{j2} - \alpha_{j1}\alpha_{i2}
    = (\alpha_{i1}\alpha_{j2} + \alpha_{j1}\alpha_{i2})\,(e_i - e_j)/(1 - e_i e_j)$:

        kappa = 1/2 sum_{i<j} s_ij^2 / (1 + sum a_i),
        w' = sum a_i w_i + kappa,   z' = sum a_i z_i + kappa,   c' = sum a_i c_i,
        e' = sum e_i ((r_i1 + r_i2)/(r_1 + r_2))^2.
    """
    first = _total_length(num, [part.first for part in parts])
    second = _total_length(num, [part.second for part in parts])
    cos1 = [num.sqrt(num.divide(part.first.q, first.q)) for part in parts]
    cos2 = [num.sqrt(num.divide(part.second.q, second.q)) for part in parts]
    shares = [x * y for x, y in zip(cos1, cos2, strict=True)]
    sines = 0.0
    for i, part in enumerate(parts):
        for j, other in enumerate(parts[:i]):
            straight, crossed = cos1[i] * cos2[j], cos1[j] * cos2[i]
            close = num.divide((straight + crossed) * (part.e - other.e), 1 - part.e * other.e)
            # where lengths differ much, the direct difference does not cancel
            apart = part.e * part.e + other.e * other.e > 0.25
            sine = num.where(apart, straight - crossed, close)
            sines = sines + sine * sine
    tilt = 0.5 * num.divide(sines, 1 + sum(shares))
    both = num.sqrt(first.q) + num.sqrt(second.q)
    e = 0.0
    for part in parts:
        part_of_both = num.divide(num.sqrt(part.first.q) + num.sqrt(part.second.q), both)
        e = e + part.e * (part_of_both * part_of_both)
    w, z, c = (
        sum(a * getattr(p, name) for a, p in zip(shares, parts, strict=True)) for name in "wzc"
    )
    acute = all(part.never_obtuse for part in parts)
    return Covariance(first, second, w + tilt, z + tilt, c, e, acute), shares


def _total_length(num: Arithmetic, lengths: Sequence[Length]) -> Length:
    total = lengths[0]
    for length in lengths[1:]:
        live = True
        if total.live is not True and length.live is not True:
            live = num.either(total.live, length.live)
        total = Length(total.q + length.q, live)
    return total
