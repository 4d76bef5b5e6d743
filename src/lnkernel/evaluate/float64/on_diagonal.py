"""The dual of an activation for an input with itself, at every length.

Of a pair the series is computed for moderate lengths only. On the diagonal there is no angle, and the
moments at one length are all that is needed.
"""

from __future__ import annotations

from lnkernel.arch import Node
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.flow import rows_of
from lnkernel.arch.traits import traits
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.moments import moments_rule

SHORTEST = 1e-150  # stands for the length 0, where ratios are limits
SHORT = (
    1e-70  # below it the first term of phi - phi(0) is all there is, and its square would underflow
)


def knows_diagonal(arch: Node) -> bool:
    """Whether all activations that follow the lengths of their inputs have moments at every length."""
    layers = (layer for _, layer, _ in rows_of(arch) if traits(layer).follows_lengths)
    return all(moments_rule(layer) is not None for layer in layers)


def dual_of_equals(num: Float64, layer: Elementwise, cov: Covariance) -> Dual | None:
    """The dual where both inputs are one and the same; None where the moments are not known."""
    rule = moments_rule(layer)
    if rule is None:
        return None
    r = num.sqrt(cov.first.q)
    xp = num.xp
    safe = xp.maximum(r, SHORT)
    found, shrunk = rule(safe), xp.square(r / safe)
    phi, live = function_of(layer), cov.first.live
    if phi.vanishes:
        length = Length(found.square * shrunk, live)
        rest = Length(found.variance * shrunk, live)
    else:
        # phi(0) is left of the whole; but the variance may be as small as r⁴. Whether phi(0) = 0 after all, as of
        # a clip it may be, only the program knows.
        stays = phi.at_zero != 0
        variance = rule(xp.maximum(r, SHORTEST)).variance
        square, variance = (
            xp.where(stays, kept, moment * shrunk)
            for kept, moment in ((found.square, found.square), (variance, found.variance))
        )
        length, rest = Length(square, num.either(live, stays)), Length(variance, live)
    share, left = found.mean / xp.sqrt(found.square), xp.sqrt(found.variance / found.square)
    angle = cov.w, cov.z, cov.c, cov.e
    return Dual(
        total=Covariance(length, length, *angle),
        mean=Mean(share, share, cov.e, Both(left, left)),
        slope=xp.square(safe) * found.slopes / found.square,
        euler=found.euler / found.square,
        derivative=lambda: (found.slopes,),
        centred=Covariance(rest, rest, *angle),
    )
