"""Infinitely wide networks whose training was stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lnkernel.gp import predictions
from lnkernel.gp.fit import Fit, Solver


@dataclass(frozen=True, eq=False, repr=False)
class Stopped:
    """Infinitely wide networks whose training was stopped. `Posterior.at` and `.after` make it."""

    _fit: Fit
    _solver: Solver
    _said: str  # whose training, and when

    def __repr__(self) -> str:
        return f"Stopped({self._said})"

    def mean(self, x: Any) -> Any:
        """The mean of the networks' outputs at the points x (m, d): (m,) or (m, k), float64."""
        return predictions.mean(self._fit, self._solver(self._fit.data.y), x)

    def ensemble_variance(self, x: Any) -> Any:
        """The variance, over random initialisations, of the outputs at x (m, d): (m,), float64."""
        return predictions.ensemble_variance(self._fit, self._solver, x)

    def ensemble_covariance(self, x: Any) -> Any:
        """Their covariance for all pairs of the points x (m, d): (m, m), float64."""
        return predictions.ensemble_covariance(self._fit, self._solver, x)
