r"""The factorised Gram matrix of training data, and what predictions need of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions
from lnkernel.check.arrays import Data, as_data, as_inputs, shape_of_one
from lnkernel.errors import HalfMatrixError, SpreadMatrixError
from lnkernel.gp.cholesky import Cholesky, cholesky_in_place, restore
from lnkernel.gp.conjugate_gradients import Solution
from lnkernel.gp.diagnosis import Factorise, is_resolved, singular, singular_rows
from lnkernel.gp.duplicates import refuse_duplicates
from lnkernel.gp.factor import Factor
from lnkernel.gp.filters import Filter, Flow, symmetric_root
from lnkernel.gp.floor import eigenvalue_floor
from lnkernel.gp.iterative import Iterative, iterative
from lnkernel.gp.lanczos import Lanczos, step_limit
from lnkernel.gp.large_targets import (
    Scaled,
    demand_finite,
    scale_down,
    scale_up,
    targets_too_large,
)
from lnkernel.gp.mixed_precision import SinglePrecision, single_precision
from lnkernel.gp.noise import Variance, as_variance
from lnkernel.gp.packed import GramRows, is_needed, packed_cholesky
from lnkernel.gp.predictor import Predictor
from lnkernel.gp.sharded_cholesky import ShardedCholesky, sharded_cholesky
from lnkernel.gp.spectrum import EPS, Eigen, by_lanczos, eigen
from lnkernel.gram.hosts import demand_same, spans_processes
from lnkernel.gram.kernel import Kernel
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.sharded import Layout, as_sharding
from lnkernel.types import MorePoints, Noise, Points, Targets

_ENTRIES = 2**24  # of a kernel matrix (128 MB), computed at a time for predictions

Solver = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fit(Predictor):
    """Training data under one kernel: A = kernel(X, X) + noise I, factorised. Where each point has a
    variance of its own, A = kernel(X, X) + diag(noise)."""

    arch: Node
    which: str  # "ntk" or "nngp"
    data: Data
    noise: Variance
    solver: Factor | SinglePrecision  # of A
    iterated: Solution | None = None  # A⁻¹ y, where it was found by iteration

    @cached_property
    def kernel(self) -> Kernel:
        return Kernel(self.arch, (self.which,))

    @cached_property
    def factor(self) -> Factor:
        """The factor of A, in float64."""
        return self.solver if isinstance(self.solver, Factor) else self.solver.in_double()

    @cached_property
    def scaled_coefficients(self) -> Scaled:
        """A⁻¹ y, divided by a power of two if y is large, so that nothing overflows on the way."""
        if self.iterated is not None:
            return Scaled(self.iterated.solution, 0)
        numbers, power = scale_down(self.data.y)
        return Scaled(self.solver.solve(numbers), power)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """A⁻¹ y, (n, k)."""
        made = scale_up(*self.scaled_coefficients)
        if not np.isfinite(made).all():
            raise targets_too_large(self.data.y, "the coefficients A⁻¹y")
        return made

    def predictions(self, x: np.ndarray) -> np.ndarray:
        """kernel(x, X) A⁻¹ y, (m, k), also where the coefficients alone are too large."""
        numbers, power = self.scaled_coefficients
        return demand_finite(scale_up(self.mean(numbers, x), power), self.data.y)

    def inputs(self, x: MorePoints) -> np.ndarray:
        """Points to predict at, checked."""
        return as_inputs(x, shape_of_one(self.data.x))

    def shape_of_inputs(self) -> tuple[int, ...]:
        return self.data.x.shape

    @property
    def targets(self) -> np.ndarray:
        """y, (n, k)."""
        return self.data.y

    def columns(self, values: np.ndarray) -> np.ndarray:
        """(..., m, k) as the user gave the targets: without the last axis, if they had none."""
        return values[..., 0] if self.data.one_output else values

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b, for b of shape (n, k)."""
        return self.solver.solve(b)

    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b without refinement, by the factor in float64."""
        return self.factor.solve_roughly(b)

    def apply_filter(self, chosen: Filter, b: np.ndarray) -> np.ndarray:
        """φ(A) b."""
        return self.eigen.apply(lambda values: np.asarray(chosen(values)), b)

    def filtered_targets(self, chosen: Filter) -> np.ndarray:
        """φ(A) y, by products with A where they are fewer than all eigenvectors cost."""
        if isinstance(chosen.function, Flow) and (products := self._lanczos) is not None:
            floor = float(np.min(self.noise))
            if (made := products.flow(chosen, floor, lambda: self._low_floor)) is not None:
                return made
        return self.apply_filter(chosen, self.targets)

    @cached_property
    def _lanczos(self) -> Lanczos | None:
        steps = step_limit(*self.targets.shape)
        if steps and isinstance(self.solver, Cholesky | SinglePrecision):
            demand_memory(len(self.targets), 1, "Training in time", steps * self.targets.shape[1])
            return Lanczos(self.solver.times, self.targets, steps)
        return None

    @cached_property
    def _low_floor(self) -> float:
        """A lower bound of the smallest eigenvalue of A, up to rounding."""
        rounding = len(self.targets) * EPS * self.factor.frobenius()
        value, error = by_lanczos(self.factor, rounding)
        return max(float(np.min(self.noise)), value - error)

    @cached_property
    def residual(self) -> np.ndarray:
        """y - A a with the coefficients a, (n, k)."""
        if self.iterated is not None:
            return self.iterated.residual
        return self.data.y - self.factor.times(self.coefficients)

    def misfit_bounds(self) -> tuple[float, float]:
        """Numbers that yᵀ A⁻¹ y, summed over the outputs, lies between: it is aᵀy + aᵀr + rᵀA⁻¹r."""
        power = scale_down(self.data.y).power
        y, a, r = (
            np.ldexp(part, -power) for part in (self.data.y, self.coefficients, self.residual)
        )
        lower = float((a * (y + r)).sum())
        upper = lower + float(np.square(r).sum()) / float(np.min(self.noise))
        return float(scale_up(lower, 2 * power)), float(scale_up(upper, 2 * power))

    def misfit(self) -> float:
        """yᵀ A⁻¹ y, summed over the outputs."""
        numbers, power = self.scaled_coefficients
        product = float(np.einsum("ik,ik->", np.ldexp(self.data.y, -power), numbers))
        return float(scale_up(product, 2 * power))

    def log_determinant(self) -> float:
        """log det A."""
        return self.factor.log_determinant()

    def largest_eigenvalue(self) -> float:
        return float(self.eigen.values[-1])

    @cached_property
    def eigen(self) -> Eigen:
        if isinstance(self.factor, ShardedCholesky | Iterative):
            raise SpreadMatrixError(len(self.data.x))
        demand_memory(len(self.data.x), 4, "Training in time, by the eigenvectors")
        if not isinstance(self.factor, Cholesky):
            raise HalfMatrixError(len(self.data.x))
        return eigen(self.factor)

    @cached_property
    def eigenvalue_floor(self) -> float:
        """A lower bound of the smallest eigenvalue of A."""
        factor = self.factor
        if isinstance(factor, Iterative):
            return factor.least_noise
        rows = GramRows(self.kernel, self.data.x, self.noise)
        again = factor.again if isinstance(factor, ShardedCholesky) else packed_cholesky
        return eigenvalue_floor(factor, rows, again)

    def blocks(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """Rows of x, so few that their kernel with all training inputs fits into memory."""
        rows = max(1, _ENTRIES // len(self.data.x))
        return (x[start : start + rows] for start in range(0, len(x), rows))

    def mean(self, coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
        """kernel(x, X) coefficients, (m, k)."""
        at_each = coefficients.shape[1]
        purpose = f"The matrix of {at_each} predictions at each of {len(x)} points"
        demand_memory(len(x), 2, purpose, at_each, remedy="Take fewer points at a time")
        return np.concatenate(
            [matrix(self.kernel, rows, self.data.x) @ coefficients for rows in self.blocks(x)]
        )

    def variance(self, x: np.ndarray) -> np.ndarray:
        """kernel(x, x) - kernel(x, X) A⁻¹ kernel(X, x), (m,)."""

        def explained(rows: np.ndarray) -> np.ndarray:
            return self.factor.quadratic(matrix(self.kernel, self.data.x, rows))

        known = np.concatenate([explained(rows) for rows in self.blocks(x)])
        return _not_negative(diagonal(self.kernel, x) - known)

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """kernel(x, x) - kernel(x, X) A⁻¹ kernel(X, x), (m, m)."""
        self._demand_covariance(x, matrices=2)
        return matrix(self.kernel, x) - self.factor.inner(matrix(self.kernel, self.data.x, x))

    def covariance_root(self, x: np.ndarray) -> np.ndarray:
        """The symmetric square root of `covariance`."""
        demand_memory(len(x), 4, "The eigendecomposition of the covariance")
        return symmetric_root(self.covariance(x))

    def ensemble_variance(self, solver: Solver, x: np.ndarray) -> np.ndarray:
        """The variance of f_0(x) - w(x) f_0(X) with w(x) = kernel(x, X) phi(A), (m,).

        `solver` is b -> phi(A) b.
        """
        prior = Kernel(self.arch, ("nngp",))

        def of_some(rows: np.ndarray) -> np.ndarray:
            weights = solver(matrix(self.kernel, self.data.x, rows))  # (n, m)
            less = self._prior_times(weights) - 2 * matrix(prior, self.data.x, rows)
            return diagonal(prior, rows) + np.einsum("im,im->m", weights, less)

        return _not_negative(np.concatenate([of_some(rows) for rows in self.blocks(x)]))

    def ensemble_covariance(self, solver: Solver, x: np.ndarray) -> np.ndarray:
        """The covariance of f_0(x) - w(x) f_0(X) for all pairs of points, (m, m)."""
        self._demand_covariance(x, matrices=3)
        prior = Kernel(self.arch, ("nngp",))
        weights = solver(matrix(self.kernel, self.data.x, x))  # (n, m)
        half = weights.T @ (self._prior_times(weights) / 2 - matrix(prior, self.data.x, x))
        return matrix(prior, x) + half + half.T  # symmetric to the last digit

    def _demand_covariance(self, x: np.ndarray, matrices: int) -> None:
        """Room for (m, m) matrices, and for two (n, m) ones: asked for before any is computed."""
        demand_memory(len(x), matrices, "The covariance")
        demand_memory(len(x), 2, "The covariance", len(self.data.x))

    def _prior_times(self, weights: np.ndarray) -> np.ndarray:
        """K(X, X) weights; K(X, X) is made in blocks and never stored."""
        prior, x = Kernel(self.arch, ("nngp",)), self.data.x
        return np.concatenate([matrix(prior, some, x) @ weights for some in self.blocks(x)])


def fit(
    arch: Node,
    which: str,
    X: Points,
    y: Targets,
    noise: Noise,
    mean_first: bool = False,
    sharding: Layout | None = None,
    tolerance: float | None = None,
    rank: int | None = None,
    tiles: str | Path | None = None,
) -> Fit:
    """Check the data, make the Gram matrix and factorise it in place; only half of it, where the whole has no room,
    or over many devices. With a tolerance nothing is factorised: the mean is found by iteration.

    With `mean_first` in single precision, where that will do for the mean, and then in float64
    as soon as more is asked for.
    """
    kernel = Kernel(arch, (which,))
    data = as_data(X, y, acts_on_positions(arch))
    variance = as_variance(noise, len(data.x))
    refuse_duplicates(data, variance)
    rows = GramRows(kernel, data.x, variance)
    if sharding is not None and spans_processes(as_sharding(sharding)):
        demand_same("the data", [repr(arch), which, data.x, data.y, variance])
    if tolerance is not None:
        solver = iterative(rows, tolerance, rank, sharding, tiles)
        return Fit(arch, which, data, variance, solver, solver.solve_to(data.y))
    if sharding is not None:
        spread = partial(sharded_cholesky, sharding=sharding, folder=tiles)
        made = Fit(arch, which, data, variance, _factorise_half(rows, spread))
        _ = made.coefficients  # now: no program inside another one can compute over these devices
        return made
    if is_needed(len(data.x)):
        return Fit(arch, which, data, variance, _factorise_half(rows, packed_cholesky))
    gram = matrix(kernel, data.x)
    if np.any(variance):
        gram.flat[:: len(gram) + 1] += variance
    definite = bool((np.diagonal(gram) > 0).all())
    if mean_first and definite and (quick := single_precision(gram)) is not None:
        return Fit(arch, which, data, variance, quick)
    factor = cholesky_in_place(gram) if definite else None
    if factor is None:
        raise singular(gram, data.x)
    if not is_resolved(factor):
        raise singular(restore(factor), data.x)
    return Fit(arch, which, data, variance, factor)


def _factorise_half(rows: GramRows, factorise: Factorise) -> Factor:
    factor = factorise(rows)
    if factor is None or not is_resolved(factor):
        del factor  # its memory is needed
        raise singular_rows(rows, factorise)
    return factor


def matrix(kernel: Kernel, x: np.ndarray, x2: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(kernel(x, x2))


def diagonal(kernel: Kernel, x: np.ndarray) -> np.ndarray:
    return np.asarray(kernel.diagonal(x))


def _not_negative(variance: np.ndarray) -> np.ndarray:
    """Where the exact variance is 0, at the data, the rounding error may have either sign."""
    return np.maximum(variance, 0.0)
