r"""Laplace's approximation of the linearized model, in function space.

The prior is $\theta \sim N(\mu, 1/\tau)$, the model stands at its posterior mode θ₀, and the Hessian is that of
Gauss and Newton, $J^T \Lambda J + \tau$. With $\Lambda = L L^T$ and $A = L^T J$ over all training inputs, the
outputs at x are normal with mean f(x) and covariance

    [J J* − J Aᵀ (A Aᵀ + τ)⁻¹ A J*] / τ,

which never needs a matrix of the size of the parameters, nor an inverse of Λ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import scipy
from jaxtyping import Float, Float64

from lnkernel.check.numbers import as_key, positive_integer
from lnkernel.errors import InputError
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents import products
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.evidence import Evidence, log_evidence
from lnkernel.tangents.likelihoods import Categorical, Likelihood, softmax_mean
from lnkernel.types import MoreInputs

ROWS = 2**24  # numbers of a block of K(x, X) at a time


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(ABC):
    """A network with a normal distribution around its parameters, linearized; `Tangent.laplace`
    makes it.

    Attributes:
        prior_precision: τ.
    """

    _tangent: Differential
    _likelihood: Likelihood
    prior_precision: float
    _log_evidence: float  # at τ
    _evidence: Callable[[], Evidence]

    def __repr__(self) -> str:
        name = type(self._likelihood).__name__.lower()
        return f"{type(self).__name__}({name}, prior_precision={self.prior_precision:.4g})"

    def mean(self, x: MoreInputs) -> Float[np.ndarray, " m"] | Float[np.ndarray, "m k"]:
        """f(x), the network's own output: (m,), or (m, k)."""
        return self._tangent.value(x)

    def covariance(
        self, x: MoreInputs, *, full: bool = False
    ) -> Float64[np.ndarray, "m k k"] | Float64[np.ndarray, "m k m k"]:
        """The covariance of the outputs at each input, (m, k, k); with `full` between all inputs, (m, k, m, k)."""
        with self._tangent.open(("x", x)) as (function, (points,)):
            k = function.outputs
        if full:
            demand_memory(len(points) * k, 2, "The covariance")
            return self._covariance(points, k, full=True)
        step = self._inputs_at_a_time(k)
        parts = [
            self._covariance(points[start : start + step], k, full=False)
            for start in range(0, len(points), step)
        ]
        return np.concatenate(parts)

    def probabilities(
        self, x: MoreInputs, *, samples: int = 512, key: Any = None
    ) -> Float64[np.ndarray, "m k"]:
        """The mean of softmax over the outputs' distribution, by sampling: (m, k).

        Args:
            x: inputs, (m, ...).
            samples: how many, the same standard normal ones for every input.
            key: a key of `jax.random`; by default `jax.random.key(0)`.
        """
        if not isinstance(self._likelihood, Categorical):
            raise InputError(
                "likelihood", '"categorical"', '"gaussian"', "Use mean(x) and covariance(x)"
            )
        outputs = np.asarray(self.mean(x), np.float64)
        normal = standard_normal(key, positive_integer("samples", samples), outputs.shape[1])
        return softmax_mean(outputs, self.covariance(x), normal)

    def log_marginal_likelihood(self) -> float:
        r"""$\log p(y \mid f) - \frac\tau2|\theta_0 - \mu|^2 - \frac12 \log\det(1 + A A^T/\tau)$."""
        return self._log_evidence

    @property
    def evidence(self) -> Evidence:
        """The marginal likelihood as a function of τ.

        With a given τ the exact approximation does without eigenvalues; they are found when this is
        first asked for, from a kernel that is computed again.
        """
        return self._evidence()

    @abstractmethod
    def _covariance(self, x: np.ndarray, k: int, *, full: bool) -> np.ndarray:
        """The covariance, (m, k, k) or (m, k, m, k)."""

    def _inputs_at_a_time(self, k: int) -> int:
        return max(1, ROWS // k**2)


@dataclass(frozen=True, eq=False, repr=False)
class ExactLaplace(Laplace):
    """Laplace's approximation with all training inputs."""

    _x: np.ndarray
    _roots: Float64[np.ndarray, "n k k"]
    _factor: Float64[np.ndarray, "rows rows"]  # C, lower triangular, with C Cᵀ = 1 + A Aᵀ/τ

    def _covariance(self, x: np.ndarray, k: int, *, full: bool) -> np.ndarray:
        rows, tau = len(x) * k, self.prior_precision
        across = self._tangent.gram(x, self._x).reshape(rows, len(self._x), k)
        projected = np.einsum("rja,jab->rjb", across, self._roots, optimize=True)
        half = scipy.linalg.solve_triangular(
            self._factor,
            projected.reshape(rows, -1).T,
            lower=True,
            overwrite_b=True,
            check_finite=False,
        ).T / np.sqrt(tau)
        if full:
            every = self._tangent.gram(x).reshape(rows, rows)
            return ((every - half @ half.T) / tau).reshape(len(x), k, len(x), k)
        prior = self._tangent.diagonal(x).reshape(len(x), k, k)
        return (prior - own_products(half.reshape(len(x), k, -1))) / tau

    def _inputs_at_a_time(self, k: int) -> int:
        return max(1, ROWS // (len(self._x) * k**2))


def exact_laplace(
    tangent: Differential,
    x: np.ndarray,
    y: np.ndarray,
    likelihood: Likelihood,
    prior_precision: float | None,
    prior_mean: float,
) -> ExactLaplace:
    """A Aᵀ of all training inputs, and the Cholesky factor of 1 + A Aᵀ/τ."""
    with tangent.open(("X", x)) as (function, (points,)):
        values = products.values(function, points, tangent.batch_size).astype(np.float64)
    rows = values.size
    demand_memory(rows, 4, "The factorisation of the kernel of all training outputs")
    roots = np.array(likelihood.root(values))
    fit = likelihood.log_likelihood(values, y), squared_distance(tangent.params, prior_mean)

    kernel = weighted_kernel(tangent, points, roots)
    if prior_precision is None:
        known = Evidence(*fit, _eigenvalues(kernel))
        tau, evidence = known.best(), lambda: known
    else:

        @cache
        def evidence() -> Evidence:
            return Evidence(*fit, _eigenvalues(weighted_kernel(tangent, points, roots)))

        tau = prior_precision
    kernel /= tau
    kernel[np.diag_indices(rows)] += 1.0
    factor = scipy.linalg.cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
    log_determinant = 2 * float(np.log(factor.diagonal()).sum())
    value = log_evidence(*fit, tau, log_determinant)
    return ExactLaplace(tangent, likelihood, tau, value, evidence, points, roots, factor)


def weighted_kernel(
    tangent: Differential, x: np.ndarray, roots: Float64[np.ndarray, "n k k"]
) -> Float64[np.ndarray, "rows rows"]:
    """A Aᵀ = Lᵀ K L at these inputs, with L in blocks of one input each."""
    n, k, _ = roots.shape
    kernel = tangent.gram(x).reshape(n, k, n, k).astype(np.float64, copy=False)
    kernel = np.einsum("iab,iajc->ibjc", roots, kernel, optimize=True)
    return np.einsum("ibjc,jcd->ibjd", kernel, roots, optimize=True).reshape(n * k, n * k)


def _eigenvalues(kernel: Float64[np.ndarray, "rows rows"]) -> Float64[np.ndarray, " rows"]:
    found = scipy.linalg.eigvalsh(kernel, check_finite=False)
    return np.maximum(found, 0.0)  # exact zeros come with either sign


def own_products(
    half: Float64[np.ndarray, "m k r"],
) -> Float64[np.ndarray, "m k k"]:
    """h hᵀ at every input."""
    return np.einsum("iar,ibr->iab", half, half, optimize=True)


def squared_distance(params: Any, mean: float) -> float:
    """|θ₀ − μ|²."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(params)]
    return sum(float(np.square(leaf - mean).sum()) for leaf in leaves)


def standard_normal(key: Any, samples: int, k: int) -> Float64[np.ndarray, "samples k"]:
    """Samples in float64, whatever JAX's setting."""
    known = jax.random.key(0) if key is None else as_key("key", key)
    with jax.enable_x64(True):
        return np.asarray(jax.random.normal(known, (samples, k), np.float64))
