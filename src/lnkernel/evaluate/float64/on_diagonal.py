"""The dual of an activation for an input with itself, at every length.

Of a pair the series is computed for moderate lengths only. On the diagonal there is no angle, and the
moments at one length are all that is needed.
"""

from __future__ import annotations

import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.arch.flow import rows_of
from lnkernel.arch.smooth import Smooth
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
    """Whether all analytic activations of a network have moments at every length."""
    smooth = (layer for _, layer, _ in rows_of(arch) if isinstance(layer, Smooth))
    return all(moments_rule(layer) is not None for layer in smooth)


def dual_of_equals(num: Float64, layer: Smooth, cov: Covariance) -> Dual | None:
    """Where both inputs are one and the same; None where the moments are not known."""
    rule = moments_rule(layer)
    if rule is None:
        return None
    r = num.sqrt(cov.first.q)
    safe = jnp.maximum(r, SHORT)
    found = rule(safe)
    if function_of(layer).vanishes:
        shrunk = jnp.square(r / safe)
        length = Length(found.square * shrunk, cov.first.live)
        rest = Length(found.variance * shrunk, cov.first.live)
    else:
        # phi(0) is left of the whole; but the variance may be as small as r⁴
        length = Length(found.square)
        rest = Length(rule(jnp.maximum(r, SHORTEST)).variance, cov.first.live)
    share, left = found.mean / jnp.sqrt(found.square), jnp.sqrt(found.variance / found.square)
    angle = cov.w, cov.z, cov.c, cov.e
    return Dual(
        total=Covariance(length, length, *angle),
        mean=Mean(share, share, cov.e, Both(left, left)),
        slope=jnp.square(safe) * found.slopes / found.square,
        euler=found.euler / found.square,
        derivative=lambda: (found.slopes,),
        centred=Covariance(rest, rest, *angle),
    )
