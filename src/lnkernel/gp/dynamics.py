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

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import jax.numpy as jnp
import numpy as np

from lnkernel.errors import MissingSpreadError
from lnkernel.gp.filters import Filter
from lnkernel.gp.fit import Solver
from lnkernel.gp.large_targets import demand_finite
from lnkernel.gp.predictor import Predictor
from lnkernel.gp.traced import TracedFit, seen_with
from lnkernel.gram.memory import demand_memory
from lnkernel.types import Array, Covariance, Curves, MorePoints, Outputs, Values


@dataclass(frozen=True, eq=False, repr=False)
class Stopped:
    """Infinitely wide networks whose training was stopped. `Posterior.at` and `.after` make it."""

    _fit: Predictor
    _filter: Filter | None  # None after training to convergence
    _said: str  # whose training, and when

    def __repr__(self) -> str:
        return f"Stopped({self._said})"

    def mean(self, x: MorePoints) -> Outputs:
        """The mean of the networks' outputs at the points x (m, d): (m,) or (m, k), float64."""
        fit = self._seen_with(x)
        if self._filter is None:
            return fit.columns(fit.predictions(fit.inputs(x)))
        return fit.columns(_mean(fit, self._coefficients(fit), fit.inputs(x)))

    def ensemble_variance(self, x: MorePoints) -> Values:
        """The variance, over random initialisations, of the outputs at x (m, d): (m,), float64."""
        fit = self._seen_with(x)
        return fit.ensemble_variance(self._solver(fit), fit.inputs(x))

    def ensemble_covariance(self, x: MorePoints) -> Covariance:
        """Their covariance for all pairs of the points x (m, d): (m, m), float64."""
        fit = self._seen_with(x)
        return fit.ensemble_covariance(self._solver(fit), fit.inputs(x))

    if not TYPE_CHECKING:  # for which there is nothing but what is written here

        def __getattr__(self, name: str) -> NoReturn:
            _refuse_attribute(self, name)

    def _seen_with(self, x: MorePoints) -> Predictor:
        return seen_with(self._fit, x, self._filter and self._filter.parameter)

    def _solver(self, fit: Predictor) -> Solver:
        chosen = self._filter
        return fit.solve if chosen is None else lambda b: fit.apply_filter(chosen, b)

    def _coefficients(self, fit: Predictor) -> Array:
        """φ(A) y, (n, k)."""
        chosen = self._filter
        made: Array = fit.coefficients if chosen is None else fit.filtered_targets(chosen)
        return made


@dataclass(frozen=True, eq=False)
class Curve:
    """Networks at several times of their training. `Posterior.at` makes it of a list of times."""

    at: tuple[Stopped, ...]

    def mean(self, x: MorePoints) -> Curves:
        """The mean of the outputs at the points x (m, d): (times, m) or (times, m, k), float64.

        The kernel of x and the data is computed once for all times.
        """
        times = [one._filter and one._filter.parameter for one in self.at]
        fit = seen_with(self.at[0]._fit, x, times)
        xp = jnp if isinstance(fit, TracedFit) else np
        coefficients = xp.concatenate([one._coefficients(fit) for one in self.at], axis=1)
        values = _mean(fit, coefficients, fit.inputs(x))
        split = values.reshape(len(values), len(self.at), -1).swapaxes(0, 1)
        return fit.columns(split)

    def ensemble_variance(self, x: MorePoints) -> Curves:
        """The variance of the outputs at x (m, d), over random initialisations: (times, m)."""
        return _stack([one.ensemble_variance(x) for one in self.at])

    def ensemble_covariance(self, x: MorePoints) -> Curves:
        """Their covariance for all pairs of the points x (m, d): (times, m, m)."""
        points, times = len(self.at[0]._seen_with(x).inputs(x)), len(self.at)
        purpose = f"The covariance of {points} points at {times} times"
        demand_memory(points, 2 * times, purpose, remedy="Take fewer points or times")
        return _stack([one.ensemble_covariance(x) for one in self.at])

    if not TYPE_CHECKING:  # for which there is nothing but what is written here

        def __getattr__(self, name: str) -> NoReturn:
            _refuse_attribute(self, name)


def _refuse_attribute(asked: Stopped | Curve, name: str) -> NoReturn:
    """What Python calls for names that there are not; those of a posterior's spread deserve an explanation."""
    kind = type(asked).__name__
    if name in ("variance", "std", "covariance"):
        raise MissingSpreadError(kind, name)
    raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=asked)


def _mean(fit: Predictor, coefficients: Array, x: Array) -> Array:
    if isinstance(fit, TracedFit):
        return fit.mean(coefficients, x)
    with np.errstate(over="ignore"):
        return demand_finite(fit.mean(coefficients, x), fit.targets)


def _stack(parts: list[Array]) -> Array:
    """The parts along a new first axis, as NumPy's array if all of them are NumPy's."""
    return np.stack(parts) if isinstance(parts[0], np.ndarray) else jnp.stack(parts)
