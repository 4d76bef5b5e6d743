"""Elementary functions that closed forms of activations are made of, one version for each number system."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.special import special


@special
def circle(num: Arithmetic) -> Number:
    """2 pi."""
    raise NotImplementedError


@special
def sine_and_cosine(num: Arithmetic, x: Number) -> tuple[Number, Number]:
    """the sine and the cosine of a hyperparameter."""
    raise NotImplementedError


@special
def arcsine(num: Arithmetic, sine: Number, cosine: Number) -> Number:
    """the angle between -π/2 and π/2 that has this sine and cosine, to full relative accuracy."""
    raise NotImplementedError


@special
def arcsine_ratio(num: Arithmetic, sine: Number, cosine: Number) -> Number:
    """the angle of `arcsine` over its sine, 1 where that is 0."""
    raise NotImplementedError


@special
def arcsine_ratio_gap(
    num: Arithmetic, one: Number, other: Number, gap: Number, by_rule: Number, direct: Number
) -> Number:
    """`arcsine_ratio` at one sine less that at another: one of two expressions for it, or a better one."""
    raise NotImplementedError


@special
def falling(num: Arithmetic, x: Number) -> Number:
    """exp(-x) for x >= 0."""
    raise NotImplementedError


@special
def fallen(num: Arithmetic, x: Number) -> Number:
    """1 - exp(-x), without its cancellation."""
    raise NotImplementedError


@special
def refine_wave(
    num: Arithmetic, omega: Number, pair: Any, odd: bool, w: Number, c: Number
) -> Number:
    """the angle between the images of two vectors under a sine: w, or a better one where lengths differ."""
    raise NotImplementedError


@special
def sharper(num: Arithmetic, by_rule: Number, direct: Number) -> Number:
    """the better one of two expressions for a small difference."""
    raise NotImplementedError


@singledispatch
def both_over(num: Arithmetic, x: Number, y: Number, by: Number) -> tuple[Number, Number]:
    """x/by and y/by; where speed counts more than the last digit, by one division."""
    return num.divide(x, by), num.divide(y, by)
