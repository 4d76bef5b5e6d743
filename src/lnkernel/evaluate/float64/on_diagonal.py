"""The dual of an activation for an input with itself, at every length.

Of a pair the series is computed for moderate lengths only. On the diagonal there is no angle, and the
moments at one length are all that is needed.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.flow import rows_of
from lnkernel.arch.traits import traits
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64.arithmetic import Float64
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.length_curves import Curves, curves_through, lengths_of_nodes
from lnkernel.evaluate.float64.moments import Moments, Rule, moments_at, moments_rule

SHORTEST = 1e-150  # stands for the length 0, where ratios are limits
SHORT = (
    1e-70  # below it the first term of phi - phi(0) is all there is, and its square would underflow
)
MANY = 64  # inputs, for which an interpolation of the moments is worth its nodes


def knows_diagonal(arch: Node) -> bool:
    """Whether all activations that follow the lengths of their inputs have moments at every length."""
    layers = (layer for _, layer, _ in rows_of(arch) if traits(layer).follows_lengths)
    return all(moments_rule(layer) is not None for layer in layers)


@lru_cache(maxsize=64)
def _curves(layer: Elementwise, longest: float) -> Curves:
    """E phi, the variance, E phi'² and E (u phi')² as functions of the length, without their powers of it."""
    r = lengths_of_nodes(longest)
    found = moments_at(layer, r)
    mean = found.mean / r if function_of(layer).vanishes else found.mean
    square = np.square(r)
    values = mean, found.variance / square, found.slopes, found.euler / square
    return curves_through(longest, np.column_stack(values))


def _moments_of_many(layer: Elementwise, longest: float, length: np.ndarray) -> Moments:
    """By interpolation up to the longest one, and as always beyond."""
    plain: Elementwise = jax.tree.map(float, layer)
    mean, variance, slopes, euler = _curves(plain, longest).at(length)
    mean = mean * length if function_of(plain).vanishes else mean
    square = np.square(length)
    variance, euler = variance * square, euler * square
    found = Moments(mean, variance + np.square(mean), variance, slopes, euler)
    beyond = length > longest
    if beyond.any():
        for values, exact in zip(found, moments_at(plain, length[beyond]), strict=True):
            values[beyond] = exact
    return found


def dual_of_equals(
    num: Float64,
    layer: Elementwise,
    cov: Covariance,
    longest: float | None = None,
    rule: Rule | None = None,
) -> Dual | None:
    """The dual where both inputs are one and the same, mostly up to the `longest`; None where the moments are
    not known, nor is a `rule` given for them."""
    rule = rule or moments_rule(layer)
    if rule is None:
        return None
    r = num.sqrt(cov.first.q)
    xp = num.xp
    if longest is not None and xp is np and np.size(r) > MANY:
        rule = partial(_moments_of_many, layer, longest)
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
