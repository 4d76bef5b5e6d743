r"""Fine-tuning, linearized, in closed form.

Descent on $\frac12\sum (\bar f(x_i) - y_i)^2 + \frac\lambda2 |\theta - \theta_0|^2$ from $\theta_0$ gives
$\theta = \theta_0 + J^T \varphi(A)\,(y - f(X))$ with $A = K + \lambda$, and the filter φ is that of
`Posterior`: $1/a$ at convergence, $(1 - e^{-ta})/a$ at time t, $(1 - (1 - \eta a)^T)/a$ after T steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Float64

from lnkernel.check.arrays import as_targets
from lnkernel.check.numbers import as_number, demand_static
from lnkernel.errors import InputError, LearningRateError
from lnkernel.gp.filters import Filter, gradient_descent, gradient_flow
from lnkernel.gp.spectrum import Eigen
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents import products
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.eigen import resolution
from lnkernel.tangents.inputs import check_columns
from lnkernel.tangents.model import Tree
from lnkernel.types import Array, Inputs, MoreInputs, Number, Outputs, Targets

ToEigenvalues = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Problem:
    """A tangent, inputs, what the model lacks to reach their targets, and the weight of the ridge term."""

    tangent: Differential
    x: np.ndarray
    residual: Float64[np.ndarray, "n k"]  # y - f(X)
    one_output: bool
    strength: float

    @cached_property
    def kernel(self) -> Float64[np.ndarray, "rows rows"]:
        rows = self.residual.size
        return self.tangent.gram(self.x).reshape(rows, rows).astype(np.float64)

    @cached_property
    def eigen(self) -> Eigen:
        """The eigenvalues and eigenvectors of A = K + λ."""
        values, vectors = scipy.linalg.eigh(self.kernel, driver="evd", check_finite=False)
        return Eigen(values + self.strength, vectors)

    @property
    def resolution(self) -> float:
        """The size below which an eigenvalue of K is rounding."""
        return resolution(self.tangent, self.residual.size, float(np.trace(self.kernel)))

    def solve(self) -> Float64[np.ndarray, "n k"]:
        """A⁻¹ (y − f(X)), if A is told from a singular matrix."""
        rows = self.residual.ravel()
        if self.strength > self.resolution:  # whatever the smallest eigenvalue of K is
            matrix = self.kernel.copy()
            matrix[np.diag_indices(len(rows))] += self.strength
            solved = scipy.linalg.solve(matrix, rows, assume_a="pos", overwrite_a=True)
            return np.asarray(solved).reshape(self.residual.shape)
        least = float(self.eigen.values[0])
        if least <= self.resolution:
            raise InputError(
                "strength",
                f"more than {self.resolution:.2g}, because the tangent kernel has the eigenvalue "
                f"{least - self.strength:.2g}, which {self.tangent.dtype} cannot tell from 0, in "
                f"{len(rows)} rows from {self.tangent.size} parameters",
                f"{self.strength:g}",
                "Give a larger strength, drop equal inputs, compute in float64 by "
                "tangent(..., dtype=jnp.float64), or stop by ridge(...).at(time)",
            )
        return self.apply(lambda values: 1 / values)

    def apply(self, to_eigenvalues: ToEigenvalues) -> Float64[np.ndarray, "n k"]:
        """φ(A) (y − f(X))."""
        made = self.eigen.apply(
            lambda values: np.asarray(to_eigenvalues(values)), self.residual.reshape(-1, 1)
        )
        return made.reshape(self.residual.shape)


@dataclass(frozen=True, eq=False, repr=False)
class FineTuned:
    """A linearized model that was trained for a time or a number of steps, from θ₀."""

    _problem: Problem
    _filter: Filter | None  # None: to convergence
    _said: str

    def __repr__(self) -> str:
        n, k = self._problem.residual.shape
        return f"{self._said} of {n} points, {k} outputs, strength={self._problem.strength:g}"

    @cached_property
    def coefficients(self) -> Float64[np.ndarray, "n k"]:
        """α with θ − θ₀ = Jᵀ α: (n, k), float64."""
        if self._filter is None:
            return self._problem.solve()
        return self._problem.apply(self._filter)

    @cached_property
    def change(self) -> Tree:
        """θ − θ₀, a tree like `Tangent.params`."""
        tangent, x = self._problem.tangent, self._problem.x
        with tangent.open(("X", x)) as (function, (points,)):
            return products.vjp(function, points, self.coefficients, tangent.batch_size)

    @property
    def params(self) -> Tree:
        """θ, all parameters in the form in which the model has them."""
        tangent = self._problem.tangent
        with jax.enable_x64(tangent.dtype == np.float64):
            moved = jax.tree.map(jnp.add, tangent.params, self.change)
        return tangent.whole(moved)

    @property
    def distance(self) -> float:
        """|θ − θ₀|."""
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(self.change)]
        return math.sqrt(sum(float(np.square(leaf).sum()) for leaf in leaves))

    def mean(self, x: MoreInputs) -> Outputs:
        """f(x) + J(x) (θ − θ₀) at the inputs x: (m,), or (m, k) where y had columns; float64."""
        tangent = self._problem.tangent
        with tangent.open(("x", x)) as (function, (points,)):
            start = products.values(function, points, tangent.batch_size).astype(np.float64)
            out = start + products.jvp(function, points, self.change, tangent.batch_size)
        return out[:, 0] if self._problem.one_output else out


@dataclass(frozen=True, eq=False, repr=False)
class Ridge(FineTuned):
    """Fine-tuning to convergence, linearized, and stopped before; `Tangent.ridge` makes it."""

    def at(self, t: float) -> FineTuned:
        """The model after gradient flow on the loss for a time t, from 0 (untrained) to infinity (converged)."""
        time = as_number(t)
        if time is None or not time >= 0:
            raise InputError(
                "t",
                "a time from 0 to infinity",
                repr(t),
                "Give 0 for the start of training, or a later time",
            )
        if math.isinf(time):
            return self
        return FineTuned(self._problem, gradient_flow(time), f"Flow for a time {time:g}")

    def after(self, steps: int, learning_rate: Number) -> FineTuned:
        """The model after so many steps of gradient descent on the loss, below `max_learning_rate`."""
        demand_static("steps", steps)
        if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 0:
            raise InputError("steps", "an integer, at least 0", repr(steps), "Count whole steps")
        rate = as_number(learning_rate)
        if rate is None or not 0 < rate < math.inf:
            raise InputError(
                "learning_rate",
                "a positive number",
                repr(learning_rate),
                "Gradient descent takes a finite rate above 0, e.g. 0.1",
            )
        if rate >= self.max_learning_rate:
            raise LearningRateError(rate, self.max_learning_rate, len(self._problem.x))
        filtered = gradient_descent(int(steps), rate)
        return FineTuned(self._problem, filtered, f"Descent by {steps} steps of {rate:g}")

    @property
    def max_learning_rate(self) -> float:
        """2/λ_max(K + λ): gradient descent on the loss diverges above."""
        return 2 / float(self._problem.eigen.values[-1])


def ridge_of(tangent: Differential, X: Inputs, y: Targets, strength: Number) -> Ridge:
    """The problem, checked."""
    given = as_number(strength)
    if given is None or not 0 <= given < math.inf:
        raise InputError("strength", "a number, at least 0", repr(strength), "It weighs |θ − θ₀|²")
    with tangent.open(("X", X)) as (function, (points,)):
        targets = as_targets(y, len(points))
        check_columns(targets, function.outputs)
        start = products.values(function, points, tangent.batch_size).astype(np.float64)
    demand_memory(start.size, 4, "The eigendecomposition of the tangent kernel")
    residual = targets.reshape(start.shape) - start
    problem = Problem(tangent, points, residual, targets.ndim == 1, given)
    return Ridge(problem, None, "Ridge regression")
