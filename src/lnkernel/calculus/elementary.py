"""Elementary functions that closed forms of activations are made of, one version for each number system."""

from __future__ import annotations

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
def falling(num: Arithmetic, x: Number) -> Number:
    """exp(-x) for x >= 0."""
    raise NotImplementedError


@special
def fallen(num: Arithmetic, x: Number) -> Number:
    """1 - exp(-x), without its cancellation."""
    raise NotImplementedError


@special
def sharper(num: Arithmetic, by_rule: Number, direct: Number) -> Number:
    """the better one of two expressions for a small difference."""
    raise NotImplementedError
