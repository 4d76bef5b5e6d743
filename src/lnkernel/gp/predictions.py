"""From the points a user gives to the numbers he gets: what a fit and a solver predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.check import as_inputs
from lnkernel.gp import traced
from lnkernel.gp.fit import Fit, Solver
from lnkernel.precision import handed_out, inside_jit, is_traced, x64_is_on


def mean(fit: Fit, coefficients: np.ndarray, x: Any) -> Any:
    """kernel(x, X) coefficients: (m,) or (m, k)."""
    if is_in_jax(x):
        return traced.mean(fit, coefficients, x)
    was_on = x64_is_on()
    values = fit.mean(coefficients, as_inputs(x, fit.data.x.shape[1]))
    return handed_out(values[:, 0] if fit.data.one_output else values, was_on)


def ensemble_variance(fit: Fit, solver: Solver, x: Any) -> Any:
    """Of trained networks' outputs, over random initialisations: (m,)."""
    was_on = x64_is_on()
    points = as_inputs(x, fit.data.x.shape[1])
    return handed_out(fit.ensemble_variance(solver, points), was_on)


def ensemble_covariance(fit: Fit, solver: Solver, x: Any) -> Any:
    """The same for all pairs of points: (m, m)."""
    was_on = x64_is_on()
    points = as_inputs(x, fit.data.x.shape[1])
    return handed_out(fit.ensemble_covariance(solver, points), was_on)


def is_in_jax(x: Any) -> bool:
    """Whether x is being traced, or this call is."""
    return is_traced(x) or inside_jit()
