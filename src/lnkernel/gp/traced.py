"""The same formulas inside a user's own JAX transformation: differentiable, unchecked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from lnkernel.arch import Node
from lnkernel.check import as_traced_points
from lnkernel.errors import InputError
from lnkernel.gram.kernel import Kernel
from lnkernel.precision import demand_x64

if TYPE_CHECKING:
    import numpy as np

    from lnkernel.gp.fit import Fit

Array = Any


@dataclass(frozen=True, eq=False)
class TracedPosterior:
    """A posterior whose numbers JAX is differentiating or compiling."""

    kernel: Kernel
    x: Array  # (n, d)
    y: Array  # (n,) or (n, k)
    factor: Array  # lower

    def mean(self, x: Any) -> Array:
        """kernel(x, X) A⁻¹ y."""
        half = solve_triangular(self.factor, self.y, lower=True)
        return self.kernel(x, self.x) @ solve_triangular(self.factor.T, half, lower=False)

    def variance(self, x: Any) -> Array:
        """kernel(x, x) - kernel(x, X) A⁻¹ kernel(X, x)."""
        half = solve_triangular(self.factor, self.kernel(self.x, x), lower=True)
        return jnp.maximum(self.kernel.diagonal(x) - (half * half).sum(axis=0), 0.0)

    def std(self, x: Any) -> Array:
        """The square root of `variance`."""
        return jnp.sqrt(self.variance(x))

    def log_marginal_likelihood(self) -> Array:
        """log p(y | X), summed over the outputs."""
        half = solve_triangular(self.factor, self.y, lower=True)
        outputs = self.y.size // len(self.x)
        volume = jnp.log(jnp.diagonal(self.factor)).sum() + 0.5 * len(self.x) * math.log(
            2 * math.pi
        )
        return -0.5 * (half * half).sum() - outputs * volume


def posterior(arch: Node, X: Any, y: Any, which: str, noise: Any) -> TracedPosterior:
    demand_x64()
    kernel = Kernel(arch, (which,))
    x, targets = as_traced_points("X", X), jnp.asarray(y, dtype=jnp.float64)
    if targets.ndim not in (1, 2) or len(targets) != len(x):
        raise InputError(
            "y",
            f"one target per point of X, shape ({len(x)},) or ({len(x)}, k)",
            f"shape {tuple(targets.shape)}",
            "Check that X and y were loaded and filtered alike",
        )
    gram = kernel(x) + noise * jnp.eye(len(x))
    return TracedPosterior(kernel, x, targets, jnp.linalg.cholesky(gram))


def mean(fit: Fit, coefficients: np.ndarray, x: Any) -> Array:
    """The mean of a concrete posterior at traced points."""
    demand_x64()
    values = fit.kernel(x, fit.data.x) @ coefficients
    return values[:, 0] if fit.data.one_output else values


def variance(fit: Fit, x: Any) -> Array:
    """The variance of a concrete posterior at traced points."""
    demand_x64()
    factor = jnp.asarray(fit.factor.both)  # only its lower triangle is read
    return TracedPosterior(fit.kernel, fit.data.x, fit.data.y, factor).variance(x)
