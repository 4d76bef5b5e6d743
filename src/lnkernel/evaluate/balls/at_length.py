"""What is known of an odd or even function at vectors of one length: computed when asked for, and remembered."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
from flint import acb, arb

from lnkernel.arch.elementwise import Elementwise
from lnkernel.errors import CertificateError
from lnkernel.evaluate.balls.analytic import Curve, analytic_of
from lnkernel.evaluate.balls.features import CHOICES, Features, features, likely_terms
from lnkernel.evaluate.balls.integrals import Moments, moments
from lnkernel.evaluate.balls.numbers import GUARD, lower_end, working_precision
from lnkernel.evaluate.balls.pair_series import Image, image_of_pairs

WIDEST = 2.0**-40  # of the NTK's series, relatively: the most that may be left out
MOST_BITS = 192  # of features: what the series leave out is more than a last bit beyond


@dataclass(frozen=True, eq=False)
class AtLength:
    """One function on Gaussian numbers of standard deviation r, a ball; 0 exactly, or above 0."""

    name: str
    curve: Curve
    odd: bool
    r: arb
    bits: int

    @property
    def vanishes(self) -> bool:
        return bool(self.r.is_zero())

    @property
    def precision(self) -> int:
        """Even functions are like r² where r is small, and their squares like r⁴."""
        small = 0 if self.vanishes else max(0.0, -math.log2(float(lower_end(self.r)) or 5e-324))
        return self.bits + GUARD + 4 * math.ceil(small)

    @cached_property
    def moments(self) -> Moments:
        if self.vanishes:
            return Moments(arb(0), arb(0), arb(0), arb(0))
        with working_precision(self.precision):
            return moments(self.curve, self.r, not self.odd)

    @cached_property
    def variance(self) -> arb:
        with working_precision(self.precision):
            return self.moments.variance

    @cached_property
    def features(self) -> Features:
        """With a remainder that is far below float64, or an error."""
        bits = min(self.bits, MOST_BITS)
        if likely_terms(self.curve, self.r, WIDEST) > CHOICES[-1]:
            raise self._refusal("leave more than 1e-12")
        with working_precision(self.precision + bits - self.bits):
            found = features(self.curve, self.r, self.odd, self.moments, 2.0 ** -(2 * bits / 3))
        if not found.left.slope <= WIDEST * self.moments.slope:
            raise self._refusal(f"leave {float(found.left.slope / self.moments.slope):.1e}")
        return found

    def _refusal(self, leave: str) -> CertificateError:
        return CertificateError(
            f"{self.name}: its inputs have a standard deviation of {float(self.r):.3g} for some x, for which "
            f"{CHOICES[-1]} Hermite polynomials {leave} of the NTK's series, too much for a certificate",
            "Put a LayerNorm without eps before it or scale the data down; kernels in float64 and "
            "sup_diagonal(certify=True) need no series",
        )

    @cached_property
    def image_with_itself(self) -> Callable[[arb, arb], Image]:
        with working_precision(self.precision):
            return image_of_pairs(self.features, self.features)


def image(one: AtLength, two: AtLength, m: arb, x: arb) -> Image:
    """The part's image of a pair with rho = x = 1 - 2m >= 0; nothing is known of a zero vector's angle."""
    if one.vanishes or two.vanishes:
        return Image(m, x, arb(0), arb(0))
    if one is two and m.is_zero():
        known = one.moments
        return Image(arb(0), arb(1), known.slope / one.variance, known.euler / one.variance)
    if one is two:
        return one.image_with_itself(m, x)
    with working_precision(max(one.precision, two.precision)):
        return image_of_pairs(one.features, two.features)(m, x)


def derivative(one: AtLength, two: AtLength, slope: arb) -> arb:
    r"""$E f'(u)f'(v)$ from the slope of the image; where a vector is zero, from $E f'(v) = a_1/r$."""
    if not (one.vanishes or two.vanishes):
        return slope * (one.variance.sqrt() / one.r) * (two.variance.sqrt() / two.r)
    if not one.odd:
        return arb(0)
    sides = (
        side.curve.slope(acb(0), False).real if side.vanishes else side.features.a[1] / side.r
        for side in (one, two)
    )
    return next(sides) * next(sides)


def at_length(layer: Elementwise, odd: bool, q: arb, bits: int) -> AtLength:
    """The odd or the even function of an activation at vectors of squared length q."""
    if not (q > 0 or q.is_zero()):
        raise CertificateError(
            f"{type(layer).__name__}: the squared length of its inputs is {q.str(5)}, which may be zero or not",
            "Give the Dense layer before it a bias, or leave out inputs that differ from 0 by rounding errors",
        )
    return _build_once(exact_layer(layer), odd, q.mid().man_exp(), q.rad().man_exp(), bits)


@lru_cache(maxsize=1024)
def _build_once(layer: Elementwise, odd: bool, middle: Any, radius: Any, bits: int) -> AtLength:
    with working_precision(bits + GUARD):
        phi = analytic_of(layer)
        assert phi is not None
        curve = phi.odd if odd else phi.even
        assert curve is not None
        r = arb(middle, radius).sqrt()
    return AtLength(type(layer).__name__, curve, odd, r, bits)


def exact_layer(layer: Elementwise) -> Elementwise:
    """The activation with its hyperparameters as float64 numbers, which they are, exactly."""
    made: Elementwise = jax.tree.map(_exact_number, layer)
    return made


def _exact_number(leaf: Any) -> float:
    number = float(leaf)
    if arb(number) != leaf:
        raise ArithmeticError(f"a hyperparameter is {leaf}, which is no float64 number")
    return number
