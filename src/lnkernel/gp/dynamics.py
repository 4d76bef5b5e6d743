r"""Training in time: what infinitely wide networks output when their training is stopped.

In the limit of infinite width the network stays linear in its parameters, and descent on the
loss $\frac12\sum_i (f(x_i) - y_i)^2$ gives $f_t(x) = f_0(x) + \Theta(x, X)\,\alpha_t$ with

    d alpha/dt = y - f_0(X) - A alpha,      alpha_{k+1} = alpha_k + eta (y - f_0(X) - A alpha_k),

from $\alpha = 0$, so $\alpha = \varphi(A)\,(y - f_0(X))$ with the filter $\varphi$ below (Jacot et al.
2018; Lee et al. 2019). $A = \Theta(X, X)$, or $\Theta(X, X) + \mathrm{noise} \cdot I$, where the loss has
the ridge term $\frac{\mathrm{noise}}{2}\,|\theta - \theta_0|^2$. A network trained to convergence has
$\varphi(\lambda) = 1/\lambda$, so the predictions below are those of `Posterior` as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from lnkernel.check import as_inputs
from lnkernel.gp import traced
from lnkernel.gp.fit import Fit, Solver
from lnkernel.precision import handed_out, inside_jit, is_traced, x64_is_on
from lnkernel.types import Covariance, Curves, MorePoints, Outputs, Values

Filter = Callable[[np.ndarray], np.ndarray]


def gradient_flow(time: float) -> Filter:
    r"""$\varphi(\lambda) = (1 - e^{-\lambda t})/\lambda$, and $t$ at $\lambda = 0$."""

    def weights(values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a time so long that e^-λt is 0
            return _divided(-np.expm1(-time * values), values, time)

    return weights


def gradient_descent(steps: int, learning_rate: float) -> Filter:
    r"""$\varphi(\lambda) = (1 - (1 - \eta\lambda)^k)/\lambda$, and $\eta k$ at $\lambda = 0$."""

    def weights(values: np.ndarray) -> np.ndarray:
        if steps == 0:
            return np.zeros_like(values)
        rate = learning_rate * values
        with np.errstate(divide="ignore", over="ignore"):  # one step of rate 1 arrives: log 0
            logarithm = steps * np.log1p(-np.where(rate <= 1, rate, 2 - rate))
        # of |1 - rate|^k; each case in the form that does not cancel
        overshot = (rate > 1) & (steps % 2 == 1)
        reached = np.where(overshot, 1 + np.exp(logarithm), -np.expm1(logarithm))
        return _divided(reached, values, learning_rate * steps)

    return weights


def _divided(x: np.ndarray, values: np.ndarray, at_zero: float) -> np.ndarray:
    zero = values == 0
    return np.where(zero, at_zero, x / np.where(zero, 1.0, values))


# ---------------------------------------------------------------- predictions


def mean(fit: Fit, coefficients: np.ndarray, x: MorePoints) -> Outputs:
    """kernel(x, X) coefficients at the points x (m, d): (m,) or (m, k)."""
    if is_traced(x) or inside_jit():
        return traced.mean(fit, coefficients, x)
    was_on = x64_is_on()
    values = fit.mean(coefficients, as_inputs(x, fit.data.x.shape[1]))
    return handed_out(values[:, 0] if fit.data.one_output else values, was_on)


def ensemble_variance(fit: Fit, solver: Solver, x: MorePoints) -> Values:
    """The variance of trained networks' outputs over random initialisations: (m,)."""
    was_on = x64_is_on()
    points = as_inputs(x, fit.data.x.shape[1])
    return handed_out(fit.ensemble_variance(solver, points), was_on)


def ensemble_covariance(fit: Fit, solver: Solver, x: MorePoints) -> Covariance:
    """The covariance of those outputs for all pairs of points: (m, m)."""
    was_on = x64_is_on()
    points = as_inputs(x, fit.data.x.shape[1])
    return handed_out(fit.ensemble_covariance(solver, points), was_on)


@dataclass(frozen=True, eq=False, repr=False)
class Stopped:
    """Infinitely wide networks whose training was stopped. `Posterior.at` and `.after` make it."""

    _fit: Fit
    _solver: Solver
    _said: str  # whose training, and when

    def __repr__(self) -> str:
        return f"Stopped({self._said})"

    def mean(self, x: MorePoints) -> Outputs:
        """The mean of the networks' outputs at the points x (m, d): (m,) or (m, k), float64."""
        return mean(self._fit, self._solver(self._fit.data.y), x)

    def ensemble_variance(self, x: MorePoints) -> Values:
        """The variance, over random initialisations, of the outputs at x (m, d): (m,), float64."""
        return ensemble_variance(self._fit, self._solver, x)

    def ensemble_covariance(self, x: MorePoints) -> Covariance:
        """Their covariance for all pairs of the points x (m, d): (m, m), float64."""
        return ensemble_covariance(self._fit, self._solver, x)


@dataclass(frozen=True, eq=False)
class Curve:
    """Networks at several times of their training. `Posterior.at` makes it of a list of times."""

    at: tuple[Stopped, ...]

    def mean(self, x: MorePoints) -> Curves:
        """The mean of the outputs at the points x (m, d): (times, m) or (times, m, k), float64.

        The kernel of x and the data is computed once for all times.
        """
        fit = self.at[0]._fit
        if is_traced(x) or inside_jit():
            return jnp.stack([one.mean(x) for one in self.at])
        was_on = x64_is_on()
        coefficients = np.concatenate([one._solver(fit.data.y) for one in self.at], axis=1)
        values = fit.mean(coefficients, as_inputs(x, fit.data.x.shape[1]))
        split = values.reshape(len(values), len(self.at), -1).swapaxes(0, 1)
        return handed_out(split[..., 0] if fit.data.one_output else split, was_on)

    def ensemble_variance(self, x: MorePoints) -> Curves:
        """The variance of the outputs at x (m, d), over random initialisations: (times, m)."""
        was_on = x64_is_on()
        return handed_out(np.stack([one.ensemble_variance(x) for one in self.at]), was_on)

    def ensemble_covariance(self, x: MorePoints) -> Curves:
        """Their covariance for all pairs of the points x (m, d): (times, m, m)."""
        was_on = x64_is_on()
        return handed_out(np.stack([one.ensemble_covariance(x) for one in self.at]), was_on)
