r"""The dual of an analytic activation without a closed form on the diagonal, along a ray.

With $\Theta = qt$ and the moments s, a, mu, b, g of `ray_moments`: behind the activation the variance is $qa$, the mean
$\phi(0) + r\mu$, and $E\,\phi'^2 = b$; where $\phi(0) = 0$, t is multiplied by $b/s$, in which q does not occur.
"""

from __future__ import annotations

from typing import Any

from flint import arb

from lnkernel.arch.smooth import Smooth
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.errors import CertificateError
from lnkernel.evaluate.balls.analytic import Analytic
from lnkernel.evaluate.balls.on_ray import NONE, ZERO, Jet, OnRay
from lnkernel.evaluate.balls.ray import Ray
from lnkernel.evaluate.balls.ray_moments import (
    LONG,
    NOTHING,
    UNKNOWN,
    Shape,
    shape_at_zero,
    shape_long,
    shape_near,
    shape_to_infinity,
    sharpen,
)


def series_dual_on_ray(num: Ray, layer: Smooth, phi: Analytic, cov: Covariance) -> Dual:
    """The dual of an input and itself, for all lengths of the box."""
    q = num.lift(cov.first.q)
    found = _shape(layer, phi, q, num.bits)
    line = phi.linear * phi.linear

    def function(of_length: Jet) -> OnRay:
        """A function of q as one on the ray, by the chain rule; with that of the linear part."""
        along = q.flat().slope
        slope = arb(0) if along.is_zero() else of_length.slope * along
        return OnRay(Jet(of_length.value + line, slope), NONE, NONE, num.box)

    derivative, variance = function(found.slope), q * function(found.variance)
    share, total, mean = derivative / function(found.square), q * function(found.square), None
    if phi.even is not None or not phi.at_zero.is_zero():
        centre = num.sqrt(q) * (function(found.mean) - line)
        if not (found.whole or phi.at_zero.is_zero()):
            centre = phi.at_zero + centre
            total = variance + centre * centre
            share = q * derivative / total
        part, rest = centre / num.sqrt(total), num.sqrt(variance / total)
        mean = Mean(part, part, ZERO, Both(rest, rest))
    whole, centred = (
        Covariance(Length(x, live), Length(x, live), ZERO, 1.0, 1.0, ZERO)
        for x, live in ((total, _alive(phi, cov)), (variance, cov.first.live))
    )
    return Dual(
        total=whole,
        mean=mean,
        slope=share,
        euler=lambda: q * function(found.euler()) / total,
        derivative=lambda: (derivative,),
        centred=centred,
    )


def _alive(phi: Analytic, cov: Covariance) -> Any:
    return cov.first.live if phi.at_zero.is_zero() else True


def _shape(layer: Smooth, phi: Analytic, q: OnRay, bits: int) -> Shape:
    """The moments of the part that is not linear, for all lengths of the box."""
    curve, is_even = (phi.odd, False) if phi.even is None else (phi.even, True)
    if curve is None:
        return Shape(NOTHING, NOTHING, NOTHING, lambda: NOTHING)
    lengths = q.flat().value
    if lengths.is_finite() and lengths > 0:
        far = phi.far
        if far is not None and lengths * far.rate**2 > LONG**2:
            return sharpen(lambda q, bits: shape_long(far, curve, q, bits), lengths, bits)
        return sharpen(lambda q, bits: shape_near(curve, is_even, q, bits), lengths, bits)
    if lengths.is_finite():
        return shape_at_zero(curve, is_even, lengths)
    if q.k > 0 and phi.far is None:
        raise CertificateError(
            f"{type(layer).__name__}: it saturates and meets vectors of every length, where C = sup Θ(x, x) has no "
            "certificate",
            "Put a LayerNorm or RMSNorm before it; or take sup_diagonal without certify, which says how Θ(x, x) grows",
        )
    inverse = q.inverse().flat().value
    if phi.far is not None and inverse.is_finite():
        return shape_to_infinity(phi.far, inverse)
    unknown = Jet(UNKNOWN, UNKNOWN)  # the box is too wide
    return Shape(unknown, unknown, unknown, lambda: unknown)
