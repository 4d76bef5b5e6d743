"""Activations with kinks, and those that are users' own, at angle zero."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch.elementwise import Elementwise
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.quadrature import Grading, Table, graded_quadrature
from lnkernel.calculus.state import Both, Mean
from lnkernel.errors import GrowthError
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite_features import SHORTEST
from lnkernel.evaluate.float64.moments import moments_rule
from lnkernel.evaluate.float64.panels import gaussian_rule, levels_for, marks_of
from lnkernel.evaluate.float64.resolution import demand_resolved
from lnkernel.evaluate.leading.arithmetic import LeadingTerms
from lnkernel.evaluate.leading.functions import dual_by_moments
from lnkernel.evaluate.leading.terms import as_term


@graded_quadrature.register
def _(
    num: LeadingTerms, layer: Elementwise, cov: Covariance, grading: Grading, table: Table
) -> Dual:
    """The dual by the moments. For a function of the user's own they are known at single lengths only, which is
    enough behind a normalisation without eps: there all lengths are one and the same number."""
    if moments_rule(layer) is not None:
        return dual_by_moments(num, layer, cov)
    q = as_term(cov.first.q)
    if not (q.whole and q.power == 0):
        raise GrowthError(type(layer).__name__)
    num.amplified.append(False)
    length = math.sqrt(q.coefficient)
    with jax.enable_x64(True):
        phi = function_of(layer)
        enough = levels_for(phi, length)
        short = max(length, SHORTEST)  # slopes at 0 are those on either side of it
        demand_resolved(layer, enough, short)
        x, weights = map(np.asarray, gaussian_rule(marks_of(phi, Grading(enough)).all / short))
        rest = np.asarray(phi.rest(jnp.asarray(length * x)))
        slopes = np.asarray(phi.with_slope(jnp.asarray(short * x))[1])
        start = float(phi.at_zero)
    shift = float(weights @ rest)
    mean, variance = start + shift, float(weights @ np.square(rest - shift))
    square, steep = variance + mean * mean, float(weights @ np.square(slopes))
    total, rests = Length(square, live=square > 0), Length(variance, live=variance > 0)
    if square == 0:  # of a zero vector nothing is left, whatever is divided by its length
        return Dual(
            Covariance(total, total, 0.0, 1.0, 1.0, 0.0),
            None,
            1.0,
            1.0,
            derivative=lambda: (steep,),
        )
    share, rest_share = mean / math.sqrt(square), math.sqrt(variance / square)
    return Dual(
        total=Covariance(total, total, 0.0, 1.0, 1.0, 0.0),
        mean=Mean(share, share, 0.0, Both(rest_share, rest_share)),
        slope=q.coefficient * steep / square,
        euler=float(weights @ np.square(length * x * slopes)) / square,
        derivative=lambda: (steep,),
        centred=Covariance(rests, rests, 0.0, 1.0, 1.0, 0.0),
    )
