r"""Training in time: what gradient descent has made of the targets when it is stopped.

In the limit of infinite width the network stays linear in its parameters, and descent on the
loss $\frac12\sum_i (f(x_i) - y_i)^2$ gives $f_t(x) = f_0(x) + \Theta(x, X)\,\alpha_t$ with

    d alpha/dt = y - f_0(X) - A alpha,      alpha_{k+1} = alpha_k + eta (y - f_0(X) - A alpha_k),

from $\alpha = 0$, so $\alpha = \varphi(A)\,(y - f_0(X))$ with the filter $\varphi$ below (Jacot et al.
2018; Lee et al. 2019). $A = \Theta(X, X)$, or $\Theta(X, X) + \mathrm{noise} \cdot I$, where the loss has
the ridge term $\frac{\mathrm{noise}}{2}\,|\theta - \theta_0|^2$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from lnkernel.gp.cholesky import Cholesky, full_copy

Filter = Callable[[np.ndarray], np.ndarray]


class Eigen(NamedTuple):
    """The eigenvalues of A, in ascending order, and its eigenvectors, in columns."""

    values: np.ndarray
    vectors: np.ndarray

    def applied(self, to_eigenvalue: Filter, b: np.ndarray) -> np.ndarray:
        """phi(A) b."""
        weights = to_eigenvalue(self.values)[:, None]
        return np.asarray(self.vectors @ (weights * (self.vectors.T @ b)))


def eigen(factor: Cholesky) -> Eigen:
    values, vectors = scipy.linalg.eigh(
        full_copy(factor), driver="evd", overwrite_a=True, check_finite=False
    )
    return Eigen(values, vectors)


def gradient_flow(time: float) -> Filter:
    r"""$\varphi(\lambda) = (1 - e^{-\lambda t})/\lambda$, and $t$ at $\lambda = 0$."""

    def weights(values: np.ndarray) -> np.ndarray:
        return _divided(-np.expm1(-time * values), values, time)

    return weights


def gradient_descent(steps: int, learning_rate: float) -> Filter:
    r"""$\varphi(\lambda) = (1 - (1 - \eta\lambda)^k)/\lambda$, and $\eta k$ at $\lambda = 0$."""

    def weights(values: np.ndarray) -> np.ndarray:
        if steps == 0:
            return np.zeros_like(values)
        rate = learning_rate * values
        with np.errstate(divide="ignore"):  # one step of rate 1 arrives: log 0
            logarithm = steps * np.log1p(-np.where(rate <= 1, rate, 2 - rate))
        # of |1 - rate|^k; each case in the form that does not cancel
        overshot = (rate > 1) & (steps % 2 == 1)
        reached = np.where(overshot, 1 + np.exp(logarithm), -np.expm1(logarithm))
        return _divided(reached, values, learning_rate * steps)

    return weights


def _divided(x: np.ndarray, values: np.ndarray, at_zero: float) -> np.ndarray:
    zero = values == 0
    return np.where(zero, at_zero, x / np.where(zero, 1.0, values))
