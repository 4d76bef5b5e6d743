r"""GroupNorm's $\kappa_\nu$ of a ball."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from lnkernel.calculus import spherical as declared
from lnkernel.calculus.spherical import Spherical
from lnkernel.evaluate.balls.arithmetic import Balls
from lnkernel.evaluate.balls.numbers import (
    GUARD,
    Ball,
    elementwise,
    exact,
    lower_end,
    upper_end,
    working_precision,
)


def spherical(freedom: int, bits: int) -> Callable[[arb], tuple[arb, arb, arb]]:
    r"""m -> $1 - \kappa_\nu$, $\kappa_\nu$ and $\kappa_\nu'$ at $\rho = 1 - 2m$, for m in [0, 1].

    $\kappa_\nu$ is odd and increasing, $\kappa_\nu'$ even and increasing in $|\rho|$.
    """

    def at(m: arb) -> tuple[arb, arb, arb]:
        low, high = max(lower_end(m), arb(0)), min(upper_end(m), arb(1))
        one, two = (_sphere(freedom, end, bits) for end in (low, high))
        gap, value, slope = (x.union(y) for x, y in zip(one, two, strict=True))
        if low < 0.5 and high > 0.5:
            slope = slope.union(_sphere(freedom, arb(0.5), bits)[2])
        return gap, value, slope

    return at


@lru_cache(maxsize=4096)
def sphere_top(freedom: int, bits: int) -> tuple[arb, arb]:
    with working_precision(bits + GUARD):
        root = exact(Fraction(freedom + 1, 2)).gamma() / exact(Fraction(freedom, 2)).gamma()
        slope = arb(0) if freedom == 1 else exact(Fraction(freedom - 1, freedom - 2))
        return 2 * root * root / freedom, slope


def _sphere(freedom: int, m: arb, bits: int) -> tuple[arb, arb, arb]:
    top = sphere_top(freedom, bits)[1]
    if m.is_zero() or m == 1:
        sign = 1 if m.is_zero() else -1
        return arb(1 - sign), arb(sign), top
    nearest = m if m < 0.5 else 1 - m
    extra = -2 * int(nearest.log().lower().mid().floor().fmpz())
    with working_precision(bits + GUARD + extra):
        factor = sphere_top(freedom, bits + extra)[0]
        rho, half = 1 - 2 * m, arb(0.5)
        square, third = rho * rho, exact(Fraction(freedom, 2)) + 1
        value = factor * rho * square.hypgeom_2f1(half, half, third)
        slope = arb(0) if freedom == 1 else factor * square.hypgeom_2f1(half, half + 1, third)
        return 1 - value, value, slope


@declared.spherical.register
def _(num: Balls, freedom: int, m: Ball) -> Spherical:
    return Spherical(*_of_arrays(freedom, num.bits)(m))


@lru_cache(maxsize=64)
def _of_arrays(freedom: int, bits: int) -> Callable[[Ball], tuple[Ball, Ball, Ball]]:
    return elementwise(spherical(freedom, bits), 1, 3)
