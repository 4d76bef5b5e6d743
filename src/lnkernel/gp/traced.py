"""The same formulas inside a user's own JAX transformation: differentiable, unchecked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from lnkernel.arch import Node
from lnkernel.check import as_traced_points
from lnkernel.errors import InputError
from lnkernel.gp.fit import Fit
from lnkernel.gram.kernel import Kernel
from lnkernel.precision import demand_x64
from lnkernel.types import Array, MorePoints, Noise, Outputs, Points, Scalar, Targets, Values


@dataclass(frozen=True, eq=False)
class TracedPosterior:
    """A posterior whose numbers JAX is differentiating or compiling."""

    kernel: Kernel
    x: Array  # (n, d)
    y: Array  # (n,) or (n, k)
    factor: Array  # lower

    def mean(self, x: MorePoints) -> Outputs:
        """kernel(x, X) A⁻¹ y."""
        half = solve_triangular(self.factor, self.y, lower=True)
        return self.kernel(x, self.x) @ solve_triangular(self.factor.T, half, lower=False)

    def variance(self, x: MorePoints) -> Values:
        """kernel(x, x) - kernel(x, X) A⁻¹ kernel(X, x)."""
        half = solve_triangular(self.factor, self.kernel(self.x, x), lower=True)
        return jnp.maximum(self.kernel.diagonal(x) - (half * half).sum(axis=0), 0.0)

    def std(self, x: MorePoints) -> Values:
        """The square root of `variance`."""
        return jnp.sqrt(self.variance(x))

    def log_marginal_likelihood(self) -> Scalar:
        """log p(y | X), summed over the outputs."""
        half = solve_triangular(self.factor, self.y, lower=True)
        outputs = self.y.size // len(self.x)
        volume = jnp.log(jnp.diagonal(self.factor)).sum() + 0.5 * len(self.x) * math.log(
            2 * math.pi
        )
        return -0.5 * (half * half).sum() - outputs * volume


def posterior(arch: Node, X: Points, y: Targets, which: str, noise: Noise) -> TracedPosterior:
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
    gram = kernel(x) + jnp.asarray(noise) * jnp.eye(len(x))  # of several each to its own column
    return TracedPosterior(kernel, x, targets, jnp.linalg.cholesky(gram))


def mean(fit: Fit, coefficients: np.ndarray, x: MorePoints) -> Outputs:
    """The mean of a concrete posterior at traced points."""
    demand_x64()
    values = fit.kernel(x, fit.data.x) @ coefficients
    return values[:, 0] if fit.data.one_output else values


def variance(fit: Fit, x: MorePoints) -> Values:
    """The variance of a concrete posterior at traced points."""
    demand_x64()
    factor = jnp.asarray(fit.factor.both)  # only its lower triangle is read
    return TracedPosterior(fit.kernel, fit.data.x, fit.data.y, factor).variance(x)
