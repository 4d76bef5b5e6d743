r"""The marginal likelihood of Laplace's approximation, as a function of the prior precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float64

from lnkernel.errors import InputError

DECADES = 12  # of τ, to both sides of the largest eigenvalue


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""$\log p(y \mid f) - \frac\tau2 |\theta_0-\mu|^2 - \frac12\sum_i \log(1 + \mu_i/\tau)$, for every τ.

    The determinant is that of the Hessian over that of the prior: (GGN + τ)/τ has the eigenvalues
    1 + μ_i/τ, with μ_i those of A Aᵀ.

    >>> import numpy as np
    >>> evidence = Evidence(0.0, 1.0, np.array([3.0]))     # -τ/2 - log(1 + 3/τ)/2, stationary at
    >>> round(evidence.best(), 6)                          # τ² + 3 τ = 3
    0.791288
    """

    log_likelihood: float
    squared_distance: float  # |θ₀ − μ|²
    eigenvalues: Float64[np.ndarray, " r"]

    def __call__(self, prior_precision: float) -> float:
        """The log marginal likelihood at τ."""
        determinant = float(np.log1p(self.eigenvalues / prior_precision).sum())
        return log_evidence(
            self.log_likelihood, self.squared_distance, prior_precision, determinant
        )

    def best(self) -> float:
        """The τ with the largest marginal likelihood."""
        centre = math.log(max(float(self.eigenvalues.max()), 1e-300))
        reach = DECADES * math.log(10)
        grid = np.linspace(centre - reach, centre + reach, 20 * DECADES + 1)
        values = [self(math.exp(step)) for step in grid]
        top = int(np.argmax(values))
        if top in (0, len(grid) - 1):
            raise InputError(
                "prior_precision",
                "parameters away from the prior's mean, and data that say something about them",
                f"a marginal likelihood that is largest at τ = {math.exp(grid[top]):.1e} or beyond",
                "Give prior_precision as a number",
            )
        found = scipy.optimize.minimize_scalar(
            lambda step: -self(math.exp(step)),
            bounds=(grid[top - 1], grid[top + 1]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return math.exp(float(found.x))


def log_evidence(
    log_likelihood: float,
    squared_distance: float,
    prior_precision: float,
    log_determinant: float,
) -> float:
    r"""$\log p(y \mid f) - \frac\tau2 |\theta_0-\mu|^2 - \frac12\log\det(1 + A A^T/\tau)$."""
    return log_likelihood - 0.5 * (prior_precision * squared_distance + log_determinant)
